//! Files that come apart from the call that parses them (wire 21): `POST /v2/parse/upload-url`, `PUT /v2/parse/upload/{id}`
//! and the `uploadRef` of `POST /v2/parse`.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_shared::random;
use weir_tests::{
    Answer, BucketStore, Caller, Database, FixtureSite, TestService, both_databases, checkout, first_on, free_port,
    installed, wait_until,
};

use crate::parse::{options, uploads};
use crate::sdk::passes;

const TEXT: &[u8] = b"<!DOCTYPE html><title>T</title><body><p>quetzalcoatlus</p></body>";
const MB: usize = 1 << 20;

/// An address and a ref for a file of this name.
pub async fn offered(caller: &Caller, name: &str) -> Value {
    let mut answer = caller.post("/v2/parse/upload-url", &json!({ "filename": name })).await.ok();
    answer["data"].take()
}

/// Sends a file to an address, without a key.
pub async fn send(service: &TestService, address: &Value, file: impl Into<reqwest::Body>) -> Answer {
    let nobody = service.anonymous();
    let url = address["uploadUrl"].as_str().unwrap();
    nobody.send(nobody.request(Method::PUT, url).header("content-type", "application/pdf").body(file)).await
}

pub async fn parse(caller: &Caller, address: &Value, options: Value) -> Answer {
    let mut body = options;
    body["uploadRef"] = address["uploadRef"].clone();
    caller.post("/v2/parse", &body).await
}

both_databases! {
    async fn a_file_that_is_sent_to_one_process_is_parsed_by_another(database) {
        let service = TestService::start_with(options(database)).await;
        let (_process, other) = service.start_another_api().await;
        let docx = std::fs::read(checkout().join("worker/office/tests/files/whole.docx")).unwrap();
        let asked = json!({"filename": "C:\\mine\\whole.docx", "contentType": "application/msword", "declaredSizeBytes": docx.len()});
        let answer = service.post("/v2/parse/upload-url", &asked).await.ok();
        let address = &answer["data"];
        assert_eq!((address["method"].as_str(), address["maxSizeBytes"].as_i64()), (Some("PUT"), Some(52_428_800)), "{address}");
        assert_eq!(address["headers"], json!({"Content-Type": "application/msword"}));
        assert!(address["uploadUrl"].as_str().unwrap().starts_with(&format!("{}/v2/parse/upload/", service.base())));
        assert!(address["expiresAt"].is_string());
        let early = parse(service.caller(), address, json!({})).await;
        assert!(early.status == 400 && early.error().starts_with("No file has been sent"), "{}", early.text);

        assert_eq!(send(&service, address, docx.clone()).await.ok(), json!({"success": true}));
        let again = send(&service, address, TEXT).await;
        assert_eq!((again.status, again.code()), (409, "CONFLICT"), "the first file stays: {}", again.text);
        // An option that no file has, and a time that is too short, leave the file.
        let refused = parse(&other, address, json!({"waitFor": 5})).await;
        assert_eq!(refused.code(), "PARSE_UNSUPPORTED_OPTIONS", "{}", refused.text);
        let document = parse(&other, address, json!({"formats": ["markdown", "links"], "origin": "mcp-x"})).await.ok();
        let metadata = &document["data"]["metadata"];
        assert_eq!((metadata["sourceURL"].as_str(), metadata["creditsUsed"].as_i64()), (Some("whole.docx"), Some(1)), "{document}");
        assert!(document["data"]["markdown"].as_str().unwrap().contains("# ") && document["data"]["links"].is_array());
        let used = parse(service.caller(), address, json!({})).await;
        assert!(used.status == 400 && used.error().contains("has been used"), "{}", used.text);
        assert_eq!(send(&service, address, TEXT).await.status, 400);
        assert_eq!(uploads(&service), 0);
    }

    async fn addresses_and_refs_are_one_teams_and_as_they_were_given(database) {
        let service = TestService::start_with(options(database)).await;
        let address = offered(service.caller(), "a.html").await;
        send(&service, &address, TEXT).await.ok();
        let stranger = service.new_team("stranger");
        let refused = parse(&stranger, &address, json!({})).await;
        assert_eq!((refused.status, refused.code()), (403, "FORBIDDEN"));
        assert!(refused.error().contains("authenticated team"), "{}", refused.text);
        let given = address["uploadRef"].as_str().unwrap();
        let turned: String = given.chars().rev().collect();
        for wrong in [&given[1..], &turned, "x", &format!("{given}A")] {
            let refused = parse(service.caller(), &json!({"uploadRef": wrong}), json!({})).await;
            assert!(refused.status == 400 && refused.error().contains("signature"), "{wrong}: {}", refused.text);
        }
        let url = address["uploadUrl"].as_str().unwrap();
        let other = offered(service.caller(), "b.html").await;
        let other_id = other["uploadUrl"].as_str().unwrap().split(['/', '?']).nth(6).unwrap();
        let id = url.split(['/', '?']).nth(6).unwrap();
        for wrong in [url.replace("signature=", "signature=00"), url.replace("expires=", "expires=9"), url.replace(id, other_id),
            url.split('?').next().unwrap().to_owned()]
        {
            let refused = send(&service, &json!({"uploadUrl": wrong}), TEXT).await;
            assert!(refused.status == 400 && refused.error().contains("signature"), "{wrong}: {}", refused.text);
        }
        // Nothing of it took effect, and nobody else's file is in the team's ten.
        let document = parse(service.caller(), &address, json!({})).await.ok();
        assert!(document["data"]["markdown"].as_str().unwrap().contains("quetzalcoatlus"));
        offered(&stranger, "c.html").await;
    }

    async fn a_team_has_ten_unparsed_files(database) {
        let service = TestService::start_with(options(database)).await;
        let mut addresses = Vec::new();
        for n in 0..10 {
            addresses.push(offered(service.caller(), &format!("{n}.html")).await);
        }
        let refused = service.post("/v2/parse/upload-url", &json!({"filename": "11.html"})).await;
        assert_eq!((refused.status, refused.code()), (429, "PARSE_UPLOAD_UNPARSED_LIMIT_REACHED"));
        let wait: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((86_000..=86_401).contains(&wait), "{wait}");
        offered(&service.new_team("others"), "a.html").await;
        send(&service, &addresses[3], TEXT).await.ok();
        parse(service.caller(), &addresses[3], json!({})).await.ok();
        offered(service.caller(), "11.html").await;
    }

    async fn nothing_stays_of_a_file_without_retention(database) {
        let service = TestService::start_with(options(database)).await;
        service.cli(&["team", "set", "tests", "--zero-data-retention", "on"]);
        let address = offered(service.caller(), "quetzal.html").await;
        send(&service, &address, TEXT).await.ok();
        assert_eq!(uploads(&service), 1);
        let document = parse(service.caller(), &address, json!({"zeroDataRetention": true})).await.ok();
        assert!(document["data"]["markdown"].as_str().unwrap().contains("quetzalcoatlus"), "{document}");
        assert_eq!(service.tables_with("quetzal").await, (Vec::new(), 0));
        assert_eq!(uploads(&service), 0);
        // A file that cannot be read is not kept for another try either.
        let broken = offered(service.caller(), "quetzal.docx").await;
        send(&service, &broken, "quetzal").await.ok();
        assert_eq!(parse(service.caller(), &broken, json!({})).await.status, 500);
        assert_eq!(service.tables_with("quetzal").await, (Vec::new(), 0));
        assert_eq!(uploads(&service), 0);
    }
}

first_on! {
    sqlite:

    async fn what_expires_is_refused_and_swept(database) {
        let service = TestService::start_with(options(database)).await;
        let address = offered(service.caller(), "quetzal.html").await;
        send(&service, &address, TEXT).await.ok();
        // The addresses and refs say themselves when they expire; the rows are moved into the past.
        service.execute("UPDATE upload SET created_at = created_at - 7200000, expires_at = 0").await;
        service.execute("UPDATE blob_waste SET due_at = 0").await;
        wait_until("the file is swept", || async { (uploads(&service) == 0).then_some(()) }).await;
        wait_until("its name, too", || async {
            (service.tables_with("quetzal").await.0.is_empty()).then_some(())
        })
        .await;
        let refused = parse(service.caller(), &address, json!({})).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert_eq!(send(&service, &address, TEXT).await.status, 409);
    }
}

#[tokio::test]
async fn what_is_too_large_too_empty_or_of_no_kind_is_refused() {
    let service = TestService::start_with(options(Database::Sqlite)).await;
    for (body, code, text) in [
        (json!({}), "BAD_REQUEST", "Bad Request"),
        (json!({"filename": "a.exe"}), "UNSUPPORTED_FILE_TYPE", "Unsupported upload type."),
        (
            json!({"filename": "a.pdf", "declaredSizeBytes": 52_428_801}),
            "BAD_REQUEST",
            "Uploaded file exceeds maximum size of 50MB.",
        ),
    ] {
        let refused = service.post("/v2/parse/upload-url", &body).await;
        assert_eq!((refused.status, refused.code()), (400, code), "{body}: {}", refused.text);
        assert!(refused.error().starts_with(text), "{}", refused.text);
    }
    let address = offered(service.caller(), "a.html").await;
    // Told beforehand, and only found out.
    let whole = vec![b'x'; 50 * MB + 1];
    let streamed = futures_util::stream::iter(vec![vec![b'x'; MB]; 51].into_iter().map(Ok::<_, std::io::Error>));
    for body in [reqwest::Body::from(whole), reqwest::Body::wrap_stream(streamed)] {
        let refused = send(&service, &address, body).await;
        assert_eq!((refused.status, refused.error()), (400, "Uploaded file exceeds maximum size of 50MB."));
    }
    let refused = send(&service, &address, "").await;
    assert_eq!((refused.status, refused.error()), (400, "The uploaded file is empty."));
    // A sender that leaves in the middle leaves nothing, and the address is as good as before.
    let url = address["uploadUrl"].as_str().unwrap();
    let target = url.strip_prefix(service.base()).unwrap();
    let mut half = tokio::net::TcpStream::connect(service.base().strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!("PUT {target} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", 20 * MB);
    half.write_all(head.as_bytes()).await.unwrap();
    half.write_all(&vec![b'x'; 3 * MB]).await.unwrap();
    wait_until("a part has come", || async { (uploads(&service) > 0).then_some(()) }).await;
    drop(half);
    wait_until("the part is gone", || async { (uploads(&service) == 0).then_some(()) }).await;
    send(&service, &address, TEXT).await.ok();
    parse(service.caller(), &address, json!({})).await.ok();
    // Bodies that are neither a form nor JSON, or name no file.
    for body in [json!({}), json!({"formats": ["markdown"]})] {
        let refused = service.post("/v2/parse", &body).await;
        assert!(refused.status == 400 && refused.error().starts_with("Missing file upload."), "{}", refused.text);
    }
}

#[tokio::test]
async fn of_two_files_at_once_one_stays_and_both_share_the_keys_room() {
    let service = TestService::start_with(options(Database::Sqlite)).await;
    let address = offered(service.caller(), "a.html").await;
    let pad = |mark: &str| format!("{}<p>{mark}</p><!--{}-->", "<!DOCTYPE html>", "x".repeat(2 * MB));
    let both = tokio::join!(send(&service, &address, pad("first")), send(&service, &address, pad("second")));
    let mut statuses = [both.0.status, both.1.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{} {}", both.0.text, both.1.text);
    assert_eq!(uploads(&service), 1);
    let stays = if both.0.status == 200 { "first" } else { "second" };
    let document = parse(service.caller(), &address, json!({"onlyMainContent": false})).await.ok();
    assert_eq!(document["data"]["markdown"].as_str().unwrap().trim(), stays);

    // One upload of 40 MB that is on its way leaves no room for another one of its key.
    let (slow, other) = (offered(service.caller(), "b.html").await, offered(service.caller(), "c.html").await);
    let target = slow["uploadUrl"].as_str().unwrap().strip_prefix(service.base()).unwrap().to_owned();
    let mut half = tokio::net::TcpStream::connect(service.base().strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!("PUT {target} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\nx", 40 * MB);
    half.write_all(head.as_bytes()).await.unwrap();
    wait_until("it is on its way", || async {
        let refused = send(&service, &other, vec![b'x'; 30 * MB]).await;
        (refused.status == 429 && refused.code() == "RATE_LIMITED").then_some(())
    })
    .await;
    // Another team's room is its own.
    let foreign = offered(&service.new_team("others"), "d.html").await;
    send(&service, &foreign, vec![b'x'; 30 * MB]).await.ok();
}

#[tokio::test]
async fn one_parse_at_a_time_reads_a_file_and_a_failure_leaves_it() {
    let service = TestService::start_with(options(Database::Sqlite)).await;
    let table: String = (0..60_000).map(|n| format!("{n},row {n},{}\n", n * 7)).collect();
    let address = offered(service.caller(), "table.csv").await;
    send(&service, &address, table).await.ok();
    let late = parse(service.caller(), &address, json!({"timeout": 1_000, "formats": ["html", "markdown"]})).await;
    if late.status == 200 {
        // A machine that fast has nothing to be late with.
        return;
    }
    assert_eq!((late.status, late.code()), (408, "SCRAPE_TIMEOUT"), "{}", late.text);
    let wanted = json!({"timeout": 60_000});
    let both =
        tokio::join!(parse(service.caller(), &address, wanted.clone()), parse(service.caller(), &address, wanted));
    let mut statuses = [both.0.status, both.1.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{:.300} {:.300}", both.0.text, both.1.text);
    // A file at fault is not tried again.
    let broken = offered(service.caller(), "broken.docx").await;
    send(&service, &broken, "PK\u{3}\u{4} and nothing of the kind").await.ok();
    let failed = parse(service.caller(), &broken, json!({})).await;
    assert_eq!(failed.code(), "SCRAPE_UNSUPPORTED_FILE_ERROR", "{}", failed.text);
    assert!(parse(service.caller(), &broken, json!({})).await.error().contains("has been used"));
}

#[tokio::test]
async fn a_compressed_file_is_refused_and_the_address_stays_good() {
    let service = TestService::start_with(options(Database::Sqlite)).await;
    let (caller, nobody) = (service.caller(), service.anonymous());
    let address = offered(caller, "a.html").await;
    let coded = |request: RequestBuilder| request.header("content-encoding", "gzip").body("\u{1f}?");
    let put = nobody.send(coded(nobody.request(Method::PUT, address["uploadUrl"].as_str().unwrap()))).await;
    let form = caller.request(Method::POST, "/v2/parse").header("content-type", "multipart/form-data; boundary=b");
    for answer in [put, caller.send(coded(form)).await] {
        assert_eq!((answer.status, answer.error().contains("compressed (gzip)")), (400, true), "{}", answer.text);
    }
    send(&service, &address, TEXT).await.ok();
    parse(caller, &address, json!({})).await.ok();
}

/// As clients do that would rather speak HTTP/2.
#[tokio::test]
async fn a_file_beside_an_offered_upgrade_ends_where_its_length_says() {
    let service = TestService::start_with(options(Database::Sqlite)).await;
    let address = offered(service.caller(), "a.html").await;
    let put = format!("PUT {}", address["uploadUrl"].as_str().unwrap().strip_prefix(service.base()).unwrap());
    let form =
        b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.html\"\r\n\r\n<p>x</p>\r\n--b--\r\n";
    let whole_form = format!("POST /v2/parse HTTP/1.1\r\nauthorization: Bearer {}", service.key());
    for (head, kind, body) in [
        (format!("{put} HTTP/1.1"), "text/html", TEXT),
        (whole_form, "multipart/form-data; boundary=b", form.as_slice()),
    ] {
        let mut socket = tokio::net::TcpStream::connect(service.base().strip_prefix("http://").unwrap()).await.unwrap();
        let rest =
            "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n";
        let length = body.len();
        let head = format!("{head}\r\nhost: x\r\n{rest}content-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
        socket.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
        let mut answer = [0; 12];
        socket.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
    parse(service.caller(), &address, json!({})).await.ok();
}

#[tokio::test]
async fn a_bucket_holds_what_is_sent() {
    let Some(bucket) = BucketStore::start("127.0.0.1").await else { return };
    let mut options = options(Database::Sqlite);
    options.env.extend(bucket.settings());
    let service = TestService::start_with(options).await;
    let address = offered(service.caller(), "a.html").await;
    let text = format!("{}<p>quetzalcoatlus</p><!--{}-->", "<!DOCTYPE html>", "x".repeat(3 * MB));
    send(&service, &address, text).await.ok();
    let document = parse(service.caller(), &address, json!({})).await.ok();
    assert!(document["data"]["markdown"].as_str().unwrap().contains("quetzalcoatlus"), "{document}");
}

#[tokio::test]
async fn without_keys_programs_send_files_and_pages_do_not() {
    let service = TestService::start_with(options(Database::Sqlite).env("WEIR_AUTH", "open")).await;
    let anybody = service.anonymous();
    let address = offered(&anybody, "a.html").await;
    let url = address["uploadUrl"].as_str().unwrap();
    for (header, value) in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
        let request = anybody.request(Method::PUT, url).header(header, value).body(TEXT);
        assert_eq!(anybody.send(request).await.status, 403, "{header}");
    }
    send(&service, &address, TEXT).await.ok();
    parse(&anybody, &address, json!({})).await.ok();
    let form =
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.html\"\r\n\r\n<p>ptero</p>\r\n--b--\r\n";
    let send = async |path: &str, origin: Option<&str>| {
        let request = anybody.request(Method::POST, path).header("content-type", "multipart/form-data; boundary=b");
        let request = origin.into_iter().fold(request, |request, origin| request.header("origin", origin));
        anybody.send(request.body(form)).await
    };
    assert!(send("/v2/parse", None).await.ok()["data"]["markdown"].as_str().unwrap().contains("ptero"));
    assert_eq!(send("/v2/parse", Some(service.base())).await.status, 403, "a page's form, even ours");
    assert_eq!(send("/v2/scrape", None).await.status, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_hosted_server_has_files_uploaded_and_parsed() {
    let Some(modules) = installed("js/node_modules") else { return };
    // It takes keys of this form only.
    let key = format!("fc-{}", random::id().simple());
    let service = TestService::start_with(options(Database::Sqlite).env("WEIR_API_KEY", &key)).await;
    let file = service.folder().join("it's a file.html");
    std::fs::write(&file, TEXT).unwrap();
    let mut command = tokio::process::Command::new("node");
    command.arg(checkout().join("tests/sdk/js/hosted.cjs")).env("NODE_PATH", modules).env("FILE", &file);
    command.env("PORT", free_port().to_string()).env("HOSTED_KEY", key);
    passes("mcp-hosted", &mut command, &service, &FixtureSite::start().await).await;
}

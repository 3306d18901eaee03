//! The Model Context Protocol: a stock client over HTTP and over `weir mcp`, and what strangers and hostile clients get.

use std::process::Stdio;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use weir_tests::{
    Answer, Caller, Database, FixtureSite, ServiceOptions, TestService, binary_folder, both_databases, checkout,
    first_on, installed, wait_until,
};

use crate::sdk::{named, suite_with_model};

const MB: usize = 1 << 20;

async fn send(caller: &Caller, message: &Value) -> Answer {
    let request = caller.request(Method::POST, "/mcp").header("accept", "application/json, text/event-stream");
    caller.send(request.json(message)).await
}

/// What a method answers.
async fn ask(caller: &Caller, method: &str, params: Value) -> Value {
    send(caller, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).await.ok()
}

/// What a tool answers.
async fn tool(caller: &Caller, name: &str, arguments: Value) -> Value {
    let mut answer = ask(caller, "tools/call", json!({"name": name, "arguments": arguments})).await;
    assert!(answer["result"].is_object(), "{name}: {answer}");
    answer["result"].take()
}

both_databases! {
    async fn another_teams_jobs_pages_and_sessions_are_nobodys(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(ServiceOptions::new(database).with_sessions()).await;
        let own = service.caller();
        let url = site.url("/small/1?mcp-secret");
        let page = tool(own, "firecrawl_scrape", json!({ "url": url })).await;
        let scrape = page["structuredContent"]["metadata"]["scrapeId"].clone();
        let start = async |name: &str, arguments: Value| {
            let result = tool(own, name, arguments).await;
            (result["structuredContent"]["id"].clone(), result["content"][1]["uri"].clone())
        };
        // Not over before the test is.
        let (slow, timeout) = (site.url("/hang?mcp-secret"), 300_000);
        let crawl = json!({ "url": slow, "limit": 1, "sitemap": "skip", "scrapeOptions": { "timeout": timeout } });
        let (crawl, crawl_uri) = start("firecrawl_crawl", crawl).await;
        let batch = json!({ "urls": [slow], "timeout": timeout });
        let (batch, batch_uri) = start("firecrawl_batch_scrape", batch).await;
        let (session, _) = start("firecrawl_browser_create", json!({ "ttl": 120 })).await;

        let other = service.new_team("others");
        let mut refused = Vec::new();
        for (name, arguments) in [
            ("firecrawl_check_crawl_status", json!({ "id": crawl })),
            ("firecrawl_check_batch_status", json!({ "id": batch })),
            // The id of one kind of job is none of the other kind's.
            ("firecrawl_check_batch_status", json!({ "id": crawl })),
            ("firecrawl_batch_scrape", json!({ "urls": [url], "appendToId": batch })),
            ("firecrawl_interact", json!({ "scrapeId": scrape, "code": "1" })),
            ("firecrawl_interact_stop", json!({ "scrapeId": scrape })),
            ("firecrawl_browser_execute", json!({ "sessionId": session, "code": "1" })),
            ("firecrawl_browser_delete", json!({ "sessionId": session })),
        ] {
            let result = tool(&other, name, arguments).await;
            assert_eq!(result["isError"], true, "{name}: {result}");
            refused.push(result);
        }
        for uri in [&crawl_uri, &batch_uri] {
            assert!(ask(own, "resources/read", json!({ "uri": uri })).await["result"]["contents"].is_array());
            let read = ask(&other, "resources/read", json!({ "uri": uri })).await;
            assert_eq!(read["error"]["code"], -32002, "{read}");
            refused.push(read);
        }
        let listed = tool(&other, "firecrawl_browser_list", json!({})).await;
        assert_eq!(listed["structuredContent"]["sessions"], json!([]));
        refused.push(listed);
        assert!(refused.iter().all(|result| !result.to_string().contains("mcp-secret")), "{refused:?}");

        // Nothing of it took effect.
        for (name, id) in [("crawl", &crawl), ("batch/scrape", &batch)] {
            let path = format!("/v2/{name}/{}", id.as_str().unwrap());
            assert_eq!(service.get(&path).await.ok()["status"], "scraping");
            service.delete(&path).await.ok();
        }
        let closed = tool(own, "firecrawl_browser_delete", json!({ "sessionId": session })).await;
        assert_eq!(closed["structuredContent"]["success"], true, "{closed}");
        site.end();
    }
}

first_on! {
    postgres:

    async fn a_stock_client_uses_every_tool_over_http_and_stdio_as_the_official_server(database) {
        let Some(modules) = installed("js/node_modules") else { return };
        let mut command = tokio::process::Command::new("node");
        command.arg(checkout().join("tests/sdk/js/mcp.cjs")).env("NODE_PATH", modules);
        command.env("WEIR_BIN", binary_folder().join("weir"));
        suite_with_model(&named("mcp", &database), command, database).await;
    }
}

/// What `weir mcp` with these settings answers a call of a tool, and what it says on standard error.
async fn scraped_over_stdio(service: &TestService, settings: &[(&str, &str)]) -> (Value, String) {
    let mut command = service.command("weir");
    command.arg("mcp").envs(settings.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap();
    let (mut input, output) = (program.stdin.take().unwrap(), program.stdout.take().unwrap());
    let client = json!({"name": "tests", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    // Nothing is fetched: the route refuses the option.
    let call = json!({"name": "firecrawl_scrape", "arguments": {"url": "http://127.0.0.1:1/", "nonsense": true}});
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        "{\"jsonrpc\": \"2.0\", \"id\":".to_owned(),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}).to_string(),
    ] {
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let mut lines = BufReader::new(output).lines();
    let (mut answer, mut broken) = (Value::Null, 0);
    while answer["id"] != 2 || broken == 0 {
        let line = lines.next_line().await.unwrap().expect("an answer to the call, and to the line that is no JSON");
        let said: Value = serde_json::from_str(&line).unwrap();
        match said["error"]["code"].as_i64() {
            Some(-32700) => broken += usize::from(said["id"].is_null()),
            _ => answer = said,
        }
    }
    drop(input);
    let mut said = String::new();
    program.stderr.take().unwrap().read_to_string(&mut said).await.unwrap();
    program.wait().await.unwrap();
    (answer["result"].take(), said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_the_settings_of_a_program_is_told_with_their_names() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let (url, key) = (("WEIR_URL", service.base()), ("WEIR_KEY", service.key()));
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap_or_default().to_owned();

    let (right, said) = scraped_over_stdio(&service, &[url, key]).await;
    assert_eq!((right["isError"].clone(), said.as_str()), (json!(true), ""), "{right}");
    assert!(text(&right).contains("nonsense") && !text(&right).contains("WEIR_"), "{right}");

    let (without, said) = scraped_over_stdio(&service, &[url]).await;
    assert!(said.contains("WEIR_KEY is not set") && said.contains(service.base()), "{said}");
    let (wrong, _) = scraped_over_stdio(&service, &[url, ("WEIR_KEY", "wrong-key-of-the-tests")]).await;
    for refused in [without, wrong] {
        assert_eq!(refused["structuredContent"]["code"], "UNAUTHORIZED", "{refused}");
        let hint = format!("Set WEIR_KEY to a key of the Weir at {}", service.base());
        assert!(text(&refused).contains(&hint), "{refused}");
        assert!(!refused.to_string().contains("wrong-key-of-the-tests"), "{refused}");
    }

    let elsewhere = site.url("/").replace("http://", "http://name:secret-word@");
    let nowhere = format!("http://127.0.0.1:{}", weir_tests::free_port());
    for (url, words) in [(&elsewhere, "is no Weir"), (&nowhere, "cannot be reached")] {
        let (answer, _) = scraped_over_stdio(&service, &[("WEIR_URL", url), key]).await;
        let told = text(&answer);
        assert!(answer["isError"] == true && told.contains(words) && told.contains("WEIR_URL"), "{answer}");
        assert!(!told.contains("secret-word"), "{answer}");
    }
    site.end();
}

#[tokio::test]
async fn messages_are_answered_one_by_one_and_nothing_else_is() {
    let service = TestService::start(Database::Sqlite).await;
    let caller = service.caller();
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = json!({"name": "tests", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let answer = ask(caller, "initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "weir", "{answer}");
    }
    // No session: nothing is to be opened before, or after.
    let pong = send(caller, &json!({"jsonrpc": "2.0", "id": "a", "method": "ping"})).await;
    assert_eq!((pong.status, &pong.body), (200, &json!({"jsonrpc": "2.0", "id": "a", "result": {}})));
    assert!(pong.headers.get("mcp-session-id").is_none());
    let noted = send(caller, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    assert_eq!((noted.status, noted.text.as_str()), (202, ""));
    for method in [Method::GET, Method::DELETE] {
        let answer = caller.send(caller.request(method, "/mcp").header("accept", "text/event-stream")).await;
        assert_eq!((answer.status, answer.headers["allow"].to_str().unwrap()), (405, "POST"));
    }
    for (method, code) in [("tools/none", -32601), ("prompts/list", -32601), ("logging/setLevel", -32601)] {
        assert_eq!(ask(caller, method, json!({"level": "info"})).await["error"]["code"], code, "{method}");
    }
    let unknown = ask(caller, "tools/call", json!({"name": "firecrawl_find_tools", "arguments": {}})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let version = caller.request(Method::POST, "/mcp").header("mcp-protocol-version", "1999-01-01");
    let version = caller.send(version.json(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))).await;
    assert_eq!(version.status, 400, "{}", version.text);
}

#[tokio::test]
async fn a_hostile_body_is_refused_and_costs_little() {
    let service = TestService::start(Database::Sqlite).await;
    let caller = service.caller();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        ("[]", -32600),
        ("1", -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (&deep, -32700),
    ] {
        let request = caller.request(Method::POST, "/mcp").header("content-type", "application/json");
        let answer = caller.send(request.body(body.to_owned())).await;
        assert_eq!((answer.status, &answer.body["error"]["code"]), (400, &json!(code)), "{body:.40}: {}", answer.text);
    }
    let call = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"firecrawl_scrape","arguments":{arguments}}}}}"#
        )
    };
    let dense = format!(r#"{{"x":[{}0]}}"#, "[0],".repeat(2 * MB));
    let long = format!(r#"{{"x":"{}"}}"#, "x".repeat(11 * MB));
    for (arguments, status) in [(dense, 400), (long, 413)] {
        let request = caller.request(Method::POST, "/mcp").header("content-type", "application/json");
        let answer = caller.send(request.body(call(&arguments))).await;
        assert_eq!(answer.status, status, "{:.200}", answer.text);
        assert!(answer.is_base_error(), "{:.200}", answer.text);
    }
    // What cannot be read of arguments is told as the protocol has it.
    let deep = format!(r#"{{"x":{deep}}}"#);
    for arguments in [deep.as_str(), r#"{"x":1e999}"#] {
        let request = caller.request(Method::POST, "/mcp").header("content-type", "application/json");
        let answer = caller.send(request.body(call(arguments))).await;
        assert_eq!((answer.status, &answer.body["error"]["code"]), (200, &json!(-32602)), "{:.200}", answer.text);
    }
    // Arguments that are not an object are refused by the protocol, unknown options by the route.
    let odd = ask(caller, "tools/call", json!({"name": "firecrawl_scrape", "arguments": [1]})).await;
    assert!(odd["error"]["code"].is_number() || odd["result"]["isError"] == true, "{odd}");
    for arguments in [json!({}), json!({"url": 5}), json!({"url": "http://127.0.0.1:1/", "nonsense": true})] {
        assert_eq!(tool(caller, "firecrawl_scrape", arguments).await["isError"], true);
    }
    service.ready().await;
}

#[tokio::test]
async fn limits_of_a_route_hold_for_its_tool() {
    let site = FixtureSite::start().await;
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_RATE_LIMITS", "map=1").env("WEIR_ALLOW_NETS", "");
    let service = TestService::start_with(options).await;
    let arguments = json!({ "url": site.url("/") });
    let blocked = tool(service.caller(), "firecrawl_map", arguments.clone()).await;
    assert_eq!(blocked["structuredContent"]["code"], "unsafe_domain_blocked", "{blocked}");
    // The window is a fixed minute, which may turn once: one of two more is the second of its own.
    let mut limited = tool(service.caller(), "firecrawl_map", arguments.clone()).await;
    if limited["structuredContent"]["code"] == "unsafe_domain_blocked" {
        limited = tool(service.caller(), "firecrawl_map", arguments).await;
    }
    assert_eq!(limited["structuredContent"]["code"], "RATE_LIMITED", "{limited}");
    assert!(limited["structuredContent"]["retry_after_seconds"].is_number(), "{limited}");
}

#[tokio::test]
async fn without_keys_pages_from_elsewhere_are_kept_out() {
    let site = FixtureSite::start().await;
    let service = TestService::start_with(ServiceOptions::new(Database::Sqlite).env("WEIR_AUTH", "open")).await;
    let anybody = service.anonymous();
    let page = tool(&anybody, "firecrawl_scrape", json!({ "url": site.url("/small/1") })).await;
    assert!(page["structuredContent"]["markdown"].is_string(), "{page}");
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for (header, value) in
        [("origin", "https://evil.example"), ("host", "evil.example"), ("sec-fetch-site", "cross-site")]
    {
        let request = anybody.request(Method::POST, "/mcp").header(header, value).json(&message);
        assert_eq!(anybody.send(request).await.status, 403, "{header}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_lets_a_tool_end_as_its_route() {
    let site = FixtureSite::start().await;
    let mut service = TestService::start(Database::Sqlite).await;
    let caller = service.caller().clone();
    let url = site.url("/slow?ms=2000");
    let scrape = tokio::spawn(async move { tool(&caller, "firecrawl_scrape", json!({ "url": url })).await });
    wait_until("the page is being loaded", || async { (site.hit_count("/slow").await > 0).then_some(()) }).await;
    let mut api = service.take_api();
    assert!(api.terminate(Duration::from_secs(60)).success());
    let page = scrape.await.unwrap();
    assert!(page["structuredContent"]["metadata"].is_object(), "{page}");
}

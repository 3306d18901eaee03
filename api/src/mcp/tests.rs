#![allow(clippy::unwrap_used, reason = "tests")]
use serde_json::{Map, Value, json};

use super::arguments::parts;
use super::tools::{TOOLS, named};
use super::{resources, schema};
use crate::routes::operations;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn every_tool_is_a_route_of_the_document() {
    let routes = operations();
    for tool in TOOLS {
        let operation = schema::operation(&routes, tool.method.as_str(), tool.path)
            .unwrap_or_else(|| panic!("{}: no route", tool.name));
        assert_eq!(tool.path.contains('{'), tool.id.is_some(), "{}", tool.name);
        assert!(!operation.public, "{}", tool.name);
    }
}

#[tokio::test]
async fn what_a_tool_takes_is_what_its_route_takes() {
    let listed = schema::listed(operations).await;
    assert_eq!(listed.len(), TOOLS.len());
    for (tool, listed) in TOOLS.iter().zip(listed) {
        let fields = &listed.input_schema["properties"];
        assert_eq!(listed.input_schema["type"], "object", "{}", tool.name);
        assert!(fields.get("origin").is_none() && fields.get("integration").is_none(), "{}", tool.name);
        assert!(!Value::Object((*listed.input_schema).clone()).to_string().contains("$ref"), "{}", tool.name);
        assert!(!fields.to_string().contains("\"null\""), "{}: {fields}", tool.name);
    }
    let of = |name: &str| Value::Object(schema::input(&operations(), named(name).unwrap()));
    let scrape = of("firecrawl_scrape");
    assert_eq!(scrape["required"], json!(["url"]));
    assert_eq!(scrape["properties"]["timeout"]["maximum"], 300_000);
    assert!(scrape["properties"].get("toolDetail").is_none());
    assert_eq!(of("firecrawl_check_crawl_status")["required"], json!(["id"]));
    assert_eq!(of("firecrawl_check_crawl_status")["properties"]["limit"]["maximum"], 1_000);
    let interact = of("firecrawl_interact");
    for field in ["scrapeId", "url", "code", "prompt", "language", "timeout", "scrapeOptions"] {
        assert!(interact["properties"][field].is_object(), "{field}");
    }
    assert!(interact.get("required").is_none(), "{interact}");
    let parse = of("firecrawl_parse");
    assert!(
        ["waitFor", "actions", "location", "mobile", "profile", "lockdown"]
            .iter()
            .all(|name| parse["properties"].get(name).is_none()),
        "its route refuses them: {parse}"
    );
    assert!(parse["properties"]["formats"].is_object() && parse["properties"]["filePath"].is_object());
}

#[test]
fn arguments_of_the_official_server_become_the_routes() {
    let scrape = named("firecrawl_scrape").unwrap();
    let given = json!({
        "url": "https://a.example", "formats": ["markdown", "json", "screenshot"], "includeTags": [], "waitFor": null,
        "jsonOptions": {"prompt": "p"}, "screenshotOptions": {"fullPage": true}, "pdfOptions": {"maxPages": 2},
        "parsers": ["pdf"], "location": {},
    });
    let body = parts(scrape, object(given)).unwrap().body.unwrap();
    let formats = json!(["markdown", {"type": "json", "prompt": "p"}, {"type": "screenshot", "fullPage": true}]);
    let parsers = json!([{"type": "pdf", "maxPages": 2}]);
    assert_eq!(body, json!({"url": "https://a.example", "formats": formats, "parsers": parsers, "origin": "mcp"}));

    let stray = json!({"url": "u", "jsonOptions": {"prompt": "p"}});
    let body = parts(scrape, object(stray)).unwrap().body.unwrap();
    assert_eq!(body["jsonOptions"]["prompt"], "p", "left for the route to refuse");

    let crawl = named("firecrawl_crawl").unwrap();
    let given = json!({
        "url": "u", "webhook": "https://hook.example", "webhookHeaders": {"a": "b"},
        "scrapeOptions": {"formats": ["query"], "queryOptions": {"prompt": "p"}},
    });
    let body = parts(crawl, object(given)).unwrap().body.unwrap();
    assert_eq!(body["webhook"], json!({"url": "https://hook.example", "headers": {"a": "b"}}));
    assert_eq!(body["scrapeOptions"], json!({"formats": [{"type": "query", "prompt": "p"}]}));
    assert!(body.get("webhookHeaders").is_none());

    let batch = named("firecrawl_batch_scrape").unwrap();
    let given = json!({"urls": ["u"], "options": {"formats": ["links"]}});
    let body = parts(batch, object(given)).unwrap().body.unwrap();
    assert_eq!(body, json!({"urls": ["u"], "formats": ["links"], "origin": "mcp"}));

    let status = named("firecrawl_check_crawl_status").unwrap();
    let made = parts(status, object(json!({"id": "x/../y", "skip": 5}))).unwrap();
    assert_eq!((made.ids, made.body), (vec!["x/../y".to_owned()], None));
    assert_eq!(made.query, [("skip".to_owned(), "5".to_owned())]);
}

#[test]
fn monitors_are_said_whole_or_in_short() {
    let create = named("firecrawl_monitor_create").unwrap();
    let short = json!({"page": "https://a.example", "pages": ["https://b.example"], "goal": "prices", "timezone": "Asia/Tokyo",
        "scheduleText": "hourly", "webhookUrl": "https://hook.example", "email": "a@b.example"});
    let body = parts(create, object(short)).unwrap().body.unwrap();
    assert_eq!(body["targets"], json!([{"type": "scrape", "urls": ["https://a.example", "https://b.example"]}]));
    assert_eq!(body["schedule"], json!({"text": "hourly", "timezone": "Asia/Tokyo"}));
    assert_eq!((&body["name"], &body["goal"]), (&json!("Monitor https://a.example"), &json!("prices")));
    assert_eq!(body["webhook"]["url"], "https://hook.example");
    assert_eq!(body["notification"]["email"]["recipients"], json!(["a@b.example"]));
    let search = json!({"queries": ["rust"], "maxResults": 5, "goal": "g", "name": "n"});
    let body = parts(create, object(search)).unwrap().body.unwrap();
    assert_eq!(body["targets"], json!([{"type": "search", "queries": ["rust"], "maxResults": 5}]));
    let whole = json!({"name": "n", "schedule": {"cron": "0 9 * * *"}, "targets": [{"type": "scrape", "urls": ["u"]}]});
    let body = parts(create, object(json!({"body": whole}))).unwrap().body.unwrap();
    assert_eq!(body["targets"], whole["targets"]);
    let update =
        parts(named("firecrawl_monitor_update").unwrap(), object(json!({"id": "m", "body": {"status": "paused"}})));
    let update = update.unwrap();
    assert_eq!((update.ids, update.body.unwrap()["status"].clone()), (vec!["m".to_owned()], json!("paused")));
    let check = named("firecrawl_monitor_check").unwrap();
    let made = parts(check, object(json!({"id": "m", "checkId": "c", "pageStatus": "changed", "limit": 5}))).unwrap();
    assert_eq!(made.ids, ["m", "c"]);
    for (tool, given, missing) in [
        ("firecrawl_monitor_get", json!({}), "id is required."),
        ("firecrawl_monitor_get", json!({"id": " "}), "id is required."),
        ("firecrawl_monitor_check", json!({"id": "m"}), "checkId is required."),
    ] {
        assert_eq!(parts(named(tool).unwrap(), object(given)).unwrap_err(), missing);
    }
    assert!(made.query.contains(&("status".to_owned(), "changed".to_owned())), "{:?}", made.query);
}

#[test]
fn addresses_of_resources_name_a_job_or_nothing() {
    let (job, id, query) = resources::read("weir://crawl/0190c0de?skip=5").unwrap();
    assert_eq!((job.name(), id.as_str()), ("crawl", "0190c0de"));
    assert_eq!(query, [("skip".to_owned(), "5".to_owned())]);
    for other in
        ["", "weir://crawl", "weir://crawl/", "weir://crawl/a/b", "weir://key/1", "https://crawl/1", "file:///etc"]
    {
        assert!(resources::read(other).is_none(), "{other}");
    }
    let next = json!({"next": "http://h/v2/crawl/1?skip=7"});
    let job = super::tools::JobLink::Crawl;
    assert_eq!(resources::of_next(job, "1", &next).unwrap().uri, "weir://crawl/1?skip=7");
    assert!(resources::of_next(job, "1", &json!({})).is_none());
}

//! Format `json` in mode `learn` (wire 3.4): a scripted language model writes extractors for pages of ten templates, which
//! then are read without it; changed templates, models that write nonsense, workers that are killed, teams as walls.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use weir_shared::fault::{ENVIRONMENT, FaultPoint};
use weir_tests::{
    Caller, Database, FixtureSite, ModelStandIn, OwnPages, Said, ServiceOptions, TestService, both_databases,
    documents_of, finished, first_on,
};

const BOUND: Duration = Duration::from_secs(120);

const TEMPLATES: [&str; 10] =
    ["product", "article", "job", "event", "recipe", "hotel", "book", "person", "car", "thread"];

fn object(fields: Value) -> Value {
    let required: Vec<String> = fields.as_object().unwrap().keys().cloned().collect();
    json!({"type": "object", "properties": fields, "required": required})
}

fn schema(template: &str) -> Value {
    let (text, number, whole) = (json!({"type": "string"}), json!({"type": "number"}), json!({"type": "integer"}));
    let flag = json!({"type": "boolean"});
    let list = |item: Value| json!({"type": "array", "items": item});
    object(match template {
        "product" => json!({"name": text, "price": number, "was": {"type": ["number", "null"]}, "sku": text,
            "inStock": flag, "tags": list(text.clone()), "image": text}),
        "article" => json!({"title": text, "author": text, "day": text, "lead": text}),
        "job" => {
            json!({"title": text, "company": text, "salaryFrom": whole, "remote": flag, "skills": list(text.clone())})
        }
        "event" => json!({"name": text, "city": text, "start": text, "seats": whole}),
        "recipe" => json!({"name": text, "minutes": whole, "vegan": flag,
            "ingredients": list(object(json!({"amount": text, "what": text})))}),
        "hotel" => json!({"name": text, "stars": whole, "rating": number,
            "rooms": list(object(json!({"kind": text, "price": number})))}),
        "book" => json!({"title": text, "authors": list(text.clone()), "year": whole, "pages": whole, "isbn": text}),
        "person" => json!({"name": text, "role": text, "email": text, "phone": {"type": ["string", "null"]}}),
        "car" => json!({"name": text, "year": whole, "km": whole, "fuel": text}),
        _ => json!({"title": text, "views": whole, "posts": list(object(json!({"by": text, "text": text})))}),
    })
}

/// What a good model writes for a template; `new`: what its classes begin with.
fn extractor(template: &str, new: &str) -> Value {
    let class = |name: &str| format!(".{new}{name}");
    let inside = |name: &str, rest: &str| format!(".{new}{name} {rest}");
    let heading = json!({"select": "main h1, main h2"});
    json!({"fields": match template {
        "product" => json!({
            "name": {"select": class("name")}, "price": {"select": class("price"), "steps": [{"number": ","}]},
            "was": {"select": class("was"), "steps": [{"number": ","}]},
            "sku": {"select": inside("specs", "tr:nth-child(1) td")},
            "inStock": {"select": inside("specs", "tr:nth-child(2) td"),
                "steps": [{"map": {"in stock": true, "sold out": false}}]},
            "tags": {"select": class("tags"), "steps": [{"split": ","}]},
            "image": {"select": class("photo"), "take": {"attribute": "src"}, "steps": ["url"]}}),
        "article" => json!({"title": heading, "author": {"select": inside("byline", "a")},
            "day": {"select": "time", "steps": [{"date": "%d.%m.%Y"}]}, "lead": {"select": class("lead")}}),
        "job" => json!({"title": {"select": class("role")}, "company": {"select": inside("firm", "b")},
            "salaryFrom": {"select": class("pay"), "steps": [{"match": "[0-9,]+"}, "integer"]},
            "remote": {"select": class("remote"), "take": "exists"},
            "skills": {"each": inside("skills", "li"), "item": {}}}),
        "event" => json!({"name": heading, "city": {"select": "dd"},
            "start": {"select": class("event"), "take": {"attribute": "data-start"}},
            "seats": {"select": "dd", "at": 1, "steps": [{"before": " "}, "integer"]}}),
        "recipe" => json!({"name": heading, "minutes": {"select": inside("facts", "i"), "steps": ["integer"]},
            "vegan": {"select": inside("facts", "em"), "steps": [{"map": {"vegan": true, "with butter": false}}]},
            "ingredients": {"each": inside("parts", "li"), "item": {"fields": {
                "amount": {"select": class("q")}, "what": {"select": class("w")}}}}}),
        "hotel" => json!({"name": {"select": "main h1, main h2", "take": "own"},
            "stars": {"select": class("stars"), "take": {"attribute": "data-stars"}, "steps": ["integer"]},
            "rating": {"select": class("rate"), "steps": ["number"]},
            "rooms": {"each": inside("rooms", "tbody tr"), "item": {"fields": {
                "kind": {"select": "td"}, "price": {"select": "td", "at": -1, "steps": [{"number": ","}]}}}}}),
        "book" => json!({"title": heading, "authors": {"select": class("by"), "steps": [{"split": ";"}]},
            "year": {"select": class("print"), "steps": [{"match": "^\\d+"}, "integer"]},
            "pages": {"select": class("print"), "steps": [{"match": "(\\d+) pages"}, "integer"]},
            "isbn": {"select": class("print"), "steps": [{"after": "ISBN "}]}}),
        "person" => json!({"name": {"select": "h3"}, "role": {"select": class("role")},
            "email": {"select": class("mail"), "take": {"attribute": "href"}, "steps": [{"after": "mailto:"}]},
            "phone": {"select": class("phone")}}),
        "car" => json!({"name": {"select": "#car"},
            "year": {"select": inside("data", "li"), "steps": [{"after": ":"}, "integer"]},
            "km": {"select": inside("data", "li"), "at": 1, "steps": [{"after": ":"}, "integer"]},
            "fuel": {"select": inside("data", "li"), "at": 2, "steps": [{"after": ":"}]}}),
        _ => json!({"title": heading, "views": {"select": class("views"), "steps": ["integer"]},
            "posts": {"each": class("post"), "item": {"fields": {
                "by": {"select": "strong"}, "text": {"select": class("text")}}}}}),
    }})
}

/// What pages of the templates hold, by path.
type Truth = Arc<BTreeMap<String, Value>>;

async fn truth_of(site: &FixtureSite, templates: &[&str], count: usize) -> Truth {
    let mut truth = BTreeMap::new();
    for template in templates {
        for n in 0..count {
            let path = format!("/lesson/{template}/{n}");
            let mut data = site.data(&path).await;
            if let Some(image) = data.get_mut("image") {
                *image = json!(site.url(&image.as_str().unwrap()[1..]));
            }
            truth.insert(path, data);
        }
    }
    Arc::new(truth)
}

/// The path of the first page that the model is shown.
fn path_in(text: &str) -> String {
    let rest = text.split("/lesson/").nth(1).unwrap_or_else(|| panic!("no page in {text:.300}"));
    let path: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '/').collect();
    format!("/lesson/{path}")
}

fn told(asked: &Value) -> &str {
    asked["messages"][1]["content"].as_str().unwrap()
}

/// A model that reads well, and writes what `write` says for a template in either design.
async fn model(truth: Truth, write: impl Fn(&str, &str) -> Value + Send + Sync + 'static) -> ModelStandIn {
    ModelStandIn::answering(move |name, asked| {
        let text = told(asked);
        let path = path_in(text);
        match name {
            // What is no lesson has a name of its own.
            "data" => Said::json(truth.get(&path).unwrap_or(&json!({"name": "Links"}))),
            "extractor" => {
                let new = if text.contains("class=\"new-") { "new-" } else { "" };
                let template = path.split('/').nth(2).unwrap();
                Said::json(&json!({ "extractor": write(template, new) }))
            }
            other => panic!("asked for {other}"),
        }
    })
    .await
}

fn options(database: Database, model: &ModelStandIn) -> ServiceOptions {
    let options = ServiceOptions::new(database).env("WEIR_PAGE_BROWSERS", "0");
    options.env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m-1")
}

/// What the API process remembers of a team is a moment old.
async fn zero_retention_holds(caller: &Caller, body: &Value) {
    let is_served = || async { (caller.post("/v2/scrape", body).await.status == 200).then_some(()) };
    weir_tests::wait_until_within(BOUND, "the team keeps nothing", is_served).await;
}

fn learn(schema: &Value) -> Value {
    json!([{"type": "json", "schema": schema, "mode": "learn"}])
}

async fn batch(caller: &Caller, urls: &[String], schema: &Value) -> Vec<Value> {
    let body = json!({ "urls": urls, "formats": learn(schema), "maxAge": 0 });
    let id = caller.post("/v2/batch/scrape", &body).await.id();
    let status = finished(caller, &id, BOUND).await;
    let documents = documents_of(caller, &id).await;
    let billed: i64 = documents.iter().map(|document| document["metadata"]["creditsUsed"].as_i64().unwrap()).sum();
    assert_eq!((documents.len(), &status["creditsUsed"]), (urls.len(), &json!(billed)), "{status:.400}");
    documents
}

/// How many were read by the model. Each costs what it says, and holds what its page does.
fn by_model(documents: &[Value], truth: &Truth) -> usize {
    let mut by_model = 0;
    for document in documents {
        let meta = &document["metadata"];
        let path = path_in(meta["sourceURL"].as_str().unwrap());
        assert!(is_same(&document["json"], &truth[&path]), "{path}: {} is not {}", document["json"], truth[&path]);
        let is_model = meta["readBy"] == "model";
        assert!(is_model || meta["readBy"] == "extractor", "{meta}");
        assert_eq!(meta["creditsUsed"], if is_model { 5 } else { 1 }, "{meta}");
        by_model += usize::from(is_model);
    }
    by_model
}

/// The same values; whole numbers may be written either way.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            let is_in = |(name, value): (&String, &Value)| b.get(name).is_some_and(|other| is_same(value, other));
            a.len() == b.len() && a.iter().all(is_in)
        }
        (a, b) => a == b,
    }
}

/// Questions to the model so far about a template, by what was asked for.
fn questions(model: &ModelStandIn, template: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (_, asked) in model.asked() {
        if path_in(told(&asked)).split('/').nth(2) == Some(template) {
            let name = asked["response_format"]["json_schema"]["name"].as_str().unwrap().to_owned();
            *counts.entry(name).or_default() += 1;
        }
    }
    counts
}

fn urls(site: &FixtureSite, template: &str, pages: std::ops::Range<usize>) -> Vec<String> {
    pages.map(|n| site.url(&format!("/lesson/{template}/{n}"))).collect()
}

first_on! {
    postgres:

    async fn a_thousand_pages_cost_ten_questions_though_the_third_extractor_is_the_first_good_one(database) {
        let site = FixtureSite::start().await;
        let truth = truth_of(&site, &["book"], 1_000).await;
        let tries = AtomicUsize::new(0);
        let write = move |template: &str, new: &str| match tries.fetch_add(1, Ordering::SeqCst) % 3 {
            2 => extractor(template, new),
            _ => json!({"fields": {"title": {"select": "h1"}}}),
        };
        let model = model(Arc::clone(&truth), write).await;
        let service = TestService::start_with(options(database, &model).workers(2)).await;
        let documents = batch(service.caller(), &urls(&site, "book", 0..1_000), &schema("book")).await;
        let (read, asked) = (by_model(&documents, &truth), questions(&model, "book"));
        println!("{read} of 1000 by the model, asked {asked:?}");
        // Three pages to learn from, and the checks of page 50 and of the 500th after it.
        assert_eq!((asked["extractor"], asked["data"]), (3, 5));
        assert!(asked.values().sum::<usize>() <= 10, "{asked:?}");
    }
}

both_databases! {
    async fn a_page_is_parsed_once_for_its_text_and_its_extractors(database) {
        let site = FixtureSite::start().await;
        let truth = truth_of(&site, &["book"], 70).await;
        let model = model(Arc::clone(&truth), extractor).await;
        let service = TestService::start_with(options(database, &model)).await;
        let looked_again = || service.worker_figure(0, "weir_extractor_second_looks_total");
        let read_without = || service.worker_figure(0, "weir_extracted_pages_total");
        batch(service.caller(), &urls(&site, "book", 0..30), &schema("book")).await;
        // Pages that wait in their slots for an extractor are parsed once more when it is there.
        let (learning, free) = (looked_again().await, read_without().await);
        assert!(learning <= 16, "{learning} of 30 pages while it was learned");
        let documents = batch(service.caller(), &urls(&site, "book", 30..70), &schema("book")).await;
        let read = by_model(&documents, &truth) as u64;
        // One that is held against the model's reading, and agrees, counts as neither.
        assert!((39 - read..=40 - read).contains(&(read_without().await - free)), "{read} by the model");
        assert_eq!(looked_again().await, learning, "pages were parsed again");
    }
}

first_on! {
    postgres:

    async fn a_changed_template_is_noticed_within_three_pages_and_relearned_with_ten_questions(database) {
        let site = FixtureSite::start().await;
        let kinds = ["product", "job", "person"];
        let truth = truth_of(&site, &kinds, 40).await;
        let tries = AtomicUsize::new(0);
        let write = move |template: &str, new: &str| match tries.fetch_add(1, Ordering::SeqCst) % 3 {
            2 => extractor(template, new),
            _ => json!({"fields": {}}),
        };
        let model = model(Arc::clone(&truth), write).await;
        let service = TestService::start_with(options(database, &model)).await;
        for kind in kinds {
            let schema = schema(kind);
            by_model(&batch(service.caller(), &urls(&site, kind, 0..20), &schema).await, &truth);
            let before: usize = questions(&model, kind).values().sum();
            site.change(&format!("lesson/{kind}"), 2).await;
            let mut noticed = Vec::new();
            for url in urls(&site, kind, 20..23) {
                noticed.push(by_model(&batch(service.caller(), &[url], &schema).await, &truth) == 1);
            }
            assert!(noticed.contains(&true), "{kind}: {noticed:?}");
            let documents = batch(service.caller(), &urls(&site, kind, 23..40), &schema).await;
            let read = by_model(&documents, &truth);
            assert!(read <= 4, "{kind}: {read} of 17 by the model, so it is learned again");
            let after: usize = questions(&model, kind).values().sum();
            println!("{kind}: noticed {noticed:?}, {} questions", after - before);
            assert!((6..=10).contains(&(after - before)), "{kind}: {:?}", questions(&model, kind));
        }
    }
}

both_databases! {
    async fn templates_of_one_site_are_told_apart_and_crawls_and_extracts_learn_too(database) {
        let site = FixtureSite::start().await;
        let kinds = ["event", "thread", "person"];
        let truth = truth_of(&site, &kinds, 40).await;
        // One wish for all three: what each page is called.
        let names: BTreeMap<String, Value> = truth
            .iter()
            .map(|(path, data)| (path.clone(), json!({"name": data.get("name").or(data.get("title"))})))
            .collect();
        let names = Arc::new(names);
        let write = |template: &str, _: &str| {
            let select = if template == "person" { "h3" } else { "main h1" };
            json!({"fields": {"name": {"select": select}}})
        };
        let model = model(Arc::clone(&names), write).await;
        let service = TestService::start_with(options(database, &model)).await;
        let schema = object(json!({"name": {"type": "string"}}));
        let mixed: Vec<String> = (0..30).flat_map(|n| kinds.map(|kind| site.url(&format!("/lesson/{kind}/{n}")))).collect();
        let read = by_model(&batch(service.caller(), &mixed, &schema).await, &names);
        assert!(read <= 15, "three of each, and what was under way: {read}");

        // A crawl has the extractors of the batch.
        let asked = model.asked().len();
        let start = site.url("/urls?prefix=/lesson/person/&n=20");
        let body = json!({ "url": start, "limit": 21, "crawlEntireDomain": true,
            "scrapeOptions": {"formats": learn(&schema), "maxAge": 0}, "sitemap": "skip", "ignoreQueryParameters": false });
        let id = service.post("/v2/crawl", &body).await.id();
        let base = format!("/v2/crawl/{id}");
        weir_tests::wait_until_within(BOUND, "the crawl ends", || async {
            let status = service.get(&base).await.ok();
            (status["status"] != "scraping").then_some(())
        })
        .await;
        let documents = service.get(&base).await.ok()["data"].as_array().unwrap().clone();
        let lessons: Vec<Value> = documents
            .into_iter()
            .filter(|document| document["metadata"]["sourceURL"] != start)
            .collect();
        assert_eq!((lessons.len(), by_model(&lessons, &names)), (20, 0));
        assert!(model.asked().len() - asked <= 2, "the page of links is no lesson");

        // So has an extraction, whose pages then cost as plain ones. What it requires is not required of each page, so its
        // wish is another one.
        let body = json!({ "urls": urls(&site, "thread", 30..40), "schema": schema, "mode": "learn" });
        let id = service.post("/v2/extract", &body).await.id();
        let status = crate::extract::ended(service.caller(), &format!("/v2/extract/{id}")).await;
        assert_eq!(status["status"], "completed", "{status}");
        let all = names.iter().filter(|(path, _)| path.starts_with("/lesson/thread/3")).map(|(_, data)| &data["name"]);
        assert!(all.clone().any(|name| *name == status["data"]["name"]), "{status}");
        let credits = status["creditsUsed"].as_i64().unwrap();
        assert!((22..50).contains(&credits), "three pages at 5 and seven at 1 or some more: {credits}");
    }

    async fn other_teams_do_not_use_it_and_nothing_is_learned_of_what_is_not_kept(database) {
        let site = FixtureSite::start().await;
        let truth = truth_of(&site, &["book"], 30).await;
        let model = model(Arc::clone(&truth), extractor).await;
        let service = TestService::start_with(options(database, &model)).await;
        let schema = schema("book");
        let own = by_model(&batch(service.caller(), &urls(&site, "book", 0..10), &schema).await, &truth);
        assert_eq!(own, 3);
        let other = service.new_team("others");
        let body = |n: usize| json!({ "url": site.url(&format!("/lesson/book/{n}")), "formats": learn(&schema), "maxAge": 0 });
        let document = other.post("/v2/scrape", &body(11)).await.ok()["data"].clone();
        assert_eq!(by_model(&[document], &truth), 1, "another team's extractor is not used");
        let document = service.post("/v2/scrape", &body(12)).await.ok()["data"].clone();
        assert_eq!(by_model(&[document], &truth), 0);

        // What keeps nothing is read by what is there, and leaves nothing to learn from.
        service.cli(&["team", "set", "others", "--zero-data-retention", "on"]);
        let unkept = |n: usize| {
            let mut body = body(n);
            body["zeroDataRetention"] = json!(true);
            body
        };
        zero_retention_holds(&other, &unkept(13)).await;
        let asked = model.asked().len();
        for n in 13..19 {
            let data = other.post("/v2/scrape", &unkept(n)).await.ok()["data"].clone();
            assert!(data["warning"].as_str().unwrap().contains("nothing was learned"), "{data}");
            assert_eq!((&data["metadata"]["readBy"], &data["metadata"]["creditsUsed"]), (&json!("model"), &json!(6)));
        }
        assert_eq!(model.asked().len() - asked, 6, "each by the model, and no extractor is written");
        service.cli(&["team", "set", "tests", "--zero-data-retention", "on"]);
        zero_retention_holds(service.caller(), &unkept(20)).await;
        let data = service.post("/v2/scrape", &unkept(20)).await.ok()["data"].clone();
        assert_eq!((&data["metadata"]["readBy"], &data["metadata"]["creditsUsed"]), (&json!("extractor"), &json!(2)));
        let isbn = truth["/lesson/book/15"]["isbn"].as_str().unwrap();
        let (tables, _) = service.tables_with(isbn).await;
        assert!(tables.is_empty(), "{tables:?}");
    }
}

first_on! {
    sqlite:

    async fn a_worker_killed_while_an_extractor_is_written_learns_it_once(database) {
        for point in [FaultPoint::WritingBegun, FaultPoint::WritingDone] {
            let site = FixtureSite::start().await;
            let truth = truth_of(&site, &["job"], 20).await;
            let model = model(Arc::clone(&truth), extractor).await;
            let fault = format!("{}=kill", point.as_str());
            let mut service = TestService::start_with(options(database.clone(), &model).env(ENVIRONMENT, &fault)).await;
            service.remove_env(ENVIRONMENT);
            let caller = service.caller().clone();
            let body = json!({ "urls": urls(&site, "job", 0..20), "formats": learn(&schema("job")), "maxAge": 0 });
            let id = caller.post("/v2/batch/scrape", &body).await.id();
            let status = service.await_worker(0, BOUND);
            assert_eq!(status.signal(), Some(9), "the worker gets to {fault}: {status}");
            service.start_worker(0);
            let status = finished(&caller, &id, BOUND).await;
            let documents = documents_of(&caller, &id).await;
            let (read, asked) = (by_model(&documents, &truth), questions(&model, "job"));
            println!("{fault}: {read} of 20 by the model, asked {asked:?}");
            assert_eq!((documents.len(), &status["creditsUsed"]), (20, &json!(20 + 4 * read)), "{fault}: {status}");
            let written = if point == FaultPoint::WritingBegun { 1 } else { 2 };
            assert_eq!(asked["extractor"], written, "{fault}: {asked:?}");
            // The third page's end may have died with the worker: it is read again, by then without the model or with it.
            assert!(asked["data"] <= 5 && read <= 4, "{fault}: {read} {asked:?}");
        }
    }
}

first_on! {
    sqlite:

    async fn a_hundred_pages_of_each_of_ten_templates_are_learned_and_relearned(database) {
        let site = FixtureSite::start().await;
        let truth = truth_of(&site, &TEMPLATES, 120).await;
        let model = model(Arc::clone(&truth), extractor).await;
        let service = TestService::start_with(options(database, &model)).await;
        for template in TEMPLATES {
            let schema = schema(template);
            let documents = batch(service.caller(), &urls(&site, template, 0..100), &schema).await;
            let (read, asked) = (by_model(&documents, &truth), questions(&model, template));
            println!("{template}: {read} of 100 by the model, asked {asked:?}");
            let calls: usize = asked.values().sum();
            assert!(calls <= 10 && (3..=8).contains(&read), "{template}: {read} by the model, {asked:?}");

            site.change(&format!("lesson/{template}"), 2).await;
            let documents = batch(service.caller(), &urls(&site, template, 100..120), &schema).await;
            let (read, all) = (by_model(&documents, &truth), questions(&model, template));
            let more = all.values().sum::<usize>() - calls;
            println!("{template}: {read} of 20 by the model in another design, {more} questions");
            // Three to learn from; what looks right in the old design is held against the model's reading up to twice, and
            // agrees now and then, so that another page is learned from.
            assert!((3..=6).contains(&read) && more <= 8, "{template}: {read} by the model, {all:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_writes_nonsense_is_bounded_and_pages_are_read_by_it() {
    let site = FixtureSite::start().await;
    let truth = truth_of(&site, &["recipe"], 12).await;
    let good = || extractor("recipe", "");
    let changed = |change: &dyn Fn(&mut Map<String, Value>)| {
        let mut form = good();
        change(form["fields"].as_object_mut().unwrap());
        form
    };
    let slow = |fields: &mut Map<String, Value>| {
        fields["name"] = json!({"select": "main h1", "steps": [{"match": "(a*)*(a{1,90}){1,90}b"}]});
    };
    for (case, form) in [
        ("words", json!("document.querySelector('h1')")),
        ("code", json!({"script": "while(true){}"})),
        ("a huge form", json!({"fields": {"name": {"select": "h1", "default": "x".repeat(80_000)}}})),
        ("a selector that is none", changed(&|fields| fields["name"] = json!({"select": "h1["}))),
        ("a selector that looks below all", changed(&|fields| fields["name"] = json!({"select": ":has(:is(*) *)"}))),
        ("a pattern that grows", changed(&slow)),
        ("the wrong type", changed(&|fields| fields["minutes"] = json!({"select": "h1"}))),
        ("a field less", changed(&|fields| _ = fields.remove("vegan"))),
        ("what the pages do not say", changed(&|fields| fields["name"] = json!({"default": "Salad"}))),
        ("an address of its own", changed(&|fields| fields["name"] = json!({"default": "https://evil.test/"}))),
    ] {
        let model = model(Arc::clone(&truth), move |_, _| form.clone()).await;
        let service = TestService::start_with(options(Database::Sqlite, &model)).await;
        let documents = batch(service.caller(), &urls(&site, "recipe", 0..12), &schema("recipe")).await;
        assert_eq!(by_model(&documents, &truth), 12, "{case}");
        let asked = questions(&model, "recipe");
        assert_eq!((asked["data"], asked["extractor"]), (12, 3), "{case}: each page once, and three tries");
        let warned = documents
            .iter()
            .filter(|document| document["warning"].as_str().is_some_and(|text| text.contains("none could be learned")));
        assert_eq!(warned.count(), 9, "{case}: all but those that were to be learned from");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_pages_of_a_model_that_writes_nonsense_are_read_by_it_and_say_so() {
    let site = FixtureSite::start().await;
    let truth = truth_of(&site, &["book"], 1_000).await;
    let model = model(Arc::clone(&truth), |_, _| json!({"fields": {"title": {"select": "h1"}}})).await;
    let service = TestService::start_with(options(Database::Sqlite, &model).workers(2)).await;
    let documents = batch(service.caller(), &urls(&site, "book", 0..1_000), &schema("book")).await;
    assert_eq!(by_model(&documents, &truth), 1_000, "answers are what was asked for");
    let asked = questions(&model, "book");
    assert_eq!((asked["data"], asked["extractor"]), (1_000, 3), "no page twice, and three tries for all of them");
    let is_told = |document: &&Value| {
        let warning = document["warning"].as_str().unwrap_or_default();
        warning.contains("none could be learned") && warning.contains("costs what the model's reading costs")
    };
    let untold: Vec<_> = documents.iter().filter(|document| !is_told(document)).collect();
    assert_eq!(untold.len(), 3, "those that were to be learned from: {untold:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_never_agrees_with_itself_or_fails_is_left_alone() {
    let site = FixtureSite::start().await;
    let schema = schema("car");
    for (case, said) in [("fails", Said::Status(400)), ("never agrees", Said::Text(String::new()))] {
        let model = ModelStandIn::answering(move |name, asked| match (name, &said) {
            ("data" | "", Said::Text(_)) => {
                // Each question has a number of its own, in the fence around its page.
                let n: u64 = told(asked).bytes().map(u64::from).sum();
                Said::json(&json!({"name": format!("Car {n}"), "year": n, "km": n, "fuel": "Air"}))
            }
            ("extractor", Said::Text(_)) => Said::json(&json!({ "extractor": extractor("car", "") })),
            (_, said) => said.clone(),
        })
        .await;
        let service = TestService::start_with(options(Database::Sqlite, &model)).await;
        let body = json!({ "urls": urls(&site, "car", 0..10), "formats": learn(&schema), "maxAge": 0 });
        let id = service.post("/v2/batch/scrape", &body).await.id();
        let status = finished(service.caller(), &id, BOUND).await;
        let (documents, failed) = (documents_of(service.caller(), &id).await.len(), case == "fails");
        let expected = if failed { (0, Some(0)) } else { (10, Some(50)) };
        assert_eq!((documents, status["creditsUsed"].as_i64()), expected, "{case}");
        let written = model.asked().iter().filter(|(_, asked)| told(asked).contains("Its markup")).count();
        assert_eq!(written, if failed { 0 } else { 3 }, "{case}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_that_move_are_noticed_although_they_look_right() {
    let page = |n: usize, is_swapped: bool| {
        let rows = [
            format!("<tr><th>Brand</th><td>Firm {n}x</td></tr>"),
            format!("<tr><th>Maker</th><td>Works {n}x</td></tr>"),
        ];
        let (first, second) = if is_swapped { (1, 0) } else { (0, 1) };
        format!("<main><h1>Thing {n}</h1><table>{}{}</table></main>", rows[first], rows[second])
    };
    let model = ModelStandIn::answering(|name, asked| {
        let text = told(asked);
        let n: String = text.split("/t/").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
        let is_swapped = text.find("Maker") < text.find("Brand");
        Said::json(&match name {
            "data" => json!({"brand": format!("Firm {n}x")}),
            _ if is_swapped => json!({"extractor": {"fields": {"brand": {"select": "tr:nth-child(2) td"}}}}),
            _ => json!({"extractor": {"fields": {"brand": {"select": "td"}}}}),
        })
    })
    .await;
    let (service, pages) = (TestService::start_with(options(Database::Sqlite, &model)).await, OwnPages::start().await);
    let schema = object(json!({"brand": {"type": "string"}}));
    let scrape = |n: usize, is_swapped: bool| {
        let body = json!({ "url": pages.put(&format!("/t/{n}"), &page(n, is_swapped)), "formats": learn(&schema), "maxAge": 0 });
        let service = &service;
        async move {
            let data = service.post("/v2/scrape", &body).await.ok()["data"].clone();
            assert_eq!(data["json"]["brand"], format!("Firm {n}x"), "{data}");
            data["metadata"]["readBy"] == "model"
        }
    };
    let mut by_model = Vec::new();
    for n in 0..16 {
        by_model.push(scrape(n, n >= 8).await);
    }
    assert_eq!(by_model[..8], [true, true, true, false, false, false, false, false]);
    assert!(by_model[8] && by_model[8..].iter().filter(|by| **by).count() <= 4, "{by_model:?}");
    assert_eq!(by_model[12..], [false; 4], "{by_model:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_model_or_a_schema_it_is_refused() {
    let none = ServiceOptions::new(Database::Sqlite).env("WEIR_PAGE_BROWSERS", "0");
    let (service, pages) = (TestService::start_with(none).await, OwnPages::start().await);
    let url = pages.put("/x", "<h1>X</h1>");
    let schema = object(json!({"name": {"type": "string"}}));
    let refused = service.post("/v2/scrape", &json!({ "url": url, "formats": learn(&schema) })).await;
    assert_eq!((refused.status, refused.code()), (400, "SCRAPE_MODEL_NOT_CONFIGURED"), "{}", refused.text);
    let both = json!(["markdown", {"type": "json", "schema": schema, "mode": "learn"}]);
    let document =
        service.post("/v2/scrape", &json!({ "url": url, "formats": both, "maxAge": 0 })).await.ok()["data"].clone();
    assert!(document["warning"].as_str().unwrap().contains("SCRAPE_MODEL_NOT_CONFIGURED"), "{document}");
    assert!(document["metadata"].get("readBy").is_none() && document["metadata"]["creditsUsed"] == 1, "{document}");
    for (formats, words) in [
        (json!([{"type": "json", "mode": "learn"}]), "The mode learn needs a schema"),
        (json!([{"type": "json", "mode": "learn", "schema": {}}]), "The mode learn needs a schema"),
        (json!([{"type": "json", "mode": "guess", "schema": schema}]), "mode"),
    ] {
        let refused = service.post("/v2/scrape", &json!({ "url": url, "formats": formats })).await;
        assert_eq!((refused.status, refused.code()), (400, "BAD_REQUEST"), "{}", refused.text);
        assert!(refused.error().contains(words), "{}", refused.text);
    }
    let refused = service.post("/v2/extract", &json!({ "urls": [url], "prompt": "x", "mode": "learn" })).await;
    assert!(refused.status == 400 && refused.error().contains("schema"), "{}", refused.text);
}

//! Rates and queues of a team, over all API processes (spec 7.2, wire 2.1 and 11).

use weir_shared::{clock, random};

use futures_util::future::join_all;
use serde_json::json;
use weir_tests::{Answer, Caller, Database, FixtureSite, ServiceOptions, TestService, both_databases, wait_until};

fn minute() -> i64 {
    clock::of_machine().0 / 60_000
}

/// Sends `count` requests to the two processes in turn, many at once, with the key of a team whose minute is fresh.
/// Returns how many were admitted; tries again with another team when the minute turns meanwhile.
async fn admitted_in_a_minute(
    service: &TestService,
    processes: &[Caller; 2],
    count: usize,
    ask: impl AsyncFn(Caller) -> Answer,
) -> usize {
    for _ in 0..5 {
        let key = service.new_team(&random::id().to_string()).key;
        let team = processes.each_ref().map(|process| Caller::new(&process.base, key.as_deref()));
        let (begun, mut answers) = (minute(), Vec::new());
        while answers.len() < count {
            answers.extend(join_all((0..20).map(|n| ask(team[n % 2].clone()))).await);
        }
        if minute() == begun {
            return admitted(&answers);
        }
    }
    panic!("the machine is too slow for {count} requests in a minute");
}

fn admitted(answers: &[Answer]) -> usize {
    for answer in answers.iter().filter(|answer| answer.status == 429) {
        assert!(answer.is_base_error() && answer.code() == "RATE_LIMITED", "{}", answer.text);
        let seconds = answer.headers["retry-after"].to_str().unwrap();
        assert!(answer.error().contains(&format!("retry after {seconds}s")), "{}", answer.text);
        assert!((1..=60).contains(&seconds.parse::<u64>().unwrap()));
    }
    answers.iter().filter(|answer| answer.status != 429).count()
}

both_databases! {
    async fn rates_hold_across_processes(database) {
        let options = ServiceOptions::new(database).env("WEIR_RATE_LIMITS", "map=30,status=1000");
        let service = TestService::start_with(options).await;
        let (_process, other) = service.start_another_api().await;
        let processes = [service.caller().clone(), other];

        let reads = admitted_in_a_minute(&service, &processes, 1_300, async |caller| caller.get("/v2/crawl/active").await).await;
        assert!((1_000..=1_050).contains(&reads), "{reads}");
        let preview = json!({ "url": "https://example.com", "prompt": "only the blog" });
        let previews = admitted_in_a_minute(&service, &processes, 60, async |caller| {
            caller.post("/v2/crawl/params-preview", &preview).await
        })
        .await;
        assert_eq!(previews, 30, "small limits are exact");
    }
}

#[tokio::test]
async fn a_teams_own_rate_and_queue_come_first() {
    let site = FixtureSite::start().await;
    let service =
        TestService::start_with(ServiceOptions::new(Database::Sqlite).env("WEIR_RATE_LIMITS", "scrape=1000")).await;
    let small = service.new_team("small");
    let set = service.cli_json(&[
        "team",
        "set",
        "small",
        "--rate",
        "scrape=1",
        "--queue",
        "4",
        "--concurrency",
        "1",
        "--json",
    ]);
    assert_eq!((&set["queue"], &set["rates"]["scrape"]), (&json!(4), &json!(1)));
    let page = json!({ "url": site.url("/small/1") });
    // One of three in a row is the second of its minute.
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(small.post("/v2/scrape", &page).await);
    }
    assert!(admitted(&answers) < 3);
    service.post("/v2/scrape", &page).await.ok();

    let urls = site.urls("/slow?ms=60000&n=", 5);
    let refused = |answer: Answer| {
        assert_eq!((answer.status, answer.code()), (429, "QUEUE_FULL"), "{}", answer.text);
        assert!(answer.is_base_error() && answer.error().starts_with("Queue limit reached"), "{}", answer.text);
        assert!(answer.headers.contains_key("retry-after"));
    };
    refused(small.post("/v2/batch/scrape", &json!({ "urls": urls })).await);
    let id = small.post("/v2/batch/scrape", &json!({ "urls": urls[..4] })).await.id();
    wait_until("its only place is taken", || async { (site.hit_count("/slow").await > 0).then_some(()) }).await;
    small.post("/v2/batch/scrape", &json!({ "urls": urls[..1], "appendToId": id })).await.ok();
    refused(small.post("/v2/batch/scrape", &json!({ "urls": urls[..1], "appendToId": id })).await);
    refused(small.post("/v2/map", &page).await);
    refused(small.post("/v2/crawl", &page).await);
    service.post("/v2/scrape", &page).await.ok();
    small.delete(&format!("/v2/batch/scrape/{id}")).await.ok();
    site.end();
}

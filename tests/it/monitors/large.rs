//! A check of a site with many pages, whose worker is killed on the way: each page is told of once, and rightly. The long
//! tests have ten thousand pages.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{Caller, RuledSite, TestService, both_databases, long_tests, wait_until_within};

use super::{options, watch};

const LONG: Duration = Duration::from_secs(1_200);
/// Of each hub, the page that changes, and the one that goes.
const CHANGES: usize = 3;
const GOES: usize = 4;

/// So many hubs with so many pages each.
#[derive(Debug, Clone, Copy)]
struct Size {
    hubs: usize,
    pages: usize,
}

impl Size {
    fn chosen() -> Self {
        let n = if long_tests() { 100 } else { 12 };
        Self { hubs: n, pages: n }
    }

    /// What the site answers: its front page leads to hubs, those to their pages.
    fn answer(self, path: &str, is_later: bool) -> (u16, String) {
        let body = |text: String| (200, format!("<html><title>{path}</title><body><main>{text}</main></body></html>"));
        let link = |to: String| format!("<p><a href='{to}'>To {to}</a></p>");
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match parts[..] {
            [""] => body((0..self.hubs).map(|hub| link(format!("/hub/{hub}"))).collect()),
            ["hub", hub] => {
                let linked = (0..self.pages + usize::from(is_later)).filter(|page| !(is_later && *page == GOES));
                body(linked.map(|page| link(format!("/page/{hub}/{page}"))).collect())
            }
            ["page", hub, page] if is_later && page.parse::<usize>() == Ok(GOES) => (404, format!("<p>{hub}</p>")),
            ["page", hub, page] => {
                let price = if is_later && page.parse::<usize>() == Ok(CHANGES) { 5 } else { 4 };
                body(format!("<h1>Tea {page} of {hub}</h1><p>It costs {price} euros.</p>"))
            }
            _ => (404, String::new()),
        }
    }
}

/// Has the monitor look; the check with all its pages by their path.
async fn look(service: &mut TestService, monitor: &str, kills: bool) -> (Value, HashMap<String, Value>) {
    let run = service.post(&format!("/v2/monitor/{monitor}/run"), &json!({})).await.ok();
    let path = format!("/v2/monitor/{monitor}/checks/{}", run["id"].as_str().unwrap());
    let total = |check: &Value| check["summary"]["totalPages"].as_u64().unwrap();
    if kills {
        wait_until_within(LONG, "some pages are told of", || async {
            (total(&service.get(&path).await.ok()["data"]) > 20).then_some(())
        })
        .await;
        service.restart_worker(0);
    }
    let caller = service.caller();
    let check = wait_until_within(LONG, "the check has ended", || async {
        let found = caller.get(&format!("{path}?limit=1")).await.ok()["data"].clone();
        found["finishedAt"].is_string().then_some(found)
    })
    .await;
    let pages = all_pages(caller, &path).await;
    assert_eq!(pages.len() as u64, total(&check), "each page once");
    (check, pages)
}

async fn all_pages(caller: &Caller, path: &str) -> HashMap<String, Value> {
    let (mut pages, mut next) = (HashMap::new(), format!("{path}?limit=100"));
    loop {
        let answer = caller.get(&next).await.ok();
        for page in answer["data"]["pages"].as_array().unwrap() {
            let url: reqwest::Url = page["url"].as_str().unwrap().parse().unwrap();
            let before = pages.insert(url.path().to_owned(), page.clone());
            assert!(before.is_none(), "told of twice: {page}");
        }
        let Some(address) = answer["next"].as_str() else { return pages };
        let address: reqwest::Url = address.parse().unwrap();
        next = format!("{}?{}", address.path(), address.query().unwrap());
    }
}

both_databases! {
    async fn a_check_of_a_large_site_tells_of_each_page_once_though_its_worker_is_killed(database) {
        let (size, is_later) = (Size::chosen(), Arc::<AtomicBool>::default());
        let later = Arc::clone(&is_later);
        let site = RuledSite::start(move |path, _| size.answer(path, later.load(Ordering::SeqCst))).await;
        let mut service = TestService::start_with(options(database).workers(2)).await;
        let Size { hubs, pages } = size;
        let all = 1 + hubs + hubs * pages;
        let crawl = json!({"limit": all + hubs + 10, "sitemap": "skip", "crawlEntireDomain": true});
        let target = json!([{"type": "crawl", "url": site.url("/"), "crawlOptions": crawl}]);
        let id = watch(service.caller(), target, json!({})).await;

        let (first, found) = look(&mut service, &id, false).await;
        let summary = |same, changed, new, removed| {
            let total = same + changed + new + removed;
            json!({"totalPages": total, "same": same, "changed": changed, "new": new, "removed": removed, "error": 0})
        };
        assert_eq!((&first["status"], &first["summary"]), (&json!("completed"), &summary(0, 0, all, 0)), "{first}");
        assert_eq!((found.len(), &first["actualCredits"]), (all, &json!(all)));

        is_later.store(true, Ordering::SeqCst);
        let (second, found) = look(&mut service, &id, true).await;
        let same = all - 3 * hubs;
        assert_eq!((&second["status"], &second["summary"]), (&json!("completed"), &summary(same, 2 * hubs, hubs, hubs)));
        let mut by_status: BTreeMap<&str, usize> = BTreeMap::new();
        for (path, page) in &found {
            let is = page["status"].as_str().unwrap();
            let expected = match path.split('/').skip(1).collect::<Vec<_>>()[..] {
                ["hub", _] => "changed",
                ["page", _, page] if page.parse::<usize>() == Ok(CHANGES) => "changed",
                ["page", _, page] if page.parse::<usize>() == Ok(GOES) => "removed",
                ["page", _, page] if page.parse::<usize>() == Ok(pages) => "new",
                _ => "same",
            };
            assert_eq!(is, expected, "{page}");
            assert_eq!(page["diff"]["text"].is_string(), is == "changed", "{page}");
            *by_status.entry(is).or_default() += 1;
        }
        println!("{} pages: {by_status:?}", found.len());
    }
}

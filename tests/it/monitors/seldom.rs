//! Monitors that look less often than pages are remembered that nobody watches: what they compare with is still there.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use weir_shared::config::DatabaseUrl;
use weir_shared::on_pool;
use weir_shared::store::{Db, PoolUse};
use weir_tests::{Caller, MovedClock, OwnPages, TestService, both_databases, wait_until_within};

use super::{BOUND, are, check, options, patch, watch};

/// How the page is that a caller tracks by hand.
async fn tracked(caller: &Caller, url: &str) -> String {
    let body = json!({"url": url, "formats": ["markdown", "changeTracking"], "maxAge": 0});
    let page = caller.post("/v2/scrape", &body).await.ok();
    page["data"]["changeTracking"]["changeStatus"].as_str().unwrap().to_owned()
}

both_databases! {
    async fn a_monitor_that_looks_twice_a_year_or_was_paused_for_months_knows_its_pages(database) {
        let (clock, own) = (Arc::new(MovedClock::new()), OwnPages::start().await);
        let (name, file) = clock.setting();
        let mut service = TestService::start_with(options(database).env(name, file)).await;
        let db = Db::connect(&service.database_url().parse::<DatabaseUrl>().unwrap(), 2, PoolUse::Commands).await.unwrap();
        let tea = own.put("/tea", "<main><h1>Prices</h1><p>Tea costs four euros.</p></main>");
        let cake = own.put("/cake", "<main><p>Cake is out.</p></main>");
        let targets = json!([{"type": "scrape", "urls": [tea, cake]}]);
        // Due in half a year, whatever day it is.
        let month: u32 = clock.now().to_iso()[5..7].parse().unwrap();
        let cron = json!({"schedule": {"cron": format!("0 0 1 {} *", (month + 5) % 12 + 1)}});
        let seldom = watch(service.caller(), targets.clone(), cron).await;
        let paused = watch(service.caller(), targets, json!({})).await;
        for id in [&seldom, &paused] {
            are(&check(service.caller(), id).await, &[("cake", "new"), ("tea", "new")]);
        }
        patch(service.caller(), &format!("/v2/monitor/{paused}"), &json!({"status": "paused"})).await.ok();
        assert_eq!(tracked(service.caller(), &cake).await, "new");
        assert_eq!(tracked(service.caller(), &cake).await, "same");

        clock.advance(Duration::from_secs(100 * 86_400));
        service.restart_worker(0);
        wait_until_within(BOUND, "what nobody watches is forgotten", || async {
            const LEFT: &str = "SELECT COUNT(*) FROM page_snapshot WHERE monitor_id IS NULL";
            let (left,): (i64,) = on_pool!(&db, |pool| sqlx::query_as(LEFT).fetch_one(pool).await.unwrap());
            (left == 0).then_some(())
        })
        .await;
        db.close().await;
        own.put("/tea", "<main><h1>Prices</h1><p>Tea costs five euros.</p></main>");
        for id in [&seldom, &paused] {
            let second = check(service.caller(), id).await;
            are(&second, &[("cake", "same"), ("tea", "changed")]);
            assert!(second.to_string().contains("-Tea costs four euros."), "{second}");
        }
        assert_eq!(tracked(service.caller(), &cake).await, "new");
    }
}

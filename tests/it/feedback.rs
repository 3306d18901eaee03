//! What callers say of results (wire 25): kept once for each, for the operator.

use std::time::Duration;

use serde_json::json;
use weir_tests::{FixtureSite, SearchStandIn, TestService, both_databases, ended_at, wait_until};

use crate::parse::options;

both_databases! {
    async fn what_callers_say_of_results_is_kept_once_and_shown_to_the_operator(database) {
        let site = FixtureSite::start().await;
        let backend = SearchStandIn::finding(vec![site.url("/article/1")]).await;
        let service = TestService::start_with(options(database).env("WEIR_SEARCH_URL", &backend.url)).await;
        let search = service.post("/v2/search", &json!({"query": "whales"})).await.ok();
        let search = search["id"].as_str().unwrap().to_owned();
        let document = service.post("/v2/scrape", &json!({"url": site.url("/small/1")})).await.ok();
        let scrape = document["data"]["metadata"]["scrapeId"].as_str().unwrap().to_owned();
        let batch = service.post("/v2/batch/scrape", &json!({"urls": [site.url("/small/2")]})).await.id();
        let status = ended_at(service.caller(), &format!("/v2/batch/scrape/{batch}"), Duration::from_secs(60)).await;
        let page = status["data"][0]["metadata"]["scrapeId"].as_str().unwrap().to_owned();

        let good = json!({"rating": "good", "valuableSources": [{"url": site.url("/article/1"), "reason": "pterosaur"}], "origin": "cli"});
        let noted = service.post(&format!("/v2/search/{search}/feedback"), &good).await.ok();
        assert_eq!((noted["creditsRefunded"].as_i64(), noted.get("alreadySubmitted")), (Some(0), None), "{noted}");
        let again = json!({"endpoint": "search", "jobId": search, "rating": "bad"});
        let again = service.post("/v2/feedback", &again).await.ok();
        assert_eq!((&again["feedbackId"], &again["alreadySubmitted"]), (&noted["feedbackId"], &json!(true)));
        let partial = json!({"endpoint": "scrape", "jobId": scrape, "rating": "partial", "issues": ["missing_table"]});
        service.post("/v2/feedback", &partial).await.ok();
        service.post("/v2/feedback", &json!({"endpoint": "scrape", "jobId": page, "rating": "good"})).await.ok();
        // Another team's results, and those of another kind, are unknown.
        let stranger = service.new_team("stranger");
        for (caller, endpoint, job) in [
            (&stranger, "search", &search), (&stranger, "scrape", &scrape), (&stranger, "scrape", &page),
            (service.caller(), "map", &search), (service.caller(), "search", &batch),
        ] {
            let refused = caller.post("/v2/feedback", &json!({"endpoint": endpoint, "jobId": job, "rating": "bad"})).await;
            assert_eq!(refused.status, 404, "{endpoint} {job}: {}", refused.text);
        }
        assert_eq!(stranger.post(&format!("/v2/search/{search}/feedback"), &good).await.status, 404);
        let foreign = service.post("/v2/feedback", &json!({"endpoint": "alexandria", "rating": "bad"})).await;
        assert_eq!((foreign.status, foreign.error()), (403, "Exchange is not enabled for this team."));

        let listed = service.cli_json(&["feedback", "list", "--team", "tests", "--json"]);
        let of_search = listed.as_array().unwrap().iter().find(|row| row["jobId"] == search.as_str()).unwrap();
        assert_eq!((&of_search["rating"], &of_search["endpoint"]), (&json!("good"), &json!("search")));
        assert_eq!(of_search["said"]["valuableSources"][0]["reason"], "pterosaur");
        assert_eq!(service.cli_json(&["feedback", "list", "--team", "stranger", "--json"]), json!([]));
        // Of a team that keeps nothing, its words are not kept either.
        service.cli(&["team", "set", "stranger", "--zero-data-retention", "on"]);
        wait_until("the team's setting holds", || async {
            let found = stranger.post("/v2/search", &json!({"query": "x", "enterprise": ["zdr"]})).await;
            (found.status == 200).then_some(())
        })
        .await;
        let search = stranger.post("/v2/search", &json!({"query": "y"})).await.ok();
        let said = json!({"rating": "bad", "missingContent": [{"topic": "pterodactyl"}]});
        stranger.post(&format!("/v2/search/{}/feedback", search["id"].as_str().unwrap()), &said).await.ok();
        assert_eq!(service.tables_with("pterodactyl").await.0, Vec::<String>::new());
    }
}

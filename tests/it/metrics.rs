//! The page about metrics, the dashboard and the alerts, held to what the processes print.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use weir_tests::{Database, FixtureSite, TestService, checkout};

/// Type and labels of a metric.
type Described = (String, BTreeSet<String>);

/// The metrics of one section of the page, by name.
fn documented(heading: &str) -> BTreeMap<String, Described> {
    let page = std::fs::read_to_string(checkout().join("docs/metrics.md")).unwrap();
    let (_, section) = page.split_once(&format!("## {heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let rows = section.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with("| `weir_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, kind, labels, meaning] = cells[..] else { panic!("four cells: {row}") };
        assert!(!meaning.is_empty(), "{row}");
        let labels =
            labels.split(", ").map(|label| label.trim_matches('`').to_owned()).filter(|label| !label.is_empty());
        (name.trim_matches('`').to_owned(), (kind.to_owned(), labels.collect()))
    })
    .collect()
}

/// The names that the code of a process registers.
fn registered(file: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(checkout().join(file)).unwrap();
    let code = text.split("#[cfg(test)]").next().unwrap();
    code.split('"').filter(|word| is_metric(word)).map(str::to_owned).collect()
}

fn is_metric(word: &str) -> bool {
    word.strip_prefix("weir_").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
}

/// What a process prints: each metric with its type and the labels of its lines.
fn printed(text: &str) -> BTreeMap<String, Described> {
    let mut found: BTreeMap<String, Described> = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        found.insert(name.to_owned(), (kind.to_owned(), BTreeSet::new()));
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let (_, known) = found.get_mut(base(name)).unwrap_or_else(|| panic!("no type of {line}"));
        let names =
            labels.trim_end_matches('}').split("\",").filter_map(|label| label.split_once('=')).map(|(name, _)| name);
        known.extend(names.filter(|name| *name != "le").map(str::to_owned));
    }
    found
}

/// The metric that a series of a histogram belongs to.
fn base(series: &str) -> &str {
    ["_bucket", "_sum", "_count"].iter().find_map(|end| series.strip_suffix(end)).unwrap_or(series)
}

#[tokio::test]
async fn the_page_about_metrics_tells_of_every_one_and_of_no_other() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    service.post("/v2/scrape", &json!({ "url": site.url("/small/1") })).await.ok();
    let workers = service.cli_json(&["workers", "list", "--json"]);
    let address = workers[0]["address"].as_str().unwrap();
    let of_worker = reqwest::get(format!("http://{address}/metrics")).await.unwrap().text().await.unwrap();
    let of_api = service.anonymous().get("/metrics").await.text;
    for (heading, file, text) in
        [("Of the API", "api/src/metrics.rs", of_api), ("Of a worker", "worker/src/metrics.rs", of_worker)]
    {
        let documented = documented(heading);
        assert_eq!(documented.keys().cloned().collect::<BTreeSet<_>>(), registered(file), "{heading}");
        let printed = printed(&text);
        assert!(printed.len() > 10, "{heading}: {text}");
        for (name, told) in &printed {
            assert_eq!(Some(told), documented.get(name), "{heading}: {name}");
        }
    }
    // What workers are scaled by.
    assert!(documented("Of the API").contains_key("weir_queue_oldest_milliseconds"));
}

/// Every name of a metric in an expression.
fn named(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| is_metric(word)).map(|word| base(word).to_owned()).collect()
}

/// Series of histograms are named as such, and others are not.
fn check_names(place: &str, expression: &str) {
    let known: BTreeMap<_, _> = documented("Of the API").into_iter().chain(documented("Of a worker")).collect();
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    for word in words.filter(|word| is_metric(word)) {
        let (kind, _) = known.get(base(word)).unwrap_or_else(|| panic!("{place}: there is no {word}"));
        assert_eq!(kind == "histogram", base(word) != word, "{place}: {word} is a {kind}");
        let is_summed_up =
            expression.contains(&format!("rate({word}")) || expression.contains(&format!("increase({word}"));
        assert!(kind != "counter" || is_summed_up, "{place}: {word} only counts up");
    }
}

#[test]
fn the_dashboard_shows_metrics_that_there_are() {
    let text = std::fs::read_to_string(checkout().join("docs/monitoring/grafana.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut shown = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        assert!(
            panel["description"].as_str().is_some_and(|text| text.ends_with('.') || text.ends_with(')')),
            "{title}"
        );
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            assert!(!named(expression).is_empty(), "{title}: {expression}");
            check_names(title, expression);
            shown.extend(named(expression));
        }
    }
    assert!(panels.len() > 10 && shown.contains("weir_queue_oldest_milliseconds"), "{shown:?}");
}

#[test]
fn the_alerts_watch_metrics_that_there_are() {
    let text = std::fs::read_to_string(checkout().join("docs/monitoring/alerts.yaml")).unwrap();
    let mut watched = BTreeSet::new();
    let rules: Vec<&str> = text.split("- alert: ").skip(1).collect();
    for rule in &rules {
        let name = rule.lines().next().unwrap();
        let line = |key: &str| {
            rule.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap_or_else(|| panic!("{name}: no {key}"))
        };
        let expression = line("expr: ");
        check_names(name, expression);
        assert!(!line("summary: ").is_empty() && !line("action: ").is_empty() && line("labels: ").contains("severity"));
        watched.extend(named(expression));
    }
    assert!(rules.len() > 10 && watched.contains("weir_queue_oldest_milliseconds"), "{watched:?}");
}

//! What is made of backends' answers, and which backend is asked when.

#![allow(clippy::unwrap_used, reason = "tests")]
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::Url;

use super::*;
use crate::clock;
use crate::guests::Urgency;
use crate::ids::TeamId;

/// A server that answers each request with what `answer` says of its number: status, content type, further headers, body.
async fn backend(
    answer: impl Fn(usize) -> (u16, &'static str, String) + Send + Sync + 'static,
) -> (Url, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 16_384];
            let _ = socket.read(&mut head).await;
            let (status, headers, body) = answer(count.fetch_add(1, Ordering::SeqCst));
            let text = format!(
                "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n\r\n{body}",
                body.len()
            );
            let _ = socket.write_all(text.as_bytes()).await;
        }
    });
    (url, asked)
}

const JSON: &str = "Content-Type: application/json";

fn results(numbers: std::ops::Range<usize>) -> Value {
    let one = |n| json!({"url": format!("https://site{n}.test/page"), "title": format!("<b>T</b> {n}"), "content": "a &amp; b"});
    json!({"results": numbers.map(one).collect::<Vec<_>>()})
}

async fn find(backends: &Backends, query: &Query, sources: &[Source], limit: usize) -> Result<Found, SearchError> {
    let (holder, deadline) = ((TeamId::new(), Urgency::Direct), clock::deadline(Duration::from_secs(20)));
    backends.find(holder, query, sources, limit, deadline, Timestamp(1_700_000_000_000)).await
}

fn of(urls: &[&Url]) -> Backends {
    Backends::new(SearchSettings { backends: urls.iter().map(|url| SearchBackend::Searxng((*url).clone())).collect() })
}

fn words() -> Query {
    Query { words: "x".into(), ..Query::default() }
}

#[tokio::test]
async fn pages_are_asked_for_until_there_are_enough_or_none_is_new() {
    let (url, asked) = backend(|n| (200, JSON, results(n * 8..n * 8 + 10).to_string())).await;
    let found = find(&of(&[&url]), &words(), &[Source::Web], 20).await.unwrap();
    let hits = &found.hits[0].1;
    assert_eq!((hits.len(), asked.load(Ordering::SeqCst)), (20, 3), "two of each page were there before");
    assert_eq!((hits[19].url.as_str(), hits[0].title.as_str()), ("https://site19.test/page", "T 0"));
    assert_eq!(hits[0].text, "a & b");
    let (url, asked) = backend(|_| (200, JSON, results(0..7).to_string())).await;
    let found = find(&of(&[&url]), &words(), &[Source::Web], 100).await.unwrap();
    assert_eq!((found.hits[0].1.len(), asked.load(Ordering::SeqCst)), (7, 2), "the second page repeats the first");
}

#[tokio::test]
async fn one_page_is_one_hit_and_what_is_of_a_wrong_type_is_none() {
    let (url, _) = backend(|_| {
        let results = json!({"results": [
            {"url": "https://www.a.test/x/?utm_source=y", "title": null, "content": 5},
            {"url": "http://a.test/x"}, {"url": "javascript:alert(1)"}, {"url": "http://b.test/\u{0}"}, {"url": 7}, "text", null,
            {"url": "https://b.test/", "publishedDate": "2020-01-01T00:00:00"},
        ], "unresponsive_engines": [["bing", "timeout"], 5]});
        (200, JSON, results.to_string())
    })
    .await;
    let found = find(&of(&[&url]), &words(), &[Source::Web], 10).await.unwrap();
    let urls: Vec<&str> = found.hits[0].1.iter().map(|hit| hit.url.as_str()).collect();
    assert_eq!(urls, ["https://www.a.test/x/?utm_source=y", "https://b.test/"]);
    let range = Query { age: Age::Between(Some(18_300), None), by_date: true, ..words() };
    let found = find(&of(&[&url]), &range, &[Source::Web], 10).await.unwrap();
    assert_eq!(found.hits[0].1.len(), 1, "of the other nothing is known");
    assert!(found.warnings.iter().any(|text| text.contains("ranges of dates")), "{:?}", found.warnings);
}

#[tokio::test]
async fn who_refuses_rests_and_the_next_one_is_asked() {
    let (limited, asked) = backend(|_| (429, "Retry-After: 30", String::new())).await;
    let (people, _) = backend(|_| (200, "Content-Type: text/html; charset=utf-8", "<html>".into())).await;
    let (good, _) = backend(|_| (200, JSON, results(0..3).to_string())).await;
    let backends = of(&[&limited, &people, &good]);
    for _ in 0..3 {
        assert_eq!(find(&backends, &words(), &[Source::Web], 3).await.unwrap().hits[0].1.len(), 3);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1, "it rests");
    let alone = of(&[&limited]);
    for _ in 0..2 {
        let refused = find(&alone, &words(), &[Source::Web], 3).await.unwrap_err();
        assert!(matches!(refused, SearchError::Failed { retry_after: 28..=30 }), "{refused:?}");
    }
    let broken = backend(|_| (500, JSON, "{}".into())).await.0;
    let refused = find(&of(&[&broken]), &words(), &[Source::Web], 3).await.unwrap_err();
    assert!(matches!(refused, SearchError::Failed { retry_after: 5 }), "it does not rest: {refused:?}");
    let nothing = Backends::new(SearchSettings::default());
    assert_eq!(find(&nothing, &words(), &[Source::Web], 3).await.unwrap_err(), SearchError::NotConfigured);
}

#[tokio::test]
async fn one_callers_long_search_is_told_so_and_takes_nobodys_backend_away() {
    const PAGE: &str = "Content-Type: text/html";
    let hosts = (0..100).map(|n| format!("{n}.a-shop-with-a-long-name.test")).collect();
    let long = Query { exclude_domains: hosts, ..words() };
    for (status, asked_for) in [(414, &long), (502, &long), (400, &long)] {
        let (url, _) = backend(move |n| match n {
            0 => (status, PAGE, "<html>".into()),
            _ => (200, JSON, results(0..3).to_string()),
        })
        .await;
        let backends = of(&[&url]);
        assert_eq!(find(&backends, asked_for, &[Source::Web], 3).await.unwrap_err(), SearchError::NotTaken, "{status}");
        assert_eq!(find(&backends, &words(), &[Source::Web], 3).await.unwrap().hits[0].1.len(), 3, "{status}");
        // Another one may take it.
        let (short, _) = backend(move |_| (status, PAGE, "<html>".into())).await;
        assert!(find(&of(&[&short, &url]), asked_for, &[Source::Web], 3).await.is_ok(), "{status}");
        // What fails for another reason may come back.
        let (broken, _) = backend(|_| (500, JSON, "{}".into())).await;
        let failed = find(&of(&[&short, &broken]), asked_for, &[Source::Web], 3).await.unwrap_err();
        assert!(matches!(failed, SearchError::Failed { .. }), "{failed:?}");
    }
    // A short one may be refused for a key that is wrong: it is no matter of its length, and nobody rests for it.
    let (url, asked) = backend(|_| (400, PAGE, "<html>".into())).await;
    let backends = of(&[&url]);
    for n in 1..3 {
        let failed = find(&backends, &words(), &[Source::Web], 3).await.unwrap_err();
        assert!(matches!(failed, SearchError::Failed { retry_after: 5 }), "{failed:?}");
        assert_eq!(asked.load(Ordering::SeqCst), n);
    }
}

#[tokio::test]
async fn a_way_to_another_site_is_no_refusal_and_nobody_rests_for_it() {
    const AWAY: &str = "Content-Type: text/html; charset=utf-8\r\nLocation: https://elsewhere.test/?q=x";
    let (url, asked) = backend(|n| match n {
        0 => (302, AWAY, "<html>".into()),
        _ => (200, JSON, results(0..3).to_string()),
    })
    .await;
    let backends = of(&[&url]);
    let failed = find(&backends, &words(), &[Source::Web], 3).await.unwrap_err();
    assert!(matches!(failed, SearchError::Failed { retry_after: 5 }), "{failed:?}");
    assert_eq!(find(&backends, &words(), &[Source::Web], 3).await.unwrap().hits[0].1.len(), 3);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_was_found_is_not_lost_when_the_time_is_over() {
    // The first page comes at once, and no further one.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let news_too = |limit, sources: &'static [Source], time| {
        let (backends, holder) = (of(&[&url]), (TeamId::new(), Urgency::Direct));
        async move {
            let deadline = clock::deadline(time);
            backends.find(holder, &words(), sources, limit, deadline, Timestamp(1_700_000_000_000)).await
        }
    };
    tokio::spawn(async move {
        let mut held = Vec::new();
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 16_384];
            let read = socket.read(&mut head).await.unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            if head.contains("pageno=1&categories=general") {
                let body = results(0..10).to_string();
                let text = format!("HTTP/1.1 200 X\r\n{JSON}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                let _ = socket.write_all(text.as_bytes()).await;
            }
            held.push(socket);
        }
    });
    let found = news_too(20, &[Source::Web, Source::News], Duration::from_secs(4)).await.unwrap();
    let counts: Vec<usize> = found.hits.iter().map(|(_, hits)| hits.len()).collect();
    assert_eq!((counts, found.warnings), (vec![10, 0], vec![CUT_SHORT.to_owned()]));
    assert_eq!(news_too(20, &[Source::News], Duration::from_millis(600)).await.unwrap_err(), SearchError::Timeout);
}

#[tokio::test]
async fn engines_that_are_silent_are_no_empty_web() {
    let empty = || json!({"results": [], "unresponsive_engines": [["bing", "captcha"]]}).to_string();
    let (silent, _) = backend(move |_| (200, JSON, empty())).await;
    let (good, _) = backend(|_| (200, JSON, results(0..3).to_string())).await;
    let found = find(&of(&[&silent, &good]), &words(), &[Source::Web], 3).await.unwrap();
    assert_eq!(found.hits[0].1.len(), 3);
    let found = find(&of(&[&silent]), &words(), &[Source::Web], 3).await.unwrap();
    assert!(found.hits[0].1.is_empty() && found.warnings[0].contains("bing"), "{:?}", found.warnings);
}

#[tokio::test]
async fn pictures_have_an_address_and_whole_sizes() {
    let (url, _) = backend(|_| {
        let results = json!({"results": [
            {"url": "https://a.test/", "img_src": "//i.test/1.png", "resolution": "1280 x 720"},
            {"url": "https://b.test/", "img_src": "data:image/png;base64,x"},
            {"url": "https://c.test/", "img_src": "https://i.test/1.png"},
            {"url": "https://c.test/", "img_src": "https://i.test/2.png", "resolution": "large"},
        ]});
        (200, JSON, results.to_string())
    })
    .await;
    let found = find(&of(&[&url]), &words(), &[Source::Images], 10).await.unwrap();
    let seen: Vec<_> = found.hits[0].1.iter().map(|hit| (hit.image.as_deref().unwrap(), hit.size)).collect();
    assert_eq!(seen, [("https://i.test/1.png", Some((1280, 720))), ("https://i.test/2.png", None)]);
}

#[tokio::test]
async fn brave_is_asked_page_by_page_with_its_key() {
    let (url, asked) = backend(|n| {
        let list: Vec<Value> = results(n * 20..n * 20 + 20)["results"].as_array().unwrap().clone();
        (200, JSON, json!({"web": {"results": list}, "query": {"more_results_available": true}}).to_string())
    })
    .await;
    let brave = SearchBackend::Brave { base: url, key: "k".into() };
    let backends = Backends::new(SearchSettings { backends: vec![brave] });
    let found = find(&backends, &words(), &[Source::Web], 50).await.unwrap();
    assert_eq!((found.hits[0].1.len(), asked.load(Ordering::SeqCst)), (50, 3));
    let (none, _) = backend(|_| (200, JSON, json!({"query": {}}).to_string())).await;
    let brave = SearchBackend::Brave { base: none, key: "k".into() };
    let backends = Backends::new(SearchSettings { backends: vec![brave] });
    assert!(find(&backends, &words(), &[Source::Web], 5).await.unwrap().hits[0].1.is_empty());
}

/// A Brave whose plan takes one request a second.
fn brave_of(base: Url) -> Backends {
    Backends::new(SearchSettings { backends: vec![SearchBackend::Brave { base, key: "k".into() }] })
}

fn brave_results(numbers: std::ops::Range<usize>) -> String {
    let list = results(numbers)["results"].clone();
    json!({"web": {"results": list.clone()}, "results": list, "query": {"more_results_available": false}}).to_string()
}

#[tokio::test]
async fn a_short_rest_is_waited_for_and_a_long_one_is_told() {
    const SECOND: &str = "X-RateLimit-Remaining: 0, 900\r\nX-RateLimit-Reset: 1, 1419704";
    const MONTH: &str = "X-RateLimit-Remaining: 1, 0\r\nX-RateLimit-Reset: 1, 1419704";
    let (url, asked) =
        backend(|n| if n == 0 { (429, SECOND, "{}".into()) } else { (200, JSON, brave_results(0..3)) }).await;
    assert_eq!(find(&brave_of(url), &words(), &[Source::Web], 3).await.unwrap().hits[0].1.len(), 3);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    let (url, asked) = backend(|_| (429, MONTH, "{}".into())).await;
    let backends = brave_of(url);
    for _ in 0..2 {
        let refused = find(&backends, &words(), &[Source::Web], 3).await.unwrap_err();
        assert!(matches!(refused, SearchError::Failed { retry_after: 590..=600 }), "{refused:?}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1, "it rests");
    // Who refuses again and again is not waited for without an end, and nobody is while another one can be asked.
    let (url, asked) = backend(|_| (429, "Retry-After: 4", String::new())).await;
    let (good, _) = backend(|_| (200, JSON, results(0..3).to_string())).await;
    let refused = find(&of(&[&url]), &words(), &[Source::Web], 3).await.unwrap_err();
    assert!(matches!(refused, SearchError::Failed { .. }), "{refused:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 3, "two rests of four seconds are within ten");
    let (url, _) = backend(|_| (429, "Retry-After: 9", String::new())).await;
    let began = clock::instant();
    assert!(find(&of(&[&url, &good]), &words(), &[Source::Web], 3).await.is_ok());
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[tokio::test]
async fn who_says_that_its_second_is_spent_is_not_asked_within_it() {
    const LAST: &str =
        "Content-Type: application/json\r\nX-RateLimit-Remaining: 0, 900\r\nX-RateLimit-Reset: 1, 1419704";
    let last = std::sync::Mutex::new(None::<Instant>);
    let (url, asked) = backend(move |n| {
        let before = last.lock().unwrap().replace(clock::instant());
        assert!(n < 2 || before.is_none_or(|at| at.elapsed() > Duration::from_millis(900)), "asked {n} too soon");
        (200, LAST, brave_results(0..3))
    })
    .await;
    let backends = brave_of(url);
    for _ in 0..2 {
        let both = find(&backends, &words(), &[Source::Web, Source::News], 3).await.unwrap();
        assert!(both.hits.iter().all(|(_, hits)| hits.len() == 3), "{both:?}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 4);
}

#[test]
fn what_is_left_is_read_by_window() {
    let of = |left: &str, resets: &str| {
        let mut headers = HeaderMap::new();
        headers.insert("x-ratelimit-remaining", left.parse().unwrap());
        headers.insert("x-ratelimit-reset", resets.parse().unwrap());
        pace::spent(&headers)
    };
    let seconds = |n| Some(Duration::from_secs(n));
    for (left, resets, rest) in [
        ("0, 1000", "1, 1419704", seconds(1)),
        ("0,0", "1,1419704", seconds(1_419_704)),
        ("1, 1000", "1, 1419704", None),
        ("0", "0", seconds(0)),
        ("", "1", None),
        ("none", "1", None),
        ("0", "soon", None),
        ("0, 0", "5", seconds(5)),
        ("99999999999999999999", "1", None),
    ] {
        assert_eq!(of(left, resets), rest, "{left:?} {resets:?}");
    }
    assert_eq!(pace::spent(&HeaderMap::new()), None);
}

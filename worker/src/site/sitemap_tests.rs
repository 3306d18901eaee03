use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use weir_shared::clock;
use weir_shared::guard::AddressGuard;

use super::*;
use crate::fetch::FetchConfig;

/// Answers each path with a body; unknown ones with 404. `BASE` in a body becomes the site's own address.
async fn site(pages: Vec<(&'static str, Vec<u8>)>) -> (Url, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let pages: HashMap<String, Vec<u8>> = pages.into_iter().map(|(path, body)| (path.to_owned(), body)).collect();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (pages, counter) = (pages.clone(), Arc::clone(&counter));
            tokio::spawn(async move {
                let mut head = [0; 2_048];
                let read = stream.read(&mut head).await.unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..read]).into_owned();
                counter.fetch_add(1, Ordering::SeqCst);
                let path = head.split(' ').nth(1).unwrap_or_default();
                let (status, body) = match pages.get(path) {
                    Some(body) => ("200 OK", body.as_slice()),
                    None => ("404 Not Found", &b""[..]),
                };
                // A path that says so announces more than it sends.
                let announced = if path.contains("cut") { body.len() + 10 } else { body.len() };
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: {announced}\r\nConnection: close\r\n\r\n");
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(body).await;
                if path.contains("hang") {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                }
            });
        }
    });
    (Url::parse(&base).expect("a URL"), asked)
}

fn source() -> Source {
    let guard = AddressGuard::new(vec!["127.0.0.0/8".parse().expect("a net")], HashMap::new());
    let fetcher = HttpFetcher::new(guard, FetchConfig::default()).expect("a fetcher");
    let team = TeamId::new();
    Source {
        team,
        fetcher,
        route: SiteRoute::default(),
        headers: Arc::default(),
        login: None,
        cache: None,
        asking: Asking::Always,
    }
}

async fn walk(base: &Url, start: &str, bounds: Bounds) -> (Vec<String>, Walk) {
    let (sink, mut batches) = mpsc::channel::<Batch>(4);
    let receive = async {
        let mut paths = Vec::new();
        while let Some(batch) = batches.recv().await {
            paths.extend(batch.entries.iter().map(|entry| entry.url.path().to_owned()));
        }
        paths.sort();
        paths
    };
    let source = source();
    let (walk, paths) = tokio::join!(collect(&source, vec![base.join(start).expect("a URL")], bounds, sink), receive);
    (paths, walk)
}

fn usual() -> Bounds {
    Bounds::until(clock::deadline(Duration::from_secs(60)))
}

fn urlset(paths: &[&str]) -> Vec<u8> {
    let urls: String = paths.iter().map(|path| format!("<url><loc>{path}</loc></url>")).collect();
    format!("<urlset>{urls}</urlset>").into_bytes()
}

fn index(paths: &[&str]) -> Vec<u8> {
    let maps: String = paths.iter().map(|path| format!("<sitemap><loc>{path}</loc></sitemap>")).collect();
    format!("<sitemapindex>{maps}</sitemapindex>").into_bytes()
}

#[tokio::test]
async fn indexes_are_walked_once_each_and_what_fails_is_counted() {
    let (base, asked) = site(vec![
        ("/i", index(&["/a", "/i", "/j", "/gone", "/cut"])),
        ("/j", index(&["/a", "/b", "/i", "/page"])),
        ("/a", urlset(&["/1", "/2"])),
        ("/b", urlset(&["/2", "/3"])),
        ("/cut", urlset(&["/4"])),
        ("/page", b"<!doctype html><p>no".to_vec()),
    ])
    .await;
    let (paths, walk) = walk(&base, "/i", usual()).await;
    assert_eq!(paths, ["/1", "/2", "/2", "/3", "/4"]);
    assert_eq!((walk.files, walk.incomplete, walk.cut), (5, 3, false));
    assert_eq!(asked.load(Ordering::SeqCst), 7);
}

#[tokio::test]
async fn a_walk_ends_at_its_bounds() {
    let (base, asked) = site(vec![
        ("/0", index(&["/1"])),
        ("/1", index(&["/2"])),
        ("/2", index(&["/3"])),
        ("/3", urlset(&["/deep"])),
        ("/wide", index(&["/a", "/b", "/c", "/d"])),
    ])
    .await;
    let (paths, found) = walk(&base, "/0", Bounds { depth: 2, ..usual() }).await;
    assert!(paths.is_empty() && found.cut);
    assert_eq!(walk(&base, "/0", usual()).await.0, ["/deep"]);
    let before = asked.load(Ordering::SeqCst);
    assert!(walk(&base, "/wide", Bounds { files: 3, ..usual() }).await.1.cut);
    assert_eq!(asked.load(Ordering::SeqCst) - before, 3);
}

#[tokio::test]
async fn a_site_that_hangs_costs_the_deadline_and_not_what_came() {
    // Longer than what is read ahead, so that it is read while it arrives.
    let many: Vec<String> = (0..30_000).map(|n| format!("/p{n}")).collect();
    let body = urlset(&many.iter().map(String::as_str).collect::<Vec<_>>());
    let (base, _) = site(vec![("/cut-hang", body)]).await;
    let started = clock::instant();
    let bounds = Bounds::until(started + Duration::from_secs(6));
    let (paths, walk) = walk(&base, "/cut-hang", bounds).await;
    assert!(paths.len() > 25_000, "{}", paths.len());
    assert!(walk.cut || walk.incomplete == 1);
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_site_whose_files_never_end_keeps_no_other_site_waiting() {
    // Longer than what is read ahead, so that each is read while it arrives.
    let many: Vec<String> = (0..30_000).map(|n| format!("/p{n}")).collect();
    let body = urlset(&many.iter().map(String::as_str).collect::<Vec<_>>());
    let hanging = ["/1-cut-hang", "/2-cut-hang", "/3-cut-hang", "/4-cut-hang", "/5-cut-hang", "/6-cut-hang"];
    let hanging = [&hanging[..], &["/7-cut-hang", "/8-cut-hang"]].concat();
    let mut pages: Vec<(&'static str, Vec<u8>)> = hanging.iter().map(|path| (*path, body.clone())).collect();
    pages.push(("/i", index(&hanging)));
    let (hostile, _) = site(pages).await;
    // The other one arrives whole, but not at once: it needs a place of the same kind.
    let (friendly, _) = site(vec![("/slow", body)]).await;
    let named = |base: &Url, host: &str| {
        let mut url = base.clone();
        url.set_host(Some(host)).expect("a host");
        url
    };
    let (hostile, friendly) = (named(&hostile, "hostile.localhost"), named(&friendly, "friendly.localhost"));
    let (sink, mut batches) = mpsc::channel::<Batch>(4);
    let hanging = tokio::spawn(async move {
        collect(&source(), vec![hostile.join("/i").expect("a URL")], usual(), sink).await;
    });
    // Two files are in the middle, and the others have been asked for as well.
    let mut files = HashSet::new();
    while files.len() < 2 {
        files.insert(batches.recv().await.expect("entries").file);
    }
    let walk = walk(&friendly, "/slow", usual());
    let (paths, _) = tokio::time::timeout(Duration::from_secs(40), walk).await.expect("the other site is read");
    assert_eq!(paths.len(), 30_000);
    hanging.abort();
}

#[tokio::test]
async fn a_team_with_many_sites_whose_files_never_end_keeps_no_other_team_waiting() {
    let many: Vec<String> = (0..30_000).map(|n| format!("/p{n}")).collect();
    let body = urlset(&many.iter().map(String::as_str).collect::<Vec<_>>());
    let hanging = ["/1-cut-hang", "/2-cut-hang"];
    let mut pages: Vec<(&'static str, Vec<u8>)> = hanging.iter().map(|path| (*path, body.clone())).collect();
    pages.push(("/i", index(&hanging)));
    let (base, _) = site(pages).await;
    let (friendly, _) = site(vec![("/slow", body)]).await;
    let hostile = source();
    let (sink, mut batches) = mpsc::channel::<Batch>(4);
    let walks: Vec<_> = (0..4)
        .map(|n| {
            let (mut base, source, sink) = (base.clone(), hostile.clone(), sink.clone());
            base.set_host(Some(&format!("many{n}.localhost"))).expect("a host");
            tokio::spawn(async move {
                collect(&source, vec![base.join("/i").expect("a URL")], usual(), sink).await;
            })
        })
        .collect();
    // Half of the places are in the middle of a file, and the other files have been asked for.
    let (mut begun, mut entries) = (0, 0);
    while begun < OF_TEAM {
        entries += batches.recv().await.expect("entries").entries.len();
        begun = entries / 15_000;
    }
    let walk = walk(&friendly, "/slow", usual());
    let (paths, _) = tokio::time::timeout(Duration::from_secs(40), walk).await.expect("the other team's is read");
    assert_eq!(paths.len(), 30_000);
    walks.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn nobody_receiving_ends_the_walk() {
    let (base, _) = site(vec![("/a", urlset(&["/1"]))]).await;
    let (sink, batches) = mpsc::channel(1);
    drop(batches);
    let source = source();
    let walk = collect(&source, vec![base.join("/a").expect("a URL")], usual(), sink);
    tokio::time::timeout(Duration::from_secs(40), walk).await.expect("it ends");
}

#[test]
fn a_walk_starts_where_robots_or_custom_says() {
    let site = Url::parse("https://x.test/deep/page").expect("a URL");
    let paths = |robots: &Robots| starts(robots, &site).iter().map(|url| url.path().to_owned()).collect::<Vec<_>>();
    assert_eq!(paths(&Robots::open()), ["/sitemap.xml", "/sitemap_index.xml", "/sitemap.txt"]);
    assert_eq!(paths(&Robots::parse(b"Sitemap: /a.xml\nSitemap: https://cdn.test/b.xml")), ["/a.xml", "/b.xml"]);
}

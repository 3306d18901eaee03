//! Pages that change by a rule of the time, and what a monitor has to say of them.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_shared::time::Timestamp;

/// The site looks different from period to period, and monitors look once in each.
pub const PERIOD_MS: i64 = 300_000;

/// The number of the period of a moment.
pub fn period(at: Timestamp) -> i64 {
    at.0.div_euclid(PERIOD_MS)
}

/// How the pages of a monitor behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Has another price every few periods.
    Price,
    /// The same with a line that is always another one, which its monitor ignores.
    Noisy,
    /// Is gone at times.
    Going,
    /// Is answered with a failure at times.
    Failing,
    /// A site that is crawled, whose pages come and go.
    Site,
}

impl Kind {
    pub fn of(n: usize) -> Self {
        match n % 10 {
            5 | 6 => Self::Noisy,
            7 => Self::Going,
            8 => Self::Failing,
            9 if n % 20 == 9 => Self::Site,
            _ => Self::Price,
        }
    }
}

/// What is at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// What of the page may change.
    Page(String),
    Gone,
    Failure,
}

/// Everything that the monitor `n` finds in a period, by path.
pub fn shown(n: usize, period: i64) -> BTreeMap<String, Shown> {
    let number = period.div_euclid([1, 2, 3, 5, 12][n / 10 % 5]);
    let price = Shown::Page(format!("{number}"));
    let hour = period.rem_euclid(24);
    let what = match Kind::of(n) {
        Kind::Price | Kind::Noisy => price,
        Kind::Going if (18..20).contains(&hour) => Shown::Gone,
        Kind::Failing if (19..21).contains(&hour) => Shown::Failure,
        Kind::Going | Kind::Failing => price,
        Kind::Site => {
            let linked: Vec<i64> = (1..=3).filter(|page| (number + page).rem_euclid(3) != 0).collect();
            let names: Vec<String> = linked.iter().map(i64::to_string).collect();
            let mut pages: BTreeMap<_, _> =
                linked.iter().map(|page| (format!("/{n}/{page}"), Shown::Page(String::new()))).collect();
            pages.insert(format!("/{n}"), Shown::Page(names.join(" ")));
            return pages;
        }
    };
    BTreeMap::from([(format!("/{n}"), what)])
}

/// What the site answers.
pub fn answer(path: &str, now: Timestamp) -> (u16, String) {
    let n = path.split('/').nth(1).and_then(|n| n.parse().ok());
    let found = n.and_then(|n| {
        // Pages of a site that nothing leads to are still there, so that a crawl sees the site as its start page was.
        let is_inner = Kind::of(n) == Kind::Site && path != format!("/{n}");
        let inner = is_inner.then(|| Shown::Page(String::new()));
        Some((n, inner.or_else(|| shown(n, period(now)).remove(path))?))
    });
    let Some((n, shown)) = found else { return (404, "<p>There is no such page.</p>".to_owned()) };
    let body = match (shown, Kind::of(n)) {
        (Shown::Gone, _) => return (404, "<p>It is gone.</p>".to_owned()),
        (Shown::Failure, _) => return (500, "<p>Something broke.</p>".to_owned()),
        (Shown::Page(linked), Kind::Site) if path == format!("/{n}") => linked
            .split(' ')
            .map(|page| format!("<p><a href='/{n}/{page}'>Page {page} of {n}</a></p>"))
            .collect::<String>(),
        (Shown::Page(_), Kind::Site) => format!("<p>This is {path}.</p>"),
        (Shown::Page(price), kind) => {
            let seen = if kind == Kind::Noisy { format!("<p>Seen at {}</p>", now.0) } else { String::new() };
            format!("<h1>Shop {n}</h1><p>Tea costs {price} euros.</p>{seen}<p>What else it says stays as it is.</p>")
        }
    };
    (200, format!("<!DOCTYPE html><html lang=en><title>Shop {n}</title><body><main>{body}</main></body></html>"))
}

/// What a check says of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub status: &'static str,
    /// What was there and what is there, where it is `changed`.
    pub change: Option<(String, String)>,
}

/// What a monitor has told of its pages so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    pages: BTreeMap<String, Was>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Was {
    text: String,
    is_gone: bool,
}

impl Memory {
    /// What the next check says, when the site is like this.
    pub fn look(&mut self, shown: &BTreeMap<String, Shown>) -> BTreeMap<String, Told> {
        let mut told = BTreeMap::new();
        for (path, shown) in shown {
            let was = self.pages.get(path).cloned();
            let (status, change, is) = match (shown, was) {
                (Shown::Failure, was) => ("error", None, was),
                (Shown::Gone, Some(was)) if was.is_gone => ("same", None, Some(was)),
                (Shown::Gone, _) => ("removed", None, Some(Was { is_gone: true, ..Was::default() })),
                (Shown::Page(text), was) => {
                    let is = Some(Was { text: text.clone(), is_gone: false });
                    match was {
                        Some(was) if was.is_gone => ("new", None, is),
                        None => ("new", None, is),
                        Some(was) if was.text == *text => ("same", None, is),
                        Some(was) => ("changed", Some((was.text, text.clone())), is),
                    }
                }
            };
            if let Some(is) = is {
                self.pages.insert(path.clone(), is);
            }
            told.insert(path.clone(), Told { status, change });
        }
        // What a crawl does not meet any more.
        for (path, was) in &mut self.pages {
            if !was.is_gone && !shown.contains_key(path) {
                was.is_gone = true;
                told.insert(path.clone(), Told { status: "removed", change: None });
            }
        }
        told
    }
}

/// Whether a diff says what changed, and nothing else.
pub fn is_right(diff: &Value, n: usize, change: &(String, String)) -> bool {
    let text = diff["text"].as_str().unwrap_or_default();
    let lines = |sign: char| {
        let lines = text.lines().skip(2).filter_map(move |line| line.strip_prefix(sign));
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>()
    };
    let (gone, came) = (lines('-'), lines('+'));
    let (before, after) = change;
    if Kind::of(n) != Kind::Site {
        return gone == [format!("Tea costs {before} euros.")] && came == [format!("Tea costs {after} euros.")];
    }
    let of = |this: &str, other: &str| {
        let is_new = |page: &&str| !other.split(' ').any(|known| known == *page);
        this.split(' ').filter(is_new).map(|page| format!("[Page {page} of {n}]")).collect::<Vec<_>>()
    };
    // A diff may take a line out and put the same one in at another place.
    let fits = |lines: &[&str], others: &[&str], names: Vec<String>| {
        let lines: Vec<_> = lines.iter().filter(|line| !others.contains(*line)).collect();
        lines.len() == names.len() && names.iter().all(|name| lines.iter().any(|line| line.starts_with(name)))
    };
    fits(&gone, &came, of(before, after)) && fits(&came, &gone, of(after, before))
}

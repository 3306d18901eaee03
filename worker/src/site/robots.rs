//! robots.txt as RFC 9309 reads it, with `Crawl-delay` and `Sitemap`, which it leaves to others.
//!
//! Nothing in a file is an error: lines that say nothing known are skipped, groups of one agent are joined, and what is
//! behind the size bound is not read.

use std::time::Duration;

use super::pattern::{Pattern, normalize};

/// Bytes of a file that are read (RFC 9309 §2.5 asks for at least as many).
pub const MAX_BYTES: usize = 500 * 1024;
/// Rules of a file that are kept.
const MAX_RULES: usize = 20_000;
/// Sitemaps of a file that are kept, and the longest address among them in bytes.
const MAX_SITEMAPS: usize = 1_000;
const MAX_ADDRESS: usize = 8 * 1024;
/// Longest crawl delay that is taken from a file, seconds.
const MAX_DELAY: f64 = 3_600.0;

/// A site's robots.txt.
#[derive(Debug, Clone, Default)]
pub struct Robots {
    groups: Vec<Group>,
    /// Addresses of `Sitemap` lines as written, in order, without repeats. They belong to no group.
    pub sitemaps: Vec<String>,
    /// The file could not be had for reasons of the site's: nothing may be asked for (RFC 9309 §2.3.1.4).
    closed: bool,
}

#[derive(Debug, Clone, Default)]
struct Group {
    /// Names in lower case; `*` stands for all agents that no group names.
    agents: Vec<String>,
    rules: Vec<Rule>,
    delay: Option<Duration>,
}

#[derive(Debug, Clone)]
struct Rule {
    allows: bool,
    pattern: Pattern,
}

/// What one agent may ask for.
#[derive(Debug, Clone, Default)]
pub struct RobotsRules {
    rules: Vec<Rule>,
    closed: bool,
    /// Least pause between two requests that the site asks for, at most an hour.
    pub crawl_delay: Option<Duration>,
}

impl Robots {
    /// Everything is allowed: the site has no such file.
    pub fn open() -> Self {
        Self::default()
    }

    /// Nothing is allowed: the file may exist, and the site cannot give it at the moment.
    pub fn closed() -> Self {
        Self { closed: true, ..Self::default() }
    }

    /// Reads a file; the first [`MAX_BYTES`] of it.
    pub fn parse(file: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&file[..file.len().min(MAX_BYTES)]);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut robots = Self::default();
        let mut group = Group::default();
        let mut has_lines = false;
        let mut rules = 0;
        for line in text.split(['\n', '\r']) {
            let line = line.split_once('#').map_or(line, |(line, _)| line);
            let Some((key, value)) = line.split_once(':') else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match key.as_str() {
                "user-agent" | "useragent" | "user agent" => {
                    if has_lines {
                        robots.groups.push(std::mem::take(&mut group));
                        has_lines = false;
                    }
                    group.agents.push(if value == "*" { value.to_owned() } else { product(value) });
                }
                "allow" | "disallow" => {
                    // Lines before any agent belong to nobody.
                    has_lines = !group.agents.is_empty();
                    if has_lines
                        && rules < MAX_RULES
                        && let Some(pattern) = Pattern::parse(value)
                    {
                        rules += 1;
                        group.rules.push(Rule { allows: key == "allow", pattern });
                    }
                }
                "crawl-delay" => {
                    has_lines = !group.agents.is_empty();
                    if has_lines
                        && let Ok(seconds) = value.parse::<f64>()
                        && seconds >= 0.0
                    {
                        let delay = Duration::from_secs_f64(seconds.min(MAX_DELAY));
                        group.delay = Some(group.delay.map_or(delay, |known| known.max(delay)));
                    }
                }
                "sitemap" | "site-map"
                    if !value.is_empty()
                        && value.len() <= MAX_ADDRESS
                        && robots.sitemaps.len() < MAX_SITEMAPS
                        && !robots.sitemaps.iter().any(|known| known == value) =>
                {
                    robots.sitemaps.push(value.to_owned());
                }
                _ => {}
            }
        }
        if !group.agents.is_empty() {
            robots.groups.push(group);
        }
        robots
    }

    /// The rules for an agent: a product name (`GoodBot`), or a whole `User-Agent` header, of which any product counts.
    /// Groups that name it are joined; without one, those for `*` count.
    pub fn rules(&self, agent: &str) -> RobotsRules {
        let names: Vec<String> = products(agent).collect();
        let is_named = |group: &&Group| group.agents.iter().any(|agent| names.contains(agent));
        let is_for_all = |group: &&Group| group.agents.iter().any(|agent| agent == "*");
        let mut rules = RobotsRules { closed: self.closed, ..RobotsRules::default() };
        let mut join = |group: &Group| {
            rules.rules.extend_from_slice(&group.rules);
            rules.crawl_delay = rules.crawl_delay.max(group.delay);
        };
        if self.groups.iter().any(|group| is_named(&group)) {
            self.groups.iter().filter(is_named).for_each(&mut join);
        } else {
            self.groups.iter().filter(is_for_all).for_each(&mut join);
        }
        rules
    }

    /// About how many bytes this takes.
    pub fn weight(&self) -> usize {
        let rules: usize = self.groups.iter().flat_map(|g| &g.rules).map(|r| 96 + 2 * r.pattern.length()).sum();
        let agents: usize = self.groups.iter().flat_map(|g| &g.agents).map(|a| 64 + a.len()).sum();
        256 + rules + agents + self.sitemaps.iter().map(|s| 24 + s.len()).sum::<usize>()
    }
}

impl RobotsRules {
    /// Whether a path with its query (`/a/b?c`) may be asked for. The longest rule that matches decides; of two equally
    /// long ones the one that allows.
    pub fn allows(&self, path_and_query: &str) -> bool {
        self.judge(path_and_query).0
    }

    /// The same with the work that it took, where 1 is a rule that begins otherwise than the path: a file may have
    /// thousands of rules that must be looked for all over each path.
    pub fn judge(&self, path_and_query: &str) -> (bool, usize) {
        if path_and_query == "/robots.txt" {
            return (true, 1);
        }
        if self.closed {
            return (false, 1);
        }
        let path = normalize(path_and_query);
        let mut work = 0;
        let mut best: Option<&Rule> = None;
        for rule in &self.rules {
            work += rule.pattern.work(&path);
            let better = best.is_none_or(|best| {
                let (new, old) = (rule.pattern.length(), best.pattern.length());
                new > old || (new == old && rule.allows)
            });
            if better && rule.pattern.matches(&path) {
                best = Some(rule);
            }
        }
        (best.is_none_or(|rule| rule.allows), work)
    }
}

/// The product name a line or header begins with, lower case, without its version.
fn product(text: &str) -> String {
    let end = text.find(|c: char| c == '/' || c == '(' || c == ';' || c.is_whitespace()).unwrap_or(text.len());
    text[..end].trim().to_lowercase()
}

/// Every product of a `User-Agent` header: `Mozilla/5.0 (compatible; GoodBot/1.0; +http://x)` names three.
fn products(agent: &str) -> impl Iterator<Item = String> {
    agent
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ';' | ','))
        .take(32)
        .map(product)
        .filter(|name| !name.is_empty() && name != "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\u{feff}Disallow: /nobody\n\
        User-agent: *\r\nDisallow: /private/ # not for you\r\nAllow: /private/open\rDisallow: /*.secret$\n\
        \n\
        user-agent: SlowBot/2.0\nUser-Agent: Other\ncrawl-delay: 2.5\nDisallow: /article/\n\
        User-agent: BadBot\nDisallow: /\n\
        User-agent: Free\nDisallow:\n\
        User-agent: slowbot\nDisallow: /more\nno colon here\nDisalow: /typo\n\
        Sitemap: https://x.test/a.xml\nSITEMAP:/b.xml\nSitemap: https://x.test/a.xml\n";

    #[test]
    fn groups_are_found_joined_and_obeyed() {
        let robots = Robots::parse(FILE.as_bytes());
        for (agent, path, expected) in [
            ("Anybody", "/nobody", true),
            ("Anybody", "/private/x", false),
            ("Anybody", "/private/open/x", true),
            ("Anybody", "/a.secret", false),
            ("Anybody", "/a.secret?x", true),
            ("SLOWBOT", "/private/x", true),
            ("slowbot/9", "/article/1", false),
            ("slowbot", "/more", false),
            ("other", "/article/1", false),
            ("other", "/more", true),
            ("BadBot", "/", false),
            ("BadBot", "/robots.txt", true),
            ("Mozilla/5.0 (compatible; BadBot/1.0; +http://x.test)", "/x", false),
            ("Free", "/private/x", true),
            ("Bad", "/x", true),
            ("*", "/private/x", false),
            ("", "/private/x", false),
        ] {
            assert_eq!(robots.rules(agent).allows(path), expected, "{agent} {path}");
        }
        assert_eq!(robots.rules("SlowBot").crawl_delay, Some(Duration::from_millis(2_500)));
        assert_eq!(robots.rules("x").crawl_delay, None);
        assert_eq!(robots.sitemaps, ["https://x.test/a.xml", "/b.xml"]);
    }

    #[test]
    fn the_longest_rule_wins_and_a_tie_allows() {
        for (file, path, expected) in [
            ("Allow: /p\nDisallow: /", "/page", true),
            ("Disallow: /folder\nAllow: /folder", "/folder/page", true),
            ("Allow: /page\nDisallow: /*.htm", "/page.htm", false),
            ("Allow: /$\nDisallow: /", "/", true),
            ("Allow: /$\nDisallow: /", "/page", false),
        ] {
            let robots = Robots::parse(format!("User-agent: *\n{file}").as_bytes());
            assert_eq!(robots.rules("x").allows(path), expected, "{file:?} on {path}");
        }
    }

    #[test]
    fn odd_delays_and_hostile_files_are_survived() {
        for (delay, expected) in [("-1", None), ("x", None), ("NaN", None), ("1e9", Some(3_600)), ("0", Some(0))] {
            let robots = Robots::parse(format!("User-agent: *\nCrawl-delay: {delay}").as_bytes());
            assert_eq!(robots.rules("x").crawl_delay, expected.map(Duration::from_secs), "{delay}");
        }
        for file in [vec![0xff; 600 * 1024], vec![b':'; 600 * 1024], b"User-agent: *\nDisallow: /a*\n".repeat(40_000)] {
            let robots = Robots::parse(&file);
            assert!(robots.weight() < 8 << 20);
            assert!(robots.rules("x").allows("/b"));
        }
        assert!(!Robots::closed().rules("x").allows("/"));
        assert!(Robots::open().rules("x").allows("/"));
    }
}

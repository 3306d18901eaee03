//! Settings: read from the environment once (with `.env` if present), checked together, then passed on.
//!
//! A wrong setting stops the start with one line that names it and what is allowed. [`table`] lists them all with their
//! defaults and meanings; [`shown`] is what of them operators are shown.

pub mod shown;
pub mod table;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ipnet::IpNet;

use crate::blobs::BlobsUrl;
use crate::domain::location;
use crate::guard::AddressGuard;
use crate::private;
use crate::schedule::Schedule;

/// Everything both processes can be told.
#[derive(Debug, Clone)]
pub struct Settings {
    pub database_url: DatabaseUrl,
    /// Where Postgres is listened to, when `database_url` leads through a pooler.
    pub listen_url: Option<String>,
    /// Where large documents and profiles lie.
    pub blobs: BlobsUrl,
    pub api: ApiSettings,
    pub worker: WorkerSettings,
    pub browser: BrowserSettings,
    pub limits: LimitSettings,
    pub webhooks: WebhookSettings,
    pub net: NetSettings,
    /// The language model, if one is configured.
    pub model: Option<ModelSettings>,
    /// Where searches are made.
    pub search: SearchSettings,
    /// When workers replay what failed for a reason that may have passed; `None`: only operators do.
    pub replay: Option<Schedule>,
    /// Where `weir mcp` has its tools from.
    pub mcp: McpSettings,
    /// How long results of jobs and ended sessions stay.
    pub result_ttl: Duration,
    /// Bytes that cached pages may take together; 0: there is no cache.
    pub cache_size: i64,
    /// What API and workers know each other by, when given from outside; else it is kept in the database.
    pub internal_secret: Option<String>,
    pub log: LogSettings,
    /// Where spans are posted to, complete.
    pub traces: Option<url::Url>,
}

/// What is logged, and how.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// A filter of `tracing`.
    pub filter: String,
    /// For machines, instead of text.
    pub is_json: bool,
}

/// `DATABASE_URL`, told apart by its scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// A file on this machine, shared by several processes.
    Sqlite(PathBuf),
    /// A server, for workers on several machines.
    Postgres(String),
}

/// Settings of the API.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    pub bind: SocketAddr,
    /// Base of every absolute URL in answers; `None`: from the request.
    pub public_url: Option<url::Url>,
    /// `false`: every caller is the default team.
    pub auth_required: bool,
    /// Key of the default team, when given from outside.
    pub api_key: Option<String>,
    /// Where a made key is kept.
    pub api_key_file: PathBuf,
    /// Whose pages may call the API.
    pub cors: CorsOrigins,
    pub console: ConsoleSettings,
}

/// The console (`/console`).
#[derive(Clone)]
pub struct ConsoleSettings {
    pub is_on: bool,
    /// Signs in for all teams.
    pub key: Option<String>,
    /// The same, and changes nothing.
    pub read_key: Option<String>,
}

impl std::fmt::Debug for ConsoleSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleSettings").field("is_on", &self.is_on).finish_non_exhaustive()
    }
}

/// A Weir that is called from elsewhere.
#[derive(Debug, Clone)]
pub struct McpSettings {
    pub url: url::Url,
    /// `None`: it asks for none.
    pub key: Option<String>,
}

/// `WEIR_CORS_ORIGINS`: origins of web pages that may call the API and read its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorsOrigins {
    Off,
    Any,
    /// As browsers write them: scheme, host and port, nothing after.
    Only(Vec<String>),
}

/// Settings of a worker.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    pub bind: SocketAddr,
    /// Pages in work at once in one worker, 1 to 1,000.
    pub concurrency: usize,
    /// Browser sessions at once in one worker, 0 to 1,000.
    pub sessions: usize,
    /// Folders for Chromium profiles and the like, of which the first is taken that can be used; emptied of dead owners'
    /// things at start.
    pub run_dirs: Vec<PathBuf>,
    /// Where `scripts/setup` has put the packages of the code runners.
    pub runners: PathBuf,
}

/// Chromium.
#[derive(Debug, Clone)]
pub struct BrowserSettings {
    pub chromium: Option<PathBuf>,
    pub page_browsers: usize,
    pub pages_per_browser: usize,
    /// A browser of the scraping pool is there while pages want one and for this long after; `None`: always.
    pub page_browser_idle: Option<Duration>,
    /// Browsers that wait started for a session, 0 to 64.
    pub warm: usize,
    pub sandbox: SandboxChoice,
}

/// How boxes are made (`WEIR_SANDBOX`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxChoice {
    /// Nothing runs without a box, no session without bounds for its boxes as a whole.
    Strict,
    /// Boxes, with whatever bounds there are: an explicit choice.
    Degraded,
    /// No boxes: an explicit, loudly logged choice.
    Off,
}

/// What a team may use when it has no numbers of its own.
#[derive(Debug, Clone)]
pub struct LimitSettings {
    pub team_concurrency: i64,
    pub team_sessions: i64,
    /// Pages of one team that may wait at once.
    pub team_queue: i64,
    /// Requests a minute by bucket; `None`: no limit at all.
    pub rates: Option<BTreeMap<String, u32>>,
    /// `true`: teams need granted credits.
    pub metered: bool,
}

/// Webhook deliveries.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    pub secret: Option<String>,
    /// Pause before each further attempt; its length is the number of retries.
    pub retries: Vec<Duration>,
}

/// A language model behind an OpenAI-compatible chat endpoint (`WEIR_LLM_*`). The operator's choice, so it may lie at a
/// private address.
#[derive(Clone, PartialEq, Eq)]
pub struct ModelSettings {
    /// Where chats are posted to, complete.
    pub url: url::Url,
    pub key: Option<String>,
    pub name: String,
    /// Whether it is shown pictures of pages. Default false.
    pub images: bool,
    /// Tokens it takes at once, its answer included. Longer pages are read in part.
    pub context: usize,
    /// Questions that a process asks it at a time, at most.
    pub at_once: usize,
}

impl std::fmt::Debug for ModelSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelSettings")
            .field("url", &self.url.as_str())
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Search backends (`WEIR_SEARCH_URL`), in the order in which they are asked; none: there is no search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchSettings {
    pub backends: Vec<SearchBackend>,
}

/// One of them. The operator's choice, so it may lie at a private address.
#[derive(Clone, PartialEq, Eq)]
pub enum SearchBackend {
    /// A SearXNG with its JSON on: the address below which `/search` is.
    Searxng(url::Url),
    /// The Brave Search API, with its key.
    Brave { base: url::Url, key: String },
}

impl std::fmt::Debug for SearchBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Searxng(base) => f.debug_tuple("Searxng").field(&base.as_str()).finish(),
            Self::Brave { base, .. } => f.debug_tuple("Brave").field(&base.as_str()).finish(),
        }
    }
}

/// Who may be reached, and through what.
#[derive(Debug, Clone)]
pub struct NetSettings {
    pub allow_nets: Vec<IpNet>,
    pub allow_hosts: HashMap<String, IpAddr>,
    /// Ports that may be reached although browsers refuse them.
    pub allow_ports: Vec<u16>,
    pub proxy_basic: Vec<CountryProxy>,
    pub proxy_enhanced: Vec<CountryProxy>,
    /// Whose hosts `blockAds` keeps browsers from.
    pub ad_lists: Vec<AdList>,
}

/// A list of the hosts of ads and trackers (`WEIR_AD_LISTS`). Workers read the files at their start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdList {
    /// The one that Weir brings along.
    Builtin,
    File(PathBuf),
}

/// An upstream proxy, optionally for one country.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountryProxy {
    /// ISO 3166 alpha-2, upper case.
    pub country: Option<String>,
    pub url: url::Url,
}

impl NetSettings {
    /// The rule that decides which addresses may be reached.
    pub fn guard(&self) -> AddressGuard {
        AddressGuard::with_ports(self.allow_nets.clone(), self.allow_hosts.clone(), self.allow_ports.clone())
    }
}

/// Characters of a console key at least.
const MIN_CONSOLE_KEY: usize = 16;

/// Most proxies of a kind: each browser has two ways to each of them.
const MAX_PROXIES: usize = 100;

/// Days of the longest duration: a hundred years. Times that are much further away cannot be written any more.
const MAX_DURATION_DAYS: u64 = 36_500;

/// Most lists of ad hosts.
const MAX_AD_LISTS: usize = 20;

/// Buckets of `WEIR_RATE_LIMITS` with the self-host row of wire 11.1, requests a minute.
pub const RATE_BUCKETS: &[(&str, u32)] = &[
    ("scrape", 100),
    ("map", 100),
    ("search", 100),
    ("crawl", 15),
    ("status", 25_000),
    ("browser", 20),
    ("execute", 1_000),
];

impl Settings {
    /// Reads `.env`, then the environment. Errors name the setting and what is allowed.
    pub fn from_env() -> Result<Self> {
        shown::Given::read()?;
        Self::from_read_env()
    }

    /// As [`Settings::from_env`], where `.env` has been read.
    ///
    /// # Errors
    /// As there.
    pub fn from_read_env() -> Result<Self> {
        Self::from_lookup(&in_environment)
    }

    /// The same from any source of values.
    pub fn from_lookup(get: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let reader = Reader { get };
        let database_url: DatabaseUrl = reader.text("DATABASE_URL").parse()?;
        let listen_url = reader.listen_url(&database_url)?;
        let blobs: BlobsUrl = reader.text("WEIR_BLOBS").parse()?;
        blobs.check_settings(reader.get)?;
        let bind: SocketAddr = reader.parse("WEIR_BIND", "ADDRESS:PORT")?;
        let auth_required = reader.choice("WEIR_AUTH", &["required", "open"])? == "required";
        let anywhere = reader.text("WEIR_AUTH_OPEN_ANYWHERE") == "1";
        if !auth_required && !bind.ip().is_loopback() && !anywhere {
            bail!("WEIR_AUTH=open is refused on {bind}: bind to loopback or set WEIR_AUTH_OPEN_ANYWHERE=1");
        }
        let api_key = (reader.get)("WEIR_API_KEY");
        if let Some(key) = &api_key
            && (key.len() < 8 || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'))
        {
            bail!("WEIR_API_KEY: allowed are 8 or more letters, digits, '-' and '_'");
        }
        Ok(Self {
            blobs,
            api: ApiSettings {
                bind,
                public_url: (reader.get)("WEIR_PUBLIC_URL").map(|_| reader.base_url("WEIR_PUBLIC_URL")).transpose()?,
                auth_required,
                api_key_file: PathBuf::from("data/api-key"),
                cors: reader.cors()?,
                console: reader.console(api_key.as_deref())?,
                api_key,
            },
            worker: WorkerSettings {
                bind: reader.parse("WEIR_WORKER_BIND", "ADDRESS:PORT")?,
                concurrency: reader.number("WEIR_WORKER_CONCURRENCY", 1, 1_000)?,
                sessions: reader.number("WEIR_SESSIONS_PER_WORKER", 0, 1_000)?,
                run_dirs: reader.run_dirs(&database_url),
                runners: reader.runners(),
            },
            browser: BrowserSettings {
                chromium: (reader.get)("WEIR_CHROMIUM").map(PathBuf::from),
                page_browsers: reader.number("WEIR_PAGE_BROWSERS", 0, 64)?,
                pages_per_browser: reader.number("WEIR_PAGES_PER_BROWSER", 1, 64)?,
                page_browser_idle: Some(reader.duration("WEIR_PAGE_BROWSER_IDLE")?).filter(|idle| !idle.is_zero()),
                warm: reader.number("WEIR_WARM_BROWSERS", 0, 64)?,
                sandbox: match reader.choice("WEIR_SANDBOX", &["strict", "degraded", "off"])? {
                    "off" => SandboxChoice::Off,
                    "degraded" => SandboxChoice::Degraded,
                    _ => SandboxChoice::Strict,
                },
            },
            limits: LimitSettings {
                team_concurrency: reader.number("WEIR_TEAM_CONCURRENCY", 1, 100_000)? as i64,
                team_sessions: reader.number("WEIR_TEAM_SESSIONS", 1, 100_000)? as i64,
                team_queue: reader.number("WEIR_TEAM_QUEUE", 1, 100_000_000)? as i64,
                rates: reader.rates()?,
                metered: reader.choice("WEIR_CREDITS", &["unlimited", "metered"])? == "metered",
            },
            webhooks: WebhookSettings {
                secret: (reader.get)("WEIR_WEBHOOK_SECRET"),
                retries: reader.durations("WEIR_WEBHOOK_RETRIES")?,
            },
            net: NetSettings {
                allow_nets: reader.nets()?,
                allow_hosts: reader.hosts()?,
                allow_ports: reader.ports()?,
                proxy_basic: reader.proxies("WEIR_PROXY_BASIC")?,
                proxy_enhanced: reader.proxies("WEIR_PROXY_ENHANCED")?,
                ad_lists: reader.ad_lists()?,
            },
            model: reader.model()?,
            search: reader.search()?,
            replay: reader.schedule("WEIR_REPLAY_CRON")?,
            mcp: McpSettings { url: reader.base_url("WEIR_URL")?, key: (reader.get)("WEIR_KEY") },
            result_ttl: reader.duration("WEIR_RESULT_TTL")?,
            cache_size: reader.size("WEIR_CACHE_SIZE")?,
            internal_secret: reader.internal_secret()?,
            traces: reader.traces()?,
            log: LogSettings {
                filter: reader.text("WEIR_LOG"),
                is_json: reader.choice("WEIR_LOG_FORMAT", &["text", "json"])? == "json",
            },
            database_url,
            listen_url,
        })
    }
}

impl FromStr for DatabaseUrl {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")) {
            let path = path.split('?').next().unwrap_or(path);
            if path.is_empty() || path.contains(":memory:") {
                bail!("DATABASE_URL: SQLite needs a file, as in sqlite://data/weir.db");
            }
            return Ok(Self::Sqlite(PathBuf::from(path)));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        bail!("DATABASE_URL: allowed are sqlite://PATH and postgres://…")
    }
}

/// A setting as the environment has it; one that is empty is not given.
fn in_environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

struct Reader<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
}

impl Reader<'_> {
    /// What was given, else the table's default.
    fn text(&self, name: &str) -> String {
        (self.get)(name).unwrap_or_else(|| table::default_of(name).to_owned())
    }

    fn parse<T: FromStr>(&self, name: &str, allowed: &str) -> Result<T> {
        let text = self.text(name);
        text.trim().parse().ok().with_context(|| format!("{name}={text}: allowed is {allowed}"))
    }

    fn base_url(&self, name: &str) -> Result<url::Url> {
        let text = self.text(name);
        parse_base_url(&text).with_context(|| format!("{name}={text}: allowed is {BASE_URL}"))
    }

    fn http_url(&self, name: &str) -> Result<url::Url> {
        let allowed = "an http or https URL";
        let url: url::Url = self.parse(name, allowed)?;
        if !matches!(url.scheme(), "http" | "https") {
            bail!("{name}={url}: allowed is {allowed}");
        }
        Ok(url)
    }

    fn number(&self, name: &str, low: usize, high: usize) -> Result<usize> {
        let allowed = format!("a whole number from {low} to {high}");
        let value: usize = self.parse(name, &allowed)?;
        if !(low..=high).contains(&value) {
            bail!("{name}={value}: allowed is {allowed}");
        }
        Ok(value)
    }

    /// One of `allowed`.
    fn choice(&self, name: &str, allowed: &[&'static str]) -> Result<&'static str> {
        let text = self.text(name);
        let found = allowed.iter().find(|a| a.eq_ignore_ascii_case(text.trim()));
        found.copied().with_context(|| format!("{name}={text}: allowed is {}", allowed.join(" or ")))
    }

    fn duration(&self, name: &str) -> Result<Duration> {
        let text = self.text(name);
        parse_duration(&text).with_context(|| {
            format!("{name}={text}: allowed is a duration such as 200ms, 5s, 24h, of {MAX_DURATION_DAYS}d at most")
        })
    }

    fn durations(&self, name: &str) -> Result<Vec<Duration>> {
        let text = self.text(name);
        let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
        parts
            .map(|p| {
                parse_duration(p).with_context(|| {
                    format!("{name}: {p}: allowed are durations such as 1m,5m,15m, of {MAX_DURATION_DAYS}d at most")
                })
            })
            .collect()
    }

    fn size(&self, name: &str) -> Result<i64> {
        let text = self.text(name);
        parse_size(&text).with_context(|| format!("{name}={text}: allowed is a size such as 0, 500MB, 20GB"))
    }

    fn schedule(&self, name: &str) -> Result<Option<Schedule>> {
        let Some(text) = (self.get)(name) else { return Ok(None) };
        let allowed = |why| anyhow::anyhow!("{name}={text}: {why}; allowed is a cron expression such as */15 * * * *");
        text.parse().map(Some).map_err(allowed)
    }

    fn listen_url(&self, database: &DatabaseUrl) -> Result<Option<String>> {
        const NAME: &str = "DATABASE_LISTEN_URL";
        let Some(text) = (self.get)(NAME) else { return Ok(None) };
        match (database, text.parse()) {
            (DatabaseUrl::Postgres(_), Ok(DatabaseUrl::Postgres(text))) => Ok(Some(text)),
            (DatabaseUrl::Sqlite(_), _) => bail!("{NAME}: only with a DATABASE_URL that is Postgres's"),
            _ => bail!("{NAME}: allowed is postgres://…"),
        }
    }

    /// It travels in a header, and everything a session's addresses carry is made from it.
    fn internal_secret(&self) -> Result<Option<String>> {
        let secret = (self.get)("WEIR_INTERNAL_SECRET");
        if secret.as_ref().is_some_and(|s| s.len() < 16 || !s.bytes().all(|b| b.is_ascii_graphic())) {
            bail!("WEIR_INTERNAL_SECRET: allowed are 16 or more ASCII characters without spaces");
        }
        Ok(secret)
    }

    /// Its keys open every team's doors, so they are long, and no key of a team is one of them.
    fn console(&self, api_key: Option<&str>) -> Result<ConsoleSettings> {
        let key = |name| {
            let key = (self.get)(name);
            if key.as_ref().is_some_and(|k| k.len() < MIN_CONSOLE_KEY || !k.bytes().all(|b| b.is_ascii_graphic())) {
                bail!("{name}: allowed are {MIN_CONSOLE_KEY} or more ASCII characters without spaces");
            }
            if key.is_some() && key.as_deref() == api_key {
                bail!("{name}: allowed is a key of its own, not WEIR_API_KEY");
            }
            Ok(key)
        };
        let is_on = self.choice("WEIR_CONSOLE", &["on", "off"])? == "on";
        let settings =
            ConsoleSettings { is_on, key: key("WEIR_CONSOLE_KEY")?, read_key: key("WEIR_CONSOLE_READ_KEY")? };
        if settings.key.is_some() && settings.key == settings.read_key {
            bail!("WEIR_CONSOLE_READ_KEY: allowed is another key than WEIR_CONSOLE_KEY");
        }
        Ok(settings)
    }

    /// The same places as in `scripts/setup`. Code runs as somebody who cannot look into root's home.
    fn runners(&self) -> PathBuf {
        let path = |name| (self.get)(name).map(PathBuf::from);
        path("WEIR_RUNNERS").unwrap_or_else(|| {
            let home = || if is_root() { None } else { Some(path("HOME")?.join(".cache/weir")) };
            path("WEIR_CACHE").or_else(home).unwrap_or_else(|| "/var/cache/weir".into()).join("runners")
        })
    }

    /// What was said; else `/run/weir`, else beside the data. Root's data may lie where nobody else gets through, and
    /// anybody's below a path that is too long.
    fn run_dirs(&self, database: &DatabaseUrl) -> Vec<PathBuf> {
        if let Some(given) = (self.get)("WEIR_RUN_DIR") {
            return vec![given.into()];
        }
        let data = match database {
            DatabaseUrl::Sqlite(path) => path.parent().map(Path::to_owned).unwrap_or_default(),
            DatabaseUrl::Postgres(_) => private::DATA.into(),
        };
        let mut places = vec![PathBuf::from("/run/weir"), data.join("weir-run")];
        places.push(match private::own_uid() {
            0 => "/var/lib/weir-run".into(),
            uid => std::env::temp_dir().join(format!("weir-run-{uid}")),
        });
        places
    }

    fn rates(&self) -> Result<Option<BTreeMap<String, u32>>> {
        let text = self.text("WEIR_RATE_LIMITS");
        if text.trim().eq_ignore_ascii_case("off") {
            return Ok(None);
        }
        let mut rates: BTreeMap<String, u32> = RATE_BUCKETS.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (name, value) = parse_rate(part).map_err(|e| anyhow::anyhow!("WEIR_RATE_LIMITS: {e}"))?;
            rates.insert(name, value);
        }
        Ok(Some(rates))
    }

    /// The collector's base, or the path for traces itself.
    fn traces(&self) -> Result<Option<url::Url>> {
        if (self.get)("WEIR_OTLP_URL").is_none() {
            return Ok(None);
        }
        let mut url = self.http_url("WEIR_OTLP_URL")?;
        let path = url.path().trim_end_matches('/').to_owned();
        if !path.ends_with("/v1/traces") {
            url.set_path(&format!("{path}/v1/traces"));
        }
        Ok(Some(url))
    }

    /// The base of the interface (`https://host/v1`) or the chat endpoint itself.
    fn model(&self) -> Result<Option<ModelSettings>> {
        let (url, name) = ((self.get)("WEIR_LLM_URL"), (self.get)("WEIR_LLM_MODEL"));
        let Some(text) = url else {
            if name.is_some() {
                bail!("WEIR_LLM_MODEL: WEIR_LLM_URL is missing");
            }
            return Ok(None);
        };
        let allowed = || format!("WEIR_LLM_URL={text}: allowed is an http or https URL such as https://host/v1");
        let mut url = url::Url::parse(text.trim()).ok().filter(|u| matches!(u.scheme(), "http" | "https"));
        if let Some(url) = &mut url {
            let path = url.path().trim_end_matches('/');
            let path = match path {
                "" => "/v1/chat/completions".to_owned(),
                path if path.ends_with("/chat/completions") => path.to_owned(),
                path => format!("{path}/chat/completions"),
            };
            url.set_path(&path);
        }
        let url = url.with_context(allowed)?;
        let name = name.context("WEIR_LLM_URL: WEIR_LLM_MODEL is missing")?;
        let key = (self.get)("WEIR_LLM_KEY");
        if key.as_ref().is_some_and(|key| !key.bytes().all(|b| b.is_ascii_graphic())) {
            bail!("WEIR_LLM_KEY: allowed are ASCII characters without spaces");
        }
        let images = match self.text("WEIR_LLM_IMAGES").trim() {
            "on" => true,
            "off" => false,
            other => bail!("WEIR_LLM_IMAGES={other}: allowed are on and off"),
        };
        let context = self.number("WEIR_LLM_CONTEXT", 8_000, 10_000_000)?;
        let at_once = self.number("WEIR_LLM_CONCURRENCY", 1, 1_000)?;
        Ok(Some(ModelSettings { url, key, name: name.trim().to_owned(), images, context, at_once }))
    }

    fn search(&self) -> Result<SearchSettings> {
        let text = self.text("WEIR_SEARCH_URL");
        let key = (self.get)("WEIR_SEARCH_KEY").map(|key| key.trim().to_owned());
        if key.as_ref().is_some_and(|key| !key.bytes().all(|b| b.is_ascii_graphic())) {
            bail!("WEIR_SEARCH_KEY: allowed are ASCII characters without spaces");
        }
        let web = |text: &str| url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let brave = self.text("WEIR_BRAVE_URL");
        let brave =
            web(brave.trim()).with_context(|| format!("WEIR_BRAVE_URL={brave}: allowed is an http or https URL"));
        let brave = brave?;
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let backends = parts.map(|part| match part {
            "brave" => {
                let key = key.clone().context("WEIR_SEARCH_URL: brave needs its key, WEIR_SEARCH_KEY")?;
                Ok(SearchBackend::Brave { base: brave.clone(), key })
            }
            address => web(address).map(SearchBackend::Searxng).with_context(|| {
                format!("WEIR_SEARCH_URL: {address}: allowed are addresses of a SearXNG such as http://127.0.0.1:8888, and brave")
            }),
        });
        Ok(SearchSettings { backends: backends.collect::<Result<_>>()? })
    }

    fn cors(&self) -> Result<CorsOrigins> {
        let text = self.text("WEIR_CORS_ORIGINS");
        match text.trim() {
            "*" => return Ok(CorsOrigins::Any),
            "off" => return Ok(CorsOrigins::Off),
            _ => {}
        }
        let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
        let origins = parts.map(|p| {
            let origin = url::Url::parse(p).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            origin
                .map(|url| url.origin().ascii_serialization())
                .filter(|origin| p.trim_end_matches('/') == origin)
                .with_context(|| {
                    format!("WEIR_CORS_ORIGINS: {p}: allowed are *, off, or origins such as https://app.example.com")
                })
        });
        Ok(CorsOrigins::Only(origins.collect::<Result<_>>()?))
    }

    fn nets(&self) -> Result<Vec<IpNet>> {
        let text = self.text("WEIR_ALLOW_NETS");
        let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
        parts
            .map(|p| {
                p.parse::<IpNet>()
                    .or_else(|_| p.parse::<IpAddr>().map(IpNet::from))
                    .ok()
                    .with_context(|| format!("WEIR_ALLOW_NETS: {p}: allowed are CIDRs such as 127.0.0.0/8"))
            })
            .collect()
    }

    fn hosts(&self) -> Result<HashMap<String, IpAddr>> {
        let text = self.text("WEIR_ALLOW_HOSTS");
        let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
        parts
            .map(|p| {
                p.split_once('=')
                    .and_then(|(host, ip)| Some((host.trim().to_ascii_lowercase(), ip.trim().parse().ok()?)))
                    .with_context(|| format!("WEIR_ALLOW_HOSTS: {p}: allowed are pairs host=address"))
            })
            .collect()
    }

    fn ports(&self) -> Result<Vec<u16>> {
        let text = self.text("WEIR_ALLOW_PORTS");
        let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
        parts
            .map(|p| {
                let port = p.parse().ok().filter(|port| *port != 0);
                port.with_context(|| format!("WEIR_ALLOW_PORTS: {p}: allowed are port numbers such as 22,6000"))
            })
            .collect()
    }

    fn ad_lists(&self) -> Result<Vec<AdList>> {
        let text = self.text("WEIR_AD_LISTS");
        let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
        if parts.clone().count() > MAX_AD_LISTS {
            bail!("WEIR_AD_LISTS: allowed are at most {MAX_AD_LISTS} lists");
        }
        parts
            .map(|p| match p {
                "builtin" => Ok(AdList::Builtin),
                path if path.contains('/') => Ok(AdList::File(path.into())),
                _ => bail!("WEIR_AD_LISTS: {p}: allowed are builtin and paths of files such as /etc/weir/ads.txt"),
            })
            .collect()
    }

    fn proxies(&self, name: &str) -> Result<Vec<CountryProxy>> {
        let text = self.text(name);
        let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
        if parts.clone().count() > MAX_PROXIES {
            bail!("{name}: allowed are at most {MAX_PROXIES} proxies");
        }
        parts
            .map(|p| {
                let (country, address) = match p.split_once('=') {
                    Some((c, rest)) if c.len() == 2 => {
                        let country = c.to_ascii_uppercase();
                        if !location::countries().any(|known| known == country) {
                            bail!("{name}: {c}: allowed are countries of ISO 3166-1 such as us");
                        }
                        (Some(country), rest)
                    }
                    _ => (None, p),
                };
                let url = url::Url::parse(address).ok().filter(|u| matches!(u.scheme(), "http" | "https" | "socks5"));
                let url = url.with_context(|| {
                    format!("{name}: {p}: allowed are http, https and socks5 URLs, optionally as us=http://…")
                })?;
                Ok(CountryProxy { country, url })
            })
            .collect()
    }
}

/// Whether this process is root.
fn is_root() -> bool {
    private::own_uid() == 0
}

/// What [`parse_base_url`] takes, in words.
pub const BASE_URL: &str = "an http or https URL without query and fragment";

/// An address that paths are appended to: what stands behind a query or a fragment would be none.
pub fn parse_base_url(text: &str) -> Option<url::Url> {
    let url = url::Url::parse(text.trim()).ok()?;
    let is_base = matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none();
    is_base.then_some(url)
}

/// One `BUCKET=N` of the rate limits. The error says which buckets there are.
pub fn parse_rate(part: &str) -> Result<(String, u32), String> {
    let names: Vec<&str> = RATE_BUCKETS.iter().map(|(n, _)| *n).collect();
    let known = |name: &str| names.contains(&name);
    match part.split_once('=').map(|(n, v)| (n.trim(), v.trim().parse::<u32>())) {
        Some((name, Ok(value))) if known(name) && value > 0 => Ok((name.to_owned(), value)),
        _ => Err(format!("{part}: allowed are off or BUCKET=N with N from 1 and the buckets {}", names.join(", "))),
    }
}

/// Reads `200ms`, `5s`, `15m`, `24h`, `7d`, up to [`MAX_DURATION_DAYS`].
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..split].parse().ok()?;
    let unit_ms = match &text[split..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let ms = number.checked_mul(unit_ms).filter(|ms| *ms <= MAX_DURATION_DAYS * 86_400_000)?;
    Some(Duration::from_millis(ms))
}

/// Reads `0`, `512KB`, `500MB`, `20GB`, `1TB`: powers of 1,024, in bytes.
pub fn parse_size(text: &str) -> Option<i64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: i64 = text[..split].parse().ok()?;
    let shift = match text[split..].trim().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "KB" | "K" => 10,
        "MB" | "M" => 20,
        "GB" | "G" => 30,
        "TB" | "T" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests;

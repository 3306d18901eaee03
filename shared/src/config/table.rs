//! Every setting there is, once: its name, what counts where it is not given, and what it means. [`super::Settings`] is
//! read by it, `weir config` prints it, and `docs/settings.md` is written from it.

/// One setting.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub default: Fallback,
    pub secrecy: Secrecy,
    /// Plain sentences; Markdown's backticks mark what is typed as it stands.
    pub meaning: &'static str,
}

/// What counts where a setting is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// A value that could be given as well.
    Value(&'static str),
    /// Nothing, or what is found on the machine, in words.
    Words(&'static str),
}

/// What of a value may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    Open,
    /// Addresses, comma-separated, in which passwords may stand.
    Addresses,
    Secret,
}

use Fallback::{Value, Words};

const fn open(name: &'static str, default: Fallback, meaning: &'static str) -> Setting {
    Setting { name, default, secrecy: Secrecy::Open, meaning }
}

const fn addresses(name: &'static str, default: Fallback, meaning: &'static str) -> Setting {
    Setting { name, default, secrecy: Secrecy::Addresses, meaning }
}

const fn secret(name: &'static str, default: Fallback, meaning: &'static str) -> Setting {
    Setting { name, default, secrecy: Secrecy::Secret, meaning }
}

/// All of them, in the order in which they are shown.
pub const SETTINGS: &[Setting] = &[
    addresses("DATABASE_URL", Value("sqlite://data/weir.db"), "or `postgres://…`; the role must own its database"),
    addresses(
        "DATABASE_LISTEN_URL",
        Words("`DATABASE_URL`"),
        "the same Postgres without the pooler that `DATABASE_URL` leads through: what comes by `LISTEN` is heard there",
    ),
    open(
        "WEIR_BLOBS",
        Value("file://data/blobs"),
        "large documents and profiles: a folder, or `s3://BUCKET/PREFIX` of an S3-compatible store; workers on several \
         machines need the latter or a shared folder",
    ),
    addresses(
        "AWS_ENDPOINT_URL",
        Words("Amazon's"),
        "address of the S3-compatible store, with `http://` or `https://`; this and the next ones count for a bucket only",
    ),
    addresses("AWS_ENDPOINT_URL_S3", Words("`AWS_ENDPOINT_URL`"), "the same; of the three it counts first"),
    addresses("AWS_ENDPOINT", Words("`AWS_ENDPOINT_URL`"), "the same; of the three it counts last"),
    open("AWS_REGION", Words("`us-east-1`"), "region of the S3-compatible store"),
    open("AWS_DEFAULT_REGION", Words("`us-east-1`"), "the same, where `AWS_REGION` is not given"),
    secret("AWS_ACCESS_KEY_ID", Words("none"), "its key's name"),
    secret("AWS_SECRET_ACCESS_KEY", Words("none"), "its key"),
    secret("AWS_SESSION_TOKEN", Words("none"), "what goes with a key that holds for some hours"),
    open("WEIR_BIND", Value("127.0.0.1:3002"), "API listen address; port 0 picks one and logs it"),
    open(
        "WEIR_PUBLIC_URL",
        Words("from the request"),
        "base of every absolute URL in answers: `http` or `https`, without query and fragment",
    ),
    open(
        "WEIR_AUTH",
        Value("required"),
        "`open`: who reaches the address is the default team, but for pages of other sites in a browser; refused on a \
         non-loopback bind unless `WEIR_AUTH_OPEN_ANYWHERE=1`",
    ),
    open("WEIR_AUTH_OPEN_ANYWHERE", Words("none"), "`1`: `WEIR_AUTH=open` on any address"),
    secret("WEIR_API_KEY", Words("made on first start"), "key of the default team, kept in `data/api-key`"),
    open(
        "WEIR_ALLOW_NETS",
        Words("empty"),
        "CIDRs that may be reached besides public addresses; public addresses of this machine need it too",
    ),
    open(
        "WEIR_ALLOW_PORTS",
        Words("empty"),
        "ports that may be reached although browsers refuse them (mail, SSH, X11 …): `22,6000`",
    ),
    open(
        "WEIR_ALLOW_HOSTS",
        Words("empty"),
        "`host=address` pairs resolved without DNS, still subject to the address rules",
    ),
    open("WEIR_WORKER_BIND", Value("127.0.0.1:0"), "a worker's private listener"),
    secret(
        "WEIR_INTERNAL_SECRET",
        Words("made on first start"),
        "what API and workers know each other by, kept in the database",
    ),
    open(
        "WEIR_WORKER_CONCURRENCY",
        Value("16"),
        "pages in work at once in one worker; while they take long, as many of others beside them",
    ),
    open("WEIR_SESSIONS_PER_WORKER", Value("12"), "browser sessions at once in one worker; 0: none"),
    open("WEIR_PAGE_BROWSERS", Value("1"), "browsers of the scraping pool; 0: pages are fetched only"),
    open("WEIR_PAGES_PER_BROWSER", Value("8"), "pages at once in each of them"),
    open(
        "WEIR_PAGE_BROWSER_IDLE",
        Value("0s"),
        "such a browser starts with the first page that needs one and stops when none has for this long; `0s`: it starts \
         with the worker and stays",
    ),
    open("WEIR_WARM_BROWSERS", Value("1"), "browsers of one worker that wait started for a session"),
    open("WEIR_CHROMIUM", Words("found on PATH"), "the headless shell is preferred: a fifth of full Chromium's CPU"),
    open(
        "WEIR_RUNNERS",
        Words("`/var/cache/weir/runners` as root, `~/.cache/weir/runners` otherwise"),
        "what `scripts/setup` installs for executed code: Playwright and agent-browser; `runners` below `WEIR_CACHE` if \
         that is set",
    ),
    open("WEIR_CACHE", Words("`/var/cache/weir` as root, `~/.cache/weir` otherwise"), "where `scripts/setup` installs"),
    open(
        "WEIR_SANDBOX",
        Value("strict"),
        "`degraded`: boxes also where their memory and processes cannot be bounded as a whole; `off` is an explicit, \
         loudly logged choice",
    ),
    open(
        "WEIR_RUN_DIR",
        Words("`/run/weir`, else `weir-run` beside the data, else `/var/lib/weir-run` (root) or `/tmp/weir-run-UID`"),
        "where boxes are made; ours alone, and enterable for every user when the worker is root",
    ),
    open(
        "WEIR_CORS_ORIGINS",
        Value("*"),
        "origins of web pages that may call the API: a list, `*` or `off`; never with `WEIR_AUTH=open`",
    ),
    open("WEIR_CONSOLE", Value("on"), "`off`: nothing answers below `/console`"),
    secret("WEIR_CONSOLE_KEY", Words("none"), "key that signs in to the console for all teams; 16 characters or more"),
    secret("WEIR_CONSOLE_READ_KEY", Words("none"), "the same, to read only"),
    open("WEIR_TEAM_CONCURRENCY", Value("50"), "pages in work at once of one team, over all workers"),
    open("WEIR_TEAM_SESSIONS", Value("10"), "browser sessions at once of one team"),
    open("WEIR_TEAM_QUEUE", Value("300000"), "pages of one team that may wait at once; more are refused with 429"),
    open(
        "WEIR_RATE_LIMITS",
        Value("scrape=100,map=100,search=100,crawl=15,status=25000,browser=20,execute=1000"),
        "requests a minute and team by bucket, over all API processes; `off`",
    ),
    open("WEIR_CREDITS", Value("unlimited"), "`metered`: teams need granted credits"),
    secret("WEIR_WEBHOOK_SECRET", Words("none"), "default HMAC secret"),
    open("WEIR_WEBHOOK_RETRIES", Value("1m,5m,15m"), "pause before each further attempt"),
    open(
        "WEIR_REPLAY_CRON",
        Words("none"),
        "cron expression in UTC (`*/15 * * * *`): one worker replays failed pages and deliveries that are worth it, each \
         three times at most",
    ),
    addresses(
        "WEIR_LLM_URL",
        Words("none"),
        "an OpenAI-compatible chat endpoint (`https://host/v1`); formats that are read, prompts of crawls and of \
         interact go to it",
    ),
    open("WEIR_LLM_MODEL", Words("none"), "the name of its model"),
    secret("WEIR_LLM_KEY", Words("none"), "its key"),
    open(
        "WEIR_LLM_CONTEXT",
        Value("32000"),
        "tokens the model takes at once; longer pages are read in part, with a `warning`",
    ),
    open(
        "WEIR_LLM_CONCURRENCY",
        Value("16"),
        "questions that a process asks the model at a time, at most: 1 to 4 for a model on a machine of your own",
    ),
    open("WEIR_LLM_IMAGES", Value("off"), "`on`: the model takes pictures, and the agent shows it the page as one"),
    addresses(
        "WEIR_SEARCH_URL",
        Words("none"),
        "search backends in the order in which they are asked, comma-separated: addresses of a SearXNG whose JSON is on, \
         and `brave`; one that refuses rests, and the next one is asked",
    ),
    secret("WEIR_SEARCH_KEY", Words("none"), "key of the Brave Search API"),
    addresses("WEIR_BRAVE_URL", Value("https://api.search.brave.com/res/v1"), "address of the Brave Search API"),
    addresses("WEIR_URL", Value("http://127.0.0.1:3002"), "the Weir that `weir mcp` calls"),
    secret("WEIR_KEY", Words("none"), "a key of it"),
    open("WEIR_RESULT_TTL", Value("24h"), "how long results of jobs and ended sessions stay"),
    open(
        "WEIR_CACHE_SIZE",
        Value("1GB"),
        "what kept pages may take together, compressed; those not used for longest go first; `0`: none are kept",
    ),
    addresses(
        "WEIR_PROXY_BASIC",
        Words("none"),
        "comma-separated proxy URLs (`http`, `https`, `socks5`), optionally `us=http://…` by country; for pages fetched \
         and rendered alike, and for sessions",
    ),
    addresses("WEIR_PROXY_ENHANCED", Words("none"), "the same for pages that ask for enhanced proxies"),
    open(
        "WEIR_AD_LISTS",
        Value("builtin"),
        "what `blockAds` keeps browsers from: `builtin` and paths of files, comma-separated; hosts files, lists of names, or \
         filter lists in Adblock syntax. Rules about more than whole hosts (`||ads.test^`) have each request of a rendered \
         page asked about; sessions follow those about hosts",
    ),
    addresses(
        "WEIR_OTLP_URL",
        Words("none"),
        "a collector of OpenTelemetry that takes OTLP over HTTP in JSON (`http://host:4318`), where traces go; a name and \
         password in the address are sent as basic authentication",
    ),
    open("WEIR_LOG", Value("info"), "tracing filter"),
    open("WEIR_LOG_FORMAT", Value("text"), "`json` for machines"),
];

/// The entry of this name.
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// What counts where the setting is not given, if that is a value.
pub(super) fn default_of(name: &str) -> &'static str {
    match find(name).map(|setting| setting.default) {
        Some(Value(value)) => value,
        Some(Words(_)) | None => "",
    }
}

impl std::fmt::Display for Fallback {
    /// As Markdown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value(value) => write!(f, "`{value}`"),
            Words(words) => f.write_str(words),
        }
    }
}

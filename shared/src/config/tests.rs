//! Settings as they are read, refused and documented.

#![allow(clippy::unwrap_used, reason = "tests")]
use super::*;

fn read(pairs: &[(&str, &str)]) -> Result<Settings> {
    let map: HashMap<String, String> = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    Settings::from_lookup(&|name| map.get(name).cloned())
}

#[test]
fn defaults_work_on_one_machine() {
    let settings = read(&[]).unwrap();
    assert_eq!(settings.database_url, DatabaseUrl::Sqlite("data/weir.db".into()));
    assert_eq!(settings.worker.concurrency, 16);
    assert_eq!(settings.webhooks.retries.len(), 3);
    assert!(
        settings.api.auth_required && settings.browser.sandbox == SandboxChoice::Strict && !settings.limits.metered
    );
}

#[test]
fn the_runners_are_where_they_are_said_to_be_or_in_the_cache() {
    let runners = |pairs: &[(&str, &str)]| read(pairs).unwrap().worker.runners;
    let cache = ("WEIR_CACHE", "/c");
    assert_eq!(runners(&[cache, ("WEIR_RUNNERS", "/r")]), PathBuf::from("/r"));
    assert_eq!(runners(&[cache, ("HOME", "/h")]), PathBuf::from("/c/runners"));
    let own = if is_root() { "/var/cache/weir/runners" } else { "/h/.cache/weir/runners" };
    assert_eq!(runners(&[("HOME", "/h")]), PathBuf::from(own));
}

#[test]
fn boxes_run_where_it_is_said_else_in_run_else_beside_the_data() {
    let places = |pairs: &[(&str, &str)]| read(pairs).unwrap().worker.run_dirs;
    assert_eq!(places(&[("WEIR_RUN_DIR", "/r")]), [PathBuf::from("/r")]);
    assert_eq!(places(&[])[..2], [PathBuf::from("/run/weir"), PathBuf::from("data/weir-run")]);
    assert_eq!(places(&[("DATABASE_URL", "sqlite:///srv/w/weir.db")])[1], PathBuf::from("/srv/w/weir-run"));
    assert_eq!(places(&[("DATABASE_URL", "postgres://a/b")])[1], PathBuf::from("data/weir-run"));
}

#[test]
fn a_wrong_setting_is_named_with_what_is_allowed() {
    for (name, value, allowed) in [
        ("WEIR_BIND", "nowhere", "ADDRESS:PORT"),
        ("WEIR_WORKER_CONCURRENCY", "0", "from 1 to 1000"),
        ("WEIR_SANDBOX", "maybe", "strict or degraded or off"),
        ("WEIR_RESULT_TTL", "soon", "24h"),
        ("WEIR_ALLOW_NETS", "home", "CIDR"),
        ("WEIR_ALLOW_PORTS", "22,ssh", "22,6000"),
        ("WEIR_RATE_LIMITS", "lunch=3", "BUCKET=N"),
        ("DATABASE_URL", "mysql://x", "postgres://"),
        ("WEIR_URL", "ftp://x", "an http or https URL"),
        ("WEIR_BLOBS", "gs://pages", "s3://BUCKET/PREFIX"),
        ("WEIR_WEBHOOK_RETRIES", "1m,x", "1m,5m,15m"),
        ("WEIR_INTERNAL_SECRET", "short", "16 or more"),
        ("WEIR_TEAM_QUEUE", "0", "from 1 to"),
        ("WEIR_CONSOLE", "maybe", "on or off"),
        ("WEIR_CONSOLE_KEY", "fifteen-letters", "16 or more"),
        ("WEIR_CONSOLE_READ_KEY", "sixteen letters and spaces", "without spaces"),
        ("WEIR_SESSIONS_PER_WORKER", "1001", "from 0 to 1000"),
        ("WEIR_REPLAY_CRON", "0 0 30 2 *", "*/15 * * * *"),
        ("WEIR_LLM_URL", "localhost", "https://host/v1"),
        ("WEIR_AD_LISTS", "builtin,ads.txt", "builtin and paths"),
        ("WEIR_PROXY_BASIC", "uk=http://proxy.test", "ISO 3166-1"),
        ("WEIR_LLM_URL", "http://localhost", "WEIR_LLM_MODEL"),
        ("WEIR_LLM_MODEL", "gpt", "WEIR_LLM_URL"),
        ("WEIR_SEARCH_URL", "localhost", "http://127.0.0.1:8888"),
        ("WEIR_SEARCH_URL", "brave", "WEIR_SEARCH_KEY"),
        ("WEIR_BRAVE_URL", "ftp://x", "http or https"),
        ("WEIR_CORS_ORIGINS", "app.example.com", "https://app.example.com"),
        ("WEIR_CORS_ORIGINS", "https://app.example.com/path", "https://app.example.com"),
    ] {
        let error = read(&[(name, value)]).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(allowed), "{name}: {error}");
    }
}

#[test]
fn a_model_is_found_from_its_base_or_its_endpoint() {
    for (given, expected) in [
        ("https://api.example.com/v1", "https://api.example.com/v1/chat/completions"),
        ("https://api.example.com/v1/", "https://api.example.com/v1/chat/completions"),
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/chat/completions"),
        ("https://x.example/a/chat/completions?v=1", "https://x.example/a/chat/completions?v=1"),
    ] {
        let pairs = [("WEIR_LLM_URL", given), ("WEIR_LLM_MODEL", "m"), ("WEIR_LLM_KEY", "secret")];
        let model = read(&pairs).unwrap().model.unwrap();
        assert_eq!((model.url.as_str(), model.name.as_str()), (expected, "m"), "{given}");
        assert!(!format!("{model:?}").contains("secret") && !model.images);
    }
    let images = |word| [("WEIR_LLM_URL", "http://x.test"), ("WEIR_LLM_MODEL", "m"), ("WEIR_LLM_IMAGES", word)];
    assert!(read(&images("on")).unwrap().model.unwrap().images);
    assert!(read(&images("yes")).unwrap_err().to_string().contains("on and off"));
    assert_eq!(read(&[]).unwrap().model, None);
}

#[test]
fn search_backends_keep_their_order_and_their_key_to_themselves() {
    let pairs = [("WEIR_SEARCH_URL", "brave, http://127.0.0.1:8888/searx"), ("WEIR_SEARCH_KEY", "secret")];
    let search = read(&pairs).unwrap().search;
    assert!(matches!(&search.backends[..], [SearchBackend::Brave { .. }, SearchBackend::Searxng(_)]), "{search:?}");
    assert!(!format!("{search:?}").contains("secret"));
    assert!(read(&[]).unwrap().search.backends.is_empty());
}

#[test]
fn open_auth_is_refused_beyond_loopback_unless_forced() {
    let open = [("WEIR_AUTH", "open"), ("WEIR_BIND", "0.0.0.0:3002")];
    assert!(read(&open).is_err());
    assert!(read(&[open[0], open[1], ("WEIR_AUTH_OPEN_ANYWHERE", "1")]).is_ok());
    assert!(read(&[open[0]]).is_ok());
}

#[test]
fn durations_read_in_every_unit() {
    assert_eq!(parse_duration("200ms"), Some(Duration::from_millis(200)));
    assert_eq!(parse_duration("24h"), Some(Duration::from_secs(86_400)));
    assert_eq!(parse_duration("5"), None);
    assert_eq!(parse_duration(""), None);
}

/// Names that are read outside of this module, with the log.
const LOG: [&str; 2] = ["WEIR_LOG", "WEIR_LOG_FORMAT"];

#[test]
fn the_readmes_table_has_every_setting_with_its_default() {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    // What the code asks for; some names only beside others.
    let asked = RefCell::new(BTreeSet::from(LOG.map(str::to_owned)));
    for given in [&[][..], &[("WEIR_LLM_URL", "http://localhost"), ("WEIR_LLM_MODEL", "m")][..]] {
        Settings::from_lookup(&|name| {
            asked.borrow_mut().insert(name.to_owned());
            given.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        })
        .unwrap();
    }
    // Where the runners are depends on the machine.
    let asked: BTreeSet<String> = asked.into_inner().into_iter().filter(|name| name != "HOME").collect();

    let mut documented = BTreeSet::new();
    let is_setting = |word: &&str| word.starts_with("WEIR_") || *word == "DATABASE_URL";
    for line in include_str!("../../../README.md").lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let names: Vec<&str> = cells[0].split('`').filter(is_setting).collect();
        let words = line.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
        documented.extend(words.filter(is_setting).map(str::to_owned));
        let defaults: Vec<&str> = cells[1].split(" / ").map(|value| value.trim_matches('`')).collect();
        for (name, default) in names.iter().zip(&defaults).filter(|_| names.len() == defaults.len()) {
            let is_value = !default.contains(' ') && !["empty", "none"].contains(default) && !LOG.contains(name);
            if is_value {
                let given = read(&[(name, default)]).map(|settings| format!("{settings:?}"));
                assert_eq!(given.unwrap(), format!("{:?}", read(&[]).unwrap()), "{name}");
            }
        }
    }
    assert_eq!(documented, asked);
}

#[test]
fn origins_of_web_pages_are_any_none_or_a_list() {
    let cors = |value| read(&[("WEIR_CORS_ORIGINS", value)]).unwrap().api.cors;
    assert_eq!(read(&[]).unwrap().api.cors, CorsOrigins::Any);
    assert_eq!((cors("*"), cors("off")), (CorsOrigins::Any, CorsOrigins::Off));
    let list = ["https://app.example.com", "http://localhost:5173"].map(str::to_owned).to_vec();
    assert_eq!(cors("https://app.example.com/, http://localhost:5173"), CorsOrigins::Only(list));
}

#[test]
fn lists_of_ad_hosts_stand_beside_or_instead_of_the_own_one() {
    let lists = |pairs: &[(&str, &str)]| read(pairs).unwrap().net.ad_lists;
    assert_eq!(lists(&[]), [AdList::Builtin]);
    assert_eq!(lists(&[("WEIR_AD_LISTS", "/etc/ads.txt")]), [AdList::File("/etc/ads.txt".into())]);
    let both = lists(&[("WEIR_AD_LISTS", "builtin, ./lists/ads.txt")]);
    assert_eq!(both, [AdList::Builtin, AdList::File("./lists/ads.txt".into())]);
}

#[test]
fn the_consoles_keys_are_three_different_ones() {
    let key = ("WEIR_CONSOLE_KEY", "operators-own-key");
    let read = ("WEIR_CONSOLE_READ_KEY", "key-of-who-reads-only");
    let console = read_console(&[key, read]).unwrap();
    assert!(console.is_on && console.key.is_some() && console.read_key.is_some());
    assert!(!format!("{console:?}").contains("key-of-who"));
    assert!(read_console(&[key, ("WEIR_CONSOLE_READ_KEY", key.1)]).is_err());
    assert!(read_console(&[key, ("WEIR_API_KEY", key.1)]).is_err());
    assert!(!read_console(&[("WEIR_CONSOLE", "off")]).unwrap().is_on);
}

fn read_console(pairs: &[(&str, &str)]) -> Result<ConsoleSettings> {
    Ok(read(pairs)?.api.console)
}

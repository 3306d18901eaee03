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
        ("WEIR_RESULT_TTL", "36501d", "36500d at most"),
        ("WEIR_RESULT_TTL", "200000000000d", "36500d at most"),
        ("WEIR_PAGE_BROWSER_IDLE", "99999999999d", "36500d at most"),
        ("WEIR_WEBHOOK_RETRIES", "1m,99999999999d", "36500d at most"),
        ("WEIR_ALLOW_NETS", "home", "CIDR"),
        ("WEIR_ALLOW_PORTS", "22,ssh", "22,6000"),
        ("WEIR_RATE_LIMITS", "lunch=3", "BUCKET=N"),
        ("DATABASE_URL", "mysql://x", "postgres://"),
        ("WEIR_URL", "ftp://x", "an http or https URL"),
        ("WEIR_URL", "http://weir.example/?key=a", "without query"),
        ("WEIR_PUBLIC_URL", "weir.example", "an http or https URL"),
        ("WEIR_PUBLIC_URL", "ftp://weir.example", "an http or https URL"),
        ("WEIR_PUBLIC_URL", "https://weir.example/?a=b", "without query and fragment"),
        ("WEIR_PUBLIC_URL", "https://weir.example/api?", "without query and fragment"),
        ("WEIR_PUBLIC_URL", "https://weir.example/#part", "without query and fragment"),
        ("WEIR_BLOBS", "gs://pages", "s3://BUCKET/PREFIX"),
        ("WEIR_BLOBS", "s3://b/x", "3 to 63"),
        ("WEIR_BLOBS", "s3://pages//x", "without empty parts"),
        ("WEIR_WEBHOOK_RETRIES", "1m,x", "1m,5m,15m"),
        ("WEIR_INTERNAL_SECRET", "short", "16 or more"),
        ("WEIR_TEAM_QUEUE", "0", "from 1 to"),
        ("WEIR_CONSOLE", "maybe", "on or off"),
        ("WEIR_CONSOLE_KEY", "fifteen-letters", "16 or more"),
        ("WEIR_CONSOLE_READ_KEY", "sixteen letters and spaces", "without spaces"),
        ("WEIR_SESSIONS_PER_WORKER", "1001", "from 0 to 1000"),
        ("WEIR_REPLAY_CRON", "0 0 30 2 *", "*/15 * * * *"),
        ("WEIR_LLM_URL", "localhost", "https://host/v1"),
        ("WEIR_OTLP_URL", "localhost:4318", "http or https"),
        ("DATABASE_LISTEN_URL", "postgres://a/b", "DATABASE_URL"),
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
fn the_public_url_may_have_a_path() {
    let url = read(&[("WEIR_PUBLIC_URL", " https://weir.example/api/ ")]).unwrap().api.public_url.unwrap();
    assert_eq!(url.as_str(), "https://weir.example/api/");
    assert_eq!(read(&[]).unwrap().api.public_url, None);
}

#[test]
fn what_a_bucket_needs_is_wrong_beside_a_bucket_only() {
    let wrong = ("AWS_ENDPOINT_URL", "localhost:9000");
    assert!(read(&[wrong]).is_ok(), "somebody else's");
    let error = read(&[wrong, ("WEIR_BLOBS", "s3://pages/x")]).unwrap_err().to_string();
    assert!(error.contains("AWS_ENDPOINT_URL=localhost:9000") && error.contains("http or https"), "{error}");
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
    assert_eq!(parse_duration("36500d"), Some(Duration::from_secs(36_500 * 86_400)));
    assert_eq!(parse_duration("3153600000001ms"), None);
    assert_eq!(parse_duration("5"), None);
    assert_eq!(parse_duration(""), None);
}

#[test]
fn every_setting_that_is_read_stands_in_the_table_and_no_other() {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    let asked = RefCell::new(BTreeSet::new());
    // Some are only asked for beside others.
    let beside: [&[(&str, &str)]; 3] =
        [&[], &[("WEIR_LLM_URL", "http://localhost"), ("WEIR_LLM_MODEL", "m")], &[("WEIR_BLOBS", "s3://pages")]];
    for given in beside {
        Settings::from_lookup(&|name| {
            asked.borrow_mut().insert(name.to_owned());
            given.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        })
        .unwrap();
    }
    // The user's, not ours.
    asked.borrow_mut().remove("HOME");
    let table: BTreeSet<String> = table::SETTINGS.iter().map(|setting| setting.name.to_owned()).collect();
    assert_eq!((asked.into_inner(), table.len()), (table, table::SETTINGS.len()));
}

#[test]
fn a_default_is_what_its_value_given_would_be() {
    let none = format!("{:?}", read(&[]).unwrap());
    for setting in table::SETTINGS {
        if let table::Fallback::Value(value) = setting.default {
            let given = read(&[(setting.name, value)]).unwrap_or_else(|error| panic!("{}: {error}", setting.name));
            assert_eq!(format!("{given:?}"), none, "{}", setting.name);
        }
    }
    // A list that names some buckets leaves the others as the table has them.
    let rates = read(&[("WEIR_RATE_LIMITS", "map=7")]).unwrap().limits.rates.unwrap();
    let mut expected = read(&[]).unwrap().limits.rates.unwrap();
    expected.insert("map".to_owned(), 7);
    assert_eq!(rates, expected);
}

/// The project's pages.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.chain([root.join("README.md")]).filter(|path| path.extension().is_some_and(|end| end == "md"));
    pages.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn the_page_of_settings_is_the_table() {
    let pages = pages();
    let (_, page) = pages.iter().find(|(path, _)| path.ends_with("docs/settings.md")).unwrap();
    assert!(page.contains(&shown::markdown()), "its table is what `weir config --markdown` prints");
}

#[test]
fn what_pages_say_of_settings_is_so() {
    let is_setting = |word: &&str| word.starts_with("WEIR_") || word.starts_with("DATABASE_");
    for (path, page) in pages() {
        let Some((_, rows)) = page.split_once("\n| name | default | meaning |\n") else { continue };
        for line in rows.lines().take_while(|line| line.starts_with('|')).filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.split(" | ").collect();
            let names: Vec<&str> = cells[0].split('`').filter(is_setting).collect();
            let words = line.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
            for name in words.filter(is_setting) {
                assert!(table::find(name).is_some(), "{}: there is no {name}", path.display());
            }
            let defaults: Vec<&str> = cells[1].split(" / ").map(|value| value.trim_matches('`')).collect();
            for (name, told) in names.iter().zip(&defaults).filter(|_| names.len() == defaults.len()) {
                let default = table::find(name).map(|setting| setting.default);
                let is_so = match default {
                    Some(table::Fallback::Value(value)) => value == *told,
                    Some(table::Fallback::Words(words)) => words.trim_matches('`') == *told || words == *told,
                    None => false,
                };
                assert!(is_so, "{}: {name} is {default:?}, not {told}", path.display());
            }
        }
    }
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

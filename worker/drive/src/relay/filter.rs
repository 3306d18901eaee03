//! What a client may say to its Chromium.
//!
//! Every message is read far enough to know its method; Chromium's own reader is laxer than ours, so a message that
//! ours does not understand, or could understand in two ways, goes no further. Most methods then pass as they are. The
//! few that name a file, a folder, an address or a proxy are judged with their parameters and sent on as we understood
//! them. Those that would end the browser, open a way around this filter or read the machine are refused by name.
//!
//! A message may have a hundred megabytes, so no tree is built of it: the few parameters that matter are read, the rest
//! stays the text that it is.

use std::borrow::Cow;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

/// Messages inside messages (`Target.sendMessageToTarget`) are followed this deep.
const MAX_DEPTH: usize = 3;
/// Parameters of one command; the protocol knows none with half as many.
const MAX_PARAMS: usize = 64;
/// Longest text that is judged, as JSON, bytes. Chromium takes addresses of two million characters.
const MAX_TEXT: usize = 8 << 20;
/// Longest list of files, as JSON, bytes.
const MAX_FILES: usize = 1 << 20;
/// Longest name of a session, as JSON, bytes; Chromium's have 32 characters.
const MAX_SESSION: usize = 256;
/// JSON-RPC: not JSON.
const PARSE_ERROR: i64 = -32700;
/// What Chromium answers for a command that failed.
const REFUSED: i64 = -32000;

/// What one session's clients may touch. Paths are as its Chromium sees them.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Where downloads go, whatever folder a client asks for.
    pub downloads: PathBuf,
    /// Folders whose files may be given to a page; that of the downloads always may.
    pub uploads: Vec<PathBuf>,
}

/// What becomes of a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send it on as it is.
    Pass,
    /// Send this on instead.
    Replace(String),
    /// Chromium must not see it; this is the answer.
    Answer(String),
    /// The client closes its browser: this is the answer, and the end of its connection.
    Close(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Judges one message of a client.
pub fn judge(text: &str, rules: &Rules) -> Verdict {
    judge_at(text, rules, 0)
}

fn judge_at(text: &str, rules: &Rules, depth: usize) -> Verdict {
    // Two members of one name are an error here, so nobody downstream can pick the other one.
    let call = serde_json::from_str::<Call<'_>>(text).ok().filter(Call::is_plain);
    let Some(call) = call else {
        return Verdict::Answer(
            json!({"error": {"code": PARSE_ERROR, "message": "Message must be a valid JSON"}}).to_string(),
        );
    };
    match rule_for(&call.method) {
        Rule::Pass => Verdict::Pass,
        Rule::Close => Verdict::Close(call.answer("result", &json!({}))),
        Rule::Refuse => call.refuse("is not open to clients of this service"),
        Rule::Judge(check) => {
            let params = call.params.map_or("{}", RawValue::get);
            let mut params: Params<'_> = match serde_json::from_str(params) {
                Ok(params) => params,
                Err(_) => return call.refuse("has parameters that cannot be read"),
            };
            match check(&mut params, rules, depth) {
                Ok(None) => Verdict::Replace(call.with(&params)),
                Ok(Some(verdict)) => call.wrap(verdict, params),
                Err(reason) => call.refuse(&reason),
            }
        }
    }
}

/// Parameters by name, each as the text that the client sent. Of two with one name the last counts.
struct Params<'a>(Vec<(String, Cow<'a, RawValue>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Params<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Params<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("parameters")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Params<'de>, A::Error> {
                let mut params = Params(Vec::new());
                while let Some(name) = map.next_key::<String>()? {
                    params.put(&name, Cow::Borrowed(map.next_value::<&'de RawValue>()?));
                    if params.0.len() > MAX_PARAMS {
                        return Err(A::Error::custom("there are too many"));
                    }
                }
                Ok(params)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, &**value)?;
        }
        map.end()
    }
}

impl<'a> Params<'a> {
    fn put(&mut self, name: &str, value: Cow<'a, RawValue>) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Sets a parameter to what was understood of it.
    fn set(&mut self, name: &str, value: &impl Serialize) -> Result<(), String> {
        let value = to_raw_value(value).map_err(|_| format!("has a {name} that cannot be sent on"))?;
        self.put(name, Cow::Owned(value));
        Ok(())
    }

    fn given(&self, name: &str) -> Option<&RawValue> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value).filter(|value| value.get() != "null")
    }

    fn is_given(&self, name: &str) -> bool {
        self.given(name).is_some()
    }

    /// A parameter, if it is given.
    ///
    /// # Errors
    /// When it is something else, or too long to be judged: Chromium could make of it what nobody has looked at.
    fn read<T: DeserializeOwned>(&self, name: &str, most: usize) -> Result<Option<T>, String> {
        let Some(value) = self.given(name) else { return Ok(None) };
        if value.get().len() > most {
            return Err(format!("has a {name} that is too long"));
        }
        serde_json::from_str(value.get()).map(Some).map_err(|_| format!("has a {name} that cannot be read"))
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        self.read(name, MAX_TEXT)
    }
}

/// Changes the parameters to what may be sent, or says why nothing may. `Some`: the verdict on the message inside.
type Check = fn(&mut Params<'_>, &Rules, usize) -> Result<Option<Verdict>, String>;

enum Rule {
    Pass,
    Close,
    Refuse,
    Judge(Check),
}

fn rule_for(method: &str) -> Rule {
    let Some((domain, command)) = method.split_once('.') else { return Rule::Pass };
    match (domain, command) {
        ("Browser", "close") => Rule::Close,

        // These end or hang the browser.
        ("Browser", "crash" | "crashGpuProcess") | ("Page", "crash") => Rule::Refuse,
        // Ways around this filter: a page that speaks the protocol itself, other debuggers, listening ports.
        ("Target", "exposeDevToolsProtocol" | "setRemoteLocations" | "openDevTools") | ("Tethering", _) => Rule::Refuse,
        // Programs, extensions and settings of the browser as a whole.
        ("Browser", "executeBrowserCommand" | "getBrowserCommandLine") => Rule::Refuse,
        ("Browser", command) if command.starts_with("addPrivacySandbox") => Rule::Refuse,
        ("Extensions" | "PWA" | "Cast", _) => Rule::Refuse,
        // They tell of the machine and its other processes.
        ("SystemInfo", _) => Rule::Refuse,

        ("Browser" | "Page", "setDownloadBehavior") => Rule::Judge(download_folder),
        ("Target", "createBrowserContext") => Rule::Judge(no_proxy),
        ("DOM", "setFileInputFiles") | ("Page", "handleFileChooser") => Rule::Judge(files),
        ("Input", "dispatchDragEvent") => Rule::Judge(dragged_files),
        ("Page", "navigate") | ("Target", "createTarget") | ("Network", "loadNetworkResource") => Rule::Judge(address),
        ("Fetch", "continueRequest") | ("Network", "continueInterceptedRequest") => Rule::Judge(address),
        ("Tracing", "start") => Rule::Judge(trace),
        ("Target", "sendMessageToTarget") => Rule::Judge(inner_message),
        _ => Rule::Pass,
    }
}

fn download_folder(params: &mut Params<'_>, rules: &Rules, _: usize) -> Result<Option<Verdict>, String> {
    let asked = params.text("downloadPath")?;
    let inside = asked.as_ref().is_some_and(|path| is_inside(path, &rules.downloads));
    let saves = params.text("behavior")?.is_some_and(|behavior| behavior.starts_with("allow"));
    if let Some(asked) = asked.filter(|_| inside) {
        params.set("downloadPath", &asked)?;
    } else if saves || params.is_given("downloadPath") {
        params.set("downloadPath", &rules.downloads.to_string_lossy())?;
    }
    Ok(None)
}

fn no_proxy(params: &mut Params<'_>, _: &Rules, _: usize) -> Result<Option<Verdict>, String> {
    match ["proxyServer", "proxyBypassList"].iter().find(|name| params.is_given(name)) {
        Some(name) => Err(format!("must not set {name}: the session's way to the network is fixed")),
        None => Ok(None),
    }
}

fn files(params: &mut Params<'_>, rules: &Rules, _: usize) -> Result<Option<Verdict>, String> {
    let Some(files) = params.read::<Vec<String>>("files", MAX_FILES)? else { return Ok(None) };
    for path in &files {
        let readable = std::iter::once(&rules.downloads).chain(&rules.uploads).any(|folder| is_inside(path, folder));
        if !readable {
            let readable: Vec<_> = rules.uploads.iter().map(|folder| folder.to_string_lossy()).collect();
            return Err(format!(
                "names a file that the browser cannot read: it runs on another machine. Send the content instead \
                 (Playwright's setInputFiles does; in Puppeteer set the input's files in the page), or name a file that \
                 this session has downloaded, or that its code has put into {}",
                readable.join(" or ")
            ));
        }
    }
    params.set("files", &files)?;
    Ok(None)
}

fn dragged_files(params: &mut Params<'_>, rules: &Rules, depth: usize) -> Result<Option<Verdict>, String> {
    let Some(data) = params.given("data") else { return Ok(None) };
    let data = {
        let mut data: Params<'_> = serde_json::from_str(data.get()).map_err(|_| "has data that cannot be read")?;
        files(&mut data, rules, depth)?;
        to_raw_value(&data).map_err(|_| "has data that cannot be sent on")?
    };
    params.put("data", Cow::Owned(data));
    Ok(None)
}

/// Whether `path` is a plain absolute path of something below `folder`.
fn is_inside(path: &str, folder: &Path) -> bool {
    let path = Path::new(path);
    path.is_absolute()
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && path.starts_with(folder)
}

fn address(params: &mut Params<'_>, _: &Rules, _: usize) -> Result<Option<Verdict>, String> {
    let Some(url) = params.text("url")? else { return Ok(None) };
    match forbidden_scheme(&url) {
        Some(scheme) => Err(format!("cannot open {scheme}: addresses in a session")),
        None => params.set("url", &url).map(|()| None),
    }
}

/// The scheme of an address that is about the browser or its machine and not the web. Reads as Chromium does: spaces
/// around and line breaks inside do not count, `view-source:` stands before another address.
fn forbidden_scheme(url: &str) -> Option<&'static str> {
    let clean: String = url.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let mut rest = clean.trim_matches(|c: char| c <= ' ');
    loop {
        let (scheme, after) = rest.split_once(':')?;
        match scheme.to_ascii_lowercase().as_str() {
            "view-source" => rest = after.trim_start_matches(|c: char| c <= ' '),
            "file" => return Some("file"),
            "filesystem" => return Some("filesystem"),
            "chrome" => return Some("chrome"),
            "chrome-untrusted" => return Some("chrome-untrusted"),
            "chrome-extension" => return Some("chrome-extension"),
            "devtools" => return Some("devtools"),
            // about:crash and its like are commands.
            "about" => {
                let page = after.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
                return (!matches!(page.as_str(), "blank" | "srcdoc")).then_some("about");
            }
            _ => return None,
        }
    }
}

/// Traces go back through the protocol; a configuration of their own could name a file.
fn trace(params: &mut Params<'_>, _: &Rules, _: usize) -> Result<Option<Verdict>, String> {
    let system = params.text("tracingBackend")?.is_some_and(|backend| backend != "chrome" && backend != "auto");
    if params.is_given("perfettoConfig") || system {
        return Err("takes categories here, no perfettoConfig and no tracingBackend of the system".to_owned());
    }
    params.set("tracingBackend", &"chrome")?;
    Ok(None)
}

fn inner_message(params: &mut Params<'_>, rules: &Rules, depth: usize) -> Result<Option<Verdict>, String> {
    if depth >= MAX_DEPTH {
        return Err("carries messages inside messages too deep".to_owned());
    }
    let message = params.given("message").ok_or("carries no message")?;
    // As long as the message around it: what is judged of it is bounded again.
    let message: String = serde_json::from_str(message.get()).map_err(|_| "carries no message")?;
    Ok(Some(judge_at(&message, rules, depth + 1)))
}

impl Call<'_> {
    /// Whether its session, if any, is a string: what is sent on must go where the client meant it to go.
    fn is_plain(&self) -> bool {
        self.session_id.is_none_or(|session| {
            session.get().len() <= MAX_SESSION && serde_json::from_str::<String>(session.get()).is_ok()
        })
    }

    /// The call with other parameters.
    fn with(&self, params: &Params<'_>) -> String {
        let sent = Sent { head: self.head(), method: &self.method, params };
        serde_json::to_string(&sent).expect("names are strings")
    }

    /// The call around an inner message with this verdict.
    fn wrap(&self, verdict: Verdict, mut params: Params<'_>) -> Verdict {
        match verdict {
            Verdict::Pass => Verdict::Replace(self.with(&params)),
            Verdict::Replace(message) => match params.set("message", &message) {
                Ok(()) => Verdict::Replace(self.with(&params)),
                Err(reason) => self.refuse(&reason),
            },
            // The inner answer cannot be sent as an event that Chromium never had, so the outer call fails.
            Verdict::Answer(_) => self.refuse("carries a command that is not open to clients of this service"),
            Verdict::Close(_) => Verdict::Close(self.answer("result", &json!({}))),
        }
    }

    fn refuse(&self, reason: &str) -> Verdict {
        let method: String = self.method.chars().take(100).collect();
        Verdict::Answer(self.answer("error", &json!({"code": REFUSED, "message": format!("{method} {reason}")})))
    }

    fn answer(&self, name: &str, value: &Value) -> String {
        let Head { id, session_id } = self.head();
        let mut out = Map::new();
        out.extend(id.map(|id| ("id".to_owned(), id.into())));
        out.extend(session_id.map(|session| ("sessionId".to_owned(), session.into())));
        out.insert(name.to_owned(), value.clone());
        Value::Object(out).to_string()
    }

    fn head(&self) -> Head {
        Head {
            id: self.id.and_then(|id| id.get().parse::<i64>().ok()),
            session_id: self.session_id.and_then(|s| serde_json::from_str::<String>(s.get()).ok()),
        }
    }
}

/// Number and session of a call, when they are what the protocol says they are.
struct Head {
    id: Option<i64>,
    session_id: Option<String>,
}

/// A call as it goes on.
struct Sent<'a> {
    head: Head,
    method: &'a str,
    params: &'a Params<'a>,
}

impl Serialize for Sent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(id) = self.head.id {
            map.serialize_entry("id", &id)?;
        }
        if let Some(session) = &self.head.session_id {
            map.serialize_entry("sessionId", session)?;
        }
        map.serialize_entry("method", self.method)?;
        map.serialize_entry("params", self.params)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules { downloads: "/home/s/downloads".into(), uploads: vec!["/home/s/uploads".into()] }
    }

    fn verdict(message: &Value) -> Verdict {
        judge(&message.to_string(), &rules())
    }

    fn call(method: &str, params: Value) -> Verdict {
        verdict(&json!({"id": 7, "method": method, "params": params}))
    }

    fn is_refused(verdict: &Verdict) -> bool {
        let Verdict::Answer(text) = verdict else { return false };
        let answer: Value = serde_json::from_str(text).expect("an answer is JSON");
        answer["error"]["code"] == REFUSED && answer["error"]["message"].is_string()
    }

    fn replaced(verdict: &Verdict) -> Value {
        let Verdict::Replace(text) = verdict else { panic!("not replaced: {verdict:?}") };
        serde_json::from_str(text).expect("a replacement is JSON")
    }

    #[test]
    fn ordinary_commands_pass_untouched() {
        for method in ["Runtime.evaluate", "Page.captureScreenshot", "Target.setAutoAttach", "Browser.getVersion"] {
            assert_eq!(call(method, json!({"expression": "Browser.close"})), Verdict::Pass, "{method}");
        }
    }

    #[test]
    fn what_breaks_out_or_breaks_the_browser_is_refused_by_name() {
        for method in [
            "Browser.crash",
            "Browser.crashGpuProcess",
            "Page.crash",
            "Browser.executeBrowserCommand",
            "Browser.getBrowserCommandLine",
            "Browser.addPrivacySandboxEnrollmentOverride",
            "Browser.addPrivacySandboxCoordinatorKeyConfig",
            "Target.exposeDevToolsProtocol",
            "Target.setRemoteLocations",
            "Target.openDevTools",
            "Tethering.bind",
            "SystemInfo.getInfo",
            "SystemInfo.getProcessInfo",
            "Extensions.loadUnpacked",
            "PWA.launchFilesInApp",
            "Cast.enable",
        ] {
            let verdict = call(method, json!({}));
            assert!(is_refused(&verdict), "{method}: {verdict:?}");
            let Verdict::Answer(text) = verdict else { unreachable!() };
            assert!(text.contains(method) && text.contains("\"id\":7"), "{text}");
        }
    }

    #[test]
    fn closing_the_browser_ends_the_clients_connection_only() {
        let answer = r#"{"id":7,"sessionId":"S","result":{}}"#.to_owned();
        let text = r#"{"id":7,"method":"\u0042rowser.close","sessionId":"S"}"#;
        assert_eq!(judge(text, &rules()), Verdict::Close(answer));
    }

    #[test]
    fn a_message_that_can_be_read_in_two_ways_goes_nowhere() {
        for text in [
            r#"{"id":1,"method":"Page.enable","method":"Page.crash"}"#,
            r#"{"id":1,"method":"Page.enable","\u006dethod":"Page.crash"}"#,
            r#"{"id":1,/* */"method":"Page.crash"}"#,
            r#"{"id":1,"method":"Page.crash"} {}"#,
            r#"{"id":1,"method":"Page.crash""#,
            r#"{"id":1,"method":"Page.\ud800crash"}"#,
            "",
            "x",
        ] {
            let verdict = judge(text, &rules());
            assert!(matches!(&verdict, Verdict::Answer(a) if a.contains("-32700")), "{text}: {verdict:?}");
        }
        // The last of two equal parameters is the only one that is sent on.
        let text = r#"{"id":1,"method":"DOM.setFileInputFiles","params":{"files":["/home/s/uploads/a"],"files":["/etc/shadow"]}}"#;
        assert!(is_refused(&judge(text, &rules())));
        let text = r#"{"id":1,"method":"DOM.setFileInputFiles","params":{"files":["/etc/shadow"],"files":["/home/s/uploads/a"]}}"#;
        assert_eq!(replaced(&judge(text, &rules()))["params"]["files"], json!(["/home/s/uploads/a"]));
    }

    #[test]
    fn endless_nesting_does_no_harm() {
        let deep = "[".repeat(1_000_000);
        assert!(matches!(judge(&deep, &rules()), Verdict::Answer(_)));
        let deep =
            format!("{{\"id\":1,\"method\":\"Page.navigate\",\"params\":{}1{}}}", "[".repeat(9_999), "]".repeat(9_999));
        assert!(is_refused(&judge(&deep, &rules())));
        let deep = format!("{{\"id\":1,\"method\":\"X.y\",\"params\":{}1{}}}", "[".repeat(99_999), "]".repeat(99_999));
        assert_eq!(judge(&deep, &rules()), Verdict::Pass);
    }

    #[test]
    fn files_come_from_the_sessions_folders_only() {
        for (path, allowed) in [
            ("/home/s/uploads/a.txt", true),
            ("/home/s/downloads/x/y", true),
            ("/home/s/uploads/../.ssh/id", false),
            ("/home/s/uploadsx/a", false),
            ("/etc/passwd", false),
            ("uploads/a", false),
            ("", false),
        ] {
            for (method, params) in [
                ("DOM.setFileInputFiles", json!({"files": [path], "nodeId": 1})),
                ("Page.handleFileChooser", json!({"action": "accept", "files": ["/home/s/uploads/ok", path]})),
                ("Input.dispatchDragEvent", json!({"type": "drop", "x": 1, "y": 1, "data": {"files": [path]}})),
            ] {
                assert_eq!(!is_refused(&call(method, params)), allowed, "{method} {path}");
            }
        }
        let told = format!("{:?}", call("DOM.setFileInputFiles", json!({"files": ["/tmp/a"], "nodeId": 1})));
        assert!(told.contains("/home/s/uploads"), "{told}");
    }

    #[test]
    fn downloads_go_to_the_sessions_folder_whatever_is_asked() {
        for (params, path) in [
            (json!({"behavior": "allow", "downloadPath": "/etc"}), json!("/home/s/downloads")),
            (json!({"behavior": "allowAndName"}), json!("/home/s/downloads")),
            (json!({"behavior": "allow", "downloadPath": "/home/s/downloads/a"}), json!("/home/s/downloads/a")),
            (json!({"behavior": "allow", "downloadPath": "/home/s/downloads/../x"}), json!("/home/s/downloads")),
            (json!({"behavior": "deny"}), Value::Null),
        ] {
            for method in ["Browser.setDownloadBehavior", "Page.setDownloadBehavior"] {
                let message = replaced(&call(method, params.clone()));
                assert_eq!(message["params"]["downloadPath"], path, "{params}");
                assert_eq!((&message["id"], &message["method"]), (&json!(7), &json!(method)));
            }
        }
    }

    #[test]
    fn a_context_keeps_the_sessions_way_to_the_network() {
        assert!(is_refused(&call("Target.createBrowserContext", json!({"proxyServer": "http://10.0.0.1:3128"}))));
        assert!(is_refused(&call("Target.createBrowserContext", json!({"proxyBypassList": "*"}))));
        let plain = call("Target.createBrowserContext", json!({"disposeOnDetach": true, "proxyServer": null}));
        assert!(matches!(plain, Verdict::Replace(_)));
    }

    #[test]
    fn addresses_of_the_browser_and_its_machine_stay_closed() {
        for (url, allowed) in [
            ("https://example.com/file:///etc", true),
            ("data:text/html,file:", true),
            ("about:blank", true),
            ("about:blank#x", true),
            ("", true),
            ("file:///etc/passwd", false),
            (" \u{1}FiLe:///etc/passwd", false),
            ("fi\nle:///etc/passwd", false),
            ("view-source:view-source:file:///etc/passwd", false),
            ("view-source: file:///etc/passwd", false),
            ("chrome://inducebrowsercrashforrealz", false),
            ("about:crash", false),
            ("devtools://devtools/bundled/inspector.html", false),
        ] {
            for method in
                ["Page.navigate", "Target.createTarget", "Network.loadNetworkResource", "Fetch.continueRequest"]
            {
                assert_eq!(!is_refused(&call(method, json!({"url": url}))), allowed, "{method} {url:?}");
            }
        }
    }

    #[test]
    fn traces_name_no_files() {
        assert!(is_refused(&call("Tracing.start", json!({"perfettoConfig": "CgQI"}))));
        assert!(is_refused(&call("Tracing.start", json!({"tracingBackend": "system"}))));
        let plain = replaced(&call("Tracing.start", json!({"transferMode": "ReturnAsStream"})));
        assert_eq!(plain["params"]["transferMode"], "ReturnAsStream");
    }

    #[test]
    fn a_message_inside_a_message_is_judged_too() {
        let wrap = |inner: Value| json!({"sessionId": "T", "message": inner.to_string()});
        let inner = json!({"id": 1, "method": "Page.crash"});
        assert!(is_refused(&call("Target.sendMessageToTarget", wrap(inner.clone()))));
        let twice = json!({"id": 2, "method": "Target.sendMessageToTarget", "params": wrap(inner)});
        assert!(is_refused(&call("Target.sendMessageToTarget", wrap(twice))));
        let close = call("Target.sendMessageToTarget", wrap(json!({"id": 1, "method": "Browser.close"})));
        assert!(matches!(close, Verdict::Close(_)));

        let inner = json!({"id": 3, "method": "Page.setDownloadBehavior", "params": {"behavior": "allow", "downloadPath": "/"}});
        let sent = replaced(&call("Target.sendMessageToTarget", wrap(inner)));
        let sent: Value = serde_json::from_str(sent["params"]["message"].as_str().expect("text")).expect("JSON");
        assert_eq!(sent["params"]["downloadPath"], "/home/s/downloads");

        let mut deep = json!({"id": 1, "method": "Page.enable"});
        for _ in 0..6 {
            deep = json!({"id": 1, "method": "Target.sendMessageToTarget", "params": wrap(deep)});
        }
        assert!(is_refused(&verdict(&deep)));
    }

    /// The most memory that this process had since the last call, bytes.
    fn peak() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("proc");
        std::fs::write("/proc/self/clear_refs", "5").expect("the peak is told from now on");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak");
        peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }

    /// What a client sends that knows how little text makes how large a tree.
    fn crowded(inside: &str) -> [String; 4] {
        let crowd = "[0],".repeat((16 << 20) / 4);
        let names: String = (0..2_000_000).map(|n| format!("\"{n}\":0,")).collect();
        [
            format!(r#"{{"id":7,"method":"{inside}","params":{{"x":[{crowd}0]}}}}"#),
            format!(r#"{{"id":7,"method":"{inside}","params":{{"data":{{"files":[{crowd}0]}},"files":[{crowd}0]}}}}"#),
            format!(r#"{{"id":7,"method":"{inside}","params":{{{names}"url":"x"}}}}"#),
            format!(r#"{{"id":7,"method":"{inside}","params":[{crowd}0],"sessionId":"{}"}}"#, "s".repeat(16 << 20)),
        ]
    }

    #[test]
    fn no_message_costs_many_times_its_size() {
        for method in ["Page.navigate", "DOM.setFileInputFiles", "Input.dispatchDragEvent", "Tracing.start"] {
            for text in crowded(method) {
                let before = {
                    peak();
                    peak()
                };
                let verdict = judge(&text, &rules());
                let cost = peak().saturating_sub(before) / text.len() as u64;
                // A tree takes 130 times; other tests of this process take some, too.
                assert!(cost <= 30, "{method}: {cost} times its size");
                drop(verdict);
            }
        }
    }

    #[test]
    fn what_is_not_judged_stays_the_text_that_it_was() {
        let big = "x".repeat(20 << 20);
        let text = format!(
            r#"{{"id":1,"method":"Fetch.continueRequest","params":{{"requestId":"r","postData":"{big}","n":1.50}}}}"#
        );
        let Verdict::Replace(sent) = judge(&text, &rules()) else { panic!("it goes on") };
        assert!(sent.contains(&big) && sent.contains("\"n\":1.50"));
        // What is judged and too long goes nowhere, and neither does what could be read in two ways.
        for params in [
            format!(r#"{{"url":"http://a/{big}"}}"#),
            r#"{"url":["file:///etc/passwd"]}"#.to_owned(),
            r#"{"url":"file\ud800:///etc/passwd"}"#.to_owned(),
        ] {
            let text = format!(r#"{{"id":1,"method":"Page.navigate","params":{params}}}"#);
            assert!(is_refused(&judge(&text, &rules())));
        }
        let twice = r#"{"files":["/home/s/uploads/a"],"files":["/etc/shadow"],"x":1}"#;
        let text = format!(r#"{{"id":1,"method":"Input.dispatchDragEvent","params":{{"data":{twice}}}}}"#);
        assert!(is_refused(&judge(&text, &rules())));
        let twice = r#"{"files":["/etc/shadow"],"files":["/home/s/uploads/a"],"x":1}"#;
        let text = format!(r#"{{"id":1,"method":"Input.dispatchDragEvent","params":{{"data":{twice}}}}}"#);
        assert_eq!(
            replaced(&judge(&text, &rules()))["params"]["data"],
            json!({"files": ["/home/s/uploads/a"], "x": 1})
        );
    }
}

//! The types by which the browser is driven (`worker/protocol/`): that it knows each by that name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;

use reqwest::Method;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use weir_tests::{Caller, temporary};
use weir_worker::sandbox::find_chromium;

/// A struct of the source: its fields by their names on the wire, and whether they may be missing.
#[derive(Default)]
struct Record {
    fields: BTreeMap<String, bool>,
}

/// The source: its structs by domain and name (those of events as `events::Name`), and of each domain what its commands are
/// called on the wire, by struct.
#[derive(Default)]
struct Types {
    records: BTreeMap<(String, String), Record>,
    commands: BTreeMap<(String, String), String>,
    events: Vec<(String, String)>,
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end)?.0)
}

/// As serde's `camelCase` makes it.
fn camel(name: &str) -> String {
    let mut camel = String::new();
    let mut is_next_large = false;
    for letter in name.chars() {
        match letter {
            '_' => is_next_large = true,
            letter if is_next_large => {
                camel.extend(letter.to_uppercase());
                is_next_large = false;
            }
            letter => camel.push(letter),
        }
    }
    camel
}

fn read(source: &str) -> Types {
    let mut types = Types::default();
    let (mut domain, mut is_in_events, mut attributes) = (String::new(), false, String::new());
    let (mut record, mut command, mut event) = (None, None, None);
    for line in source.lines() {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if let Some(module) = between(line, "pub mod ", " {") {
            is_in_events = module == "events";
            if !is_in_events && indent == 4 {
                domain = module.to_owned();
            }
        } else if let Some(name) = line.strip_prefix("pub struct ").and_then(|rest| rest.split([' ', '(', '<']).next())
        {
            let name = if is_in_events { format!("events::{name}") } else { name.to_owned() };
            let key = (domain.clone(), name);
            types.records.entry(key.clone()).or_default();
            record = line.ends_with('{').then_some(key);
        } else if let Some(name) = between(line, "impl Method for ", " {") {
            command = Some((domain.clone(), name.to_owned()));
        } else if let (Some(name), Some(key)) = (between(line, "const NAME: &'static str = \"", "\""), &command) {
            types.commands.insert(key.clone(), name.to_owned());
        } else if let (true, Some(name)) = (domain == "types", between(line, "rename = \"", "\"")) {
            event = Some(name.to_owned());
        } else if let (Some(name), Some(kind)) = (&event, between(line, "::events::", ")")) {
            types.events.push((name.clone(), kind.to_owned()));
        } else if let (Some(key), Some((name, kind))) =
            (&record, line.strip_prefix("pub ").and_then(|rest| rest.split_once(": ")))
        {
            let on_the_wire = between(&attributes, "rename = \"", "\"").map_or_else(|| camel(name), str::to_owned);
            let may_lack = kind.starts_with("Option<") || attributes.contains("default");
            types.records.get_mut(key).unwrap().fields.insert(on_the_wire, may_lack);
        }
        if line.starts_with("#[") || !attributes.is_empty() && line != "}" && !line.starts_with("pub ") {
            attributes += line;
        } else {
            attributes.clear();
        }
        if line == "}" {
            record = None;
        }
    }
    types
}

/// What the browser says of itself.
async fn protocol() -> Value {
    let caller = Caller::new("nobody", None);
    let configured = std::env::var_os("WEIR_CHROMIUM").map(PathBuf::from);
    let chromium = find_chromium(configured.as_deref()).expect("a Chromium, which scripts/setup installs");
    let folder = temporary("protocol");
    let mut browser = tokio::process::Command::new(chromium.path)
        .args(["--headless", "--no-sandbox", "--remote-debugging-port=0"])
        .arg(format!("--user-data-dir={}", folder.display()))
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(browser.stderr.take().unwrap()).lines();
    let address = loop {
        let line = lines.next_line().await.unwrap().expect("the browser says where it listens");
        if let Some(address) = between(&line, "DevTools listening on ws://", "/") {
            break address.to_owned();
        }
    };
    let answer = caller.send(caller.request(Method::GET, &format!("http://{address}/json/protocol"))).await;
    let protocol = answer.ok();
    browser.kill().await.unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    protocol
}

/// What is wrong with a record, held to what the browser says of its fields.
fn faults(what: &str, record: &Record, told: &Value, is_sent: bool) -> Vec<String> {
    let told: BTreeMap<&str, bool> = told
        .as_array()
        .into_iter()
        .flatten()
        .map(|field| (field["name"].as_str().unwrap(), field["optional"] == true))
        .collect();
    let unknown = record.fields.keys().filter(|name| !told.contains_key(name.as_str()));
    let mut faults: Vec<String> = unknown.map(|name| format!("{what} has no {name}")).collect();
    // What has to be sent is in the struct, and not as an option; what may be missing in an answer is one.
    faults.extend(told.iter().filter_map(|(name, may_lack)| {
        let own = record.fields.get(*name);
        let is_wrong = match is_sent {
            true => !may_lack && own != Some(&false),
            false => *may_lack && own == Some(&false),
        };
        is_wrong.then(|| format!("{what}: {name} is {}", if *may_lack { "optional" } else { "required" }))
    }));
    faults
}

#[tokio::test]
async fn the_browser_knows_every_command_event_and_field_that_is_named_of_its_protocol() {
    let types = read(&auto_generate_cdp::source());
    let protocol = protocol().await;
    let mut entries = BTreeMap::new();
    for domain in protocol["domains"].as_array().unwrap() {
        let name = domain["domain"].as_str().unwrap();
        for (kind, key) in [("commands", "name"), ("events", "name"), ("types", "id")] {
            for entry in domain[kind].as_array().into_iter().flatten() {
                entries.insert((kind, format!("{name}.{}", entry[key].as_str().unwrap())), entry);
            }
        }
    }
    assert!(types.commands.len() > 80 && types.events.len() > 8, "the file is read");

    let mut faults_found = Vec::new();
    let mut held = 0;
    let mut hold = |what: &str, key: &(String, String), told: &Value, is_sent: bool| {
        let Some(record) = types.records.get(key) else { return vec![format!("{what} has no struct")] };
        held += record.fields.len();
        faults(what, record, told, is_sent)
    };
    for ((domain, name), on_the_wire) in &types.commands {
        let Some(told) = entries.get(&("commands", on_the_wire.clone())) else {
            faults_found.push(format!("there is no {on_the_wire}"));
            continue;
        };
        let key = (domain.clone(), name.clone());
        faults_found.extend(hold(on_the_wire, &key, &told["parameters"], true));
        let key = (domain.clone(), format!("{name}ReturnObject"));
        faults_found.extend(hold(&format!("{on_the_wire}'s answer"), &key, &told["returns"], false));
    }
    for (on_the_wire, name) in &types.events {
        let Some(told) = entries.get(&("events", on_the_wire.clone())) else {
            faults_found.push(format!("there is no {on_the_wire}"));
            continue;
        };
        let domain = on_the_wire.split_once('.').unwrap().0.to_owned();
        faults_found.extend(hold(on_the_wire, &(domain, format!("events::{name}Params")), &told["parameters"], false));
    }
    for (domain, name) in types.records.keys() {
        if let Some(told) = entries.get(&("types", format!("{domain}.{name}"))) {
            let key = (domain.clone(), name.clone());
            faults_found.extend(hold(&format!("{domain}.{name}"), &key, &told["properties"], false));
        }
    }
    assert_eq!(faults_found, Vec::<String>::new());
    assert!(held > 300, "{held} fields were held to the browser's");
}

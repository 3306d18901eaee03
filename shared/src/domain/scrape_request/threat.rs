//! `threatProtection` of every body that leads to pages (wire 25): lists of sites, which are honoured, and modes that have
//! a service classify sites, which are refused.

use super::unavailable::Unavailable;
use crate::domain::site_rules::{SiteRules, pattern};
use crate::domain::validation::Fields;
use crate::error_code::ErrorCode;

/// Most entries of a list.
const MAX_ENTRIES: i64 = 1_000;
/// Longest entry, bytes: the longest name of a host.
const MAX_ENTRY: usize = 253;
const MODES: &[&str] = &["off", "manual-only", "normal", "zscaler"];

/// Reads the lists; without them nothing is blocked.
pub(super) fn read(fields: &mut Fields<'_, '_>, unavailable: &mut Vec<Unavailable>) -> SiteRules {
    let mode_path = [fields.path_of("threatProtection"), vec!["mode".into()]].concat();
    let Some(nested) = fields.object("threatProtection") else { return SiteRules::default() };
    let mut nested = nested.nulls_are_absent();
    let mode = nested.choice("mode", MODES);
    // Both say what a classification is taken for, and have no meaning without one.
    let threshold = nested.integer("riskScoreThreshold", 0..=100).is_some();
    let policy = nested.choice("failurePolicy", &["open", "closed"]).is_some();
    let rules = SiteRules {
        allowed: read_list(&mut nested, "whitelist", pattern),
        blocked: read_list(&mut nested, "blacklist", pattern),
        blocked_tlds: read_list(&mut nested, "blockedTlds", |text| {
            let text = text.trim().trim_start_matches('.');
            pattern(text).filter(|tld| !tld.contains(['.', '*']))
        }),
        documents: Vec::new(),
    };
    nested.finish();
    let refused = match mode {
        Some("normal") => Some("mode normal"),
        Some("zscaler") => Some("mode zscaler"),
        None if threshold => Some("riskScoreThreshold"),
        None if policy => Some("failurePolicy"),
        _ => None,
    };
    if let Some(what) = refused {
        let name = format!("threatProtection that classifies sites ({what})");
        unavailable.push(Unavailable { code: ErrorCode::Forbidden, path: mode_path, name });
    }
    rules
}

fn read_list(fields: &mut Fields<'_, '_>, name: &'static str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (i, text) in fields.strings(name, MAX_ENTRIES).unwrap_or_default().iter().enumerate() {
        match Some(text).filter(|text| text.len() <= MAX_ENTRY).and_then(|text| read(text)) {
            Some(entry) => found.push(entry),
            None => {
                let path = [fields.path_of(name), vec![i.into()]].concat();
                fields.issues.rule(
                    path,
                    format!(
                        "{name}: an entry must be a name such as example.com, *.example.com or, of blockedTlds, zip"
                    ),
                );
            }
        }
    }
    found
}

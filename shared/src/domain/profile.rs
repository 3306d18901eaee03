//! Browser profiles as requests name them (spec 2.1): what a browser knows from before, and whether it keeps what is new.

use serde::{Deserialize, Serialize};

use super::validation::{Fields, Issues, Path, ValidationError};

/// Characters of a profile's name (spec 2.1).
const NAME: std::ops::RangeInclusive<i64> = 1..=128;

/// The profile a session or a page loads (spec 2.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileUse {
    /// 1 to 128 characters.
    pub name: String,
    /// Saved back when the session closes; one session at a time may. Default true.
    pub save_changes: bool,
}

/// Checks a profile's name from a path.
///
/// # Errors
/// When it is empty, too long or holds control characters.
pub fn check_name(name: &str) -> Result<(), ValidationError> {
    let mut issues = Issues::default();
    judge_name(name, vec!["name".into()], &mut issues);
    issues.into_result()
}

/// The profile object of a session or a scrape (spec 2.1); strict.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<ProfileUse> {
    let mut profile = fields.object("profile")?.nulls_are_absent();
    let mut name = None;
    if profile.required("name").is_some() {
        name = profile.string("name");
    }
    if let Some(name) = name {
        judge_name(name, profile.path_of("name"), profile.issues);
    }
    let save_changes = profile.bool("saveChanges").unwrap_or(true);
    profile.finish();
    Some(ProfileUse { name: name.unwrap_or_default().to_owned(), save_changes })
}

fn judge_name(name: &str, path: Path, issues: &mut Issues) {
    let length = name.chars().count() as i64;
    if !NAME.contains(&length) {
        issues.out_of_range(path, "string", length, &NAME);
    } else if name.chars().any(char::is_control) {
        issues.rule(path, "A profile's name must not contain control characters");
    }
}

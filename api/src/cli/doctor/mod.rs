//! `weir doctor`: whether this machine has what the service promises; one line a check, with the mend where something is
//! missing. What makes a worker weaker without stopping it is told as `weak`, and is no failure.

mod asked;
mod finding;
mod machine;
mod shared_things;

use std::process::ExitCode;

use serde_json::json;
use weir_shared::config::Settings;

use self::finding::Finding;
use super::output::{Output, say};

/// Runs every check, whatever the others said. Exit code 1 when one failed.
///
/// # Errors
/// Never: what fails is a finding.
pub async fn run(settings: &Settings, output: Output) -> anyhow::Result<ExitCode> {
    let mut checks = shared_things::checks(settings).await;
    checks.extend(asked::checks(settings).await);
    checks.extend(machine::checks(settings).await);
    let has_failed = checks.iter().any(|(_, finding)| matches!(finding, Finding::Bad { .. }));
    if output.json {
        let values = checks.iter().map(|(name, finding)| {
            let (state, what, mend) = finding.parts();
            json!({"check": name, "ok": state != "FAIL", "state": state.to_lowercase(), "detail": what, "mend": mend})
        });
        say(format_args!("{}", serde_json::Value::Array(values.collect())));
    } else {
        for (name, finding) in &checks {
            let (state, what, mend) = finding.parts();
            let mend = mend.map(|mend| format!(" → {mend}")).unwrap_or_default();
            say(format_args!("{state:4}  {name:11} {}{mend}", what.replace('\n', " ")));
        }
    }
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

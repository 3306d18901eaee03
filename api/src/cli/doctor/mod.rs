//! `weir doctor`: whether this machine has what the service promises; one line a check, with the mend where something is
//! missing. What makes a worker weaker without stopping it is told as `weak`, and is no failure.

mod machine;
mod shared_things;

use std::process::ExitCode;

use serde_json::json;
use weir_shared::config::Settings;

use super::output::Output;

/// What a check found.
enum Finding {
    /// As it should be.
    Good(String),
    /// It works, and something that is promised does not.
    Weak { what: String, mend: String },
    /// It does not work.
    Bad { what: String, mend: String },
}

impl Finding {
    fn good(what: impl Into<String>) -> Self {
        Self::Good(what.into())
    }

    fn weak(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::Weak { what: what.into(), mend: mend.into() }
    }

    fn bad(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::Bad { what: what.into(), mend: mend.into() }
    }

    fn parts(&self) -> (&'static str, &str, Option<&str>) {
        match self {
            Self::Good(what) => ("ok", what, None),
            Self::Weak { what, mend } => ("weak", what, Some(mend)),
            Self::Bad { what, mend } => ("FAIL", what, Some(mend)),
        }
    }
}

/// A check's name and what it found.
type Check = (&'static str, Finding);

/// Runs every check, whatever the others said. Exit code 1 when one failed.
///
/// # Errors
/// Never: what fails is a finding.
pub async fn run(settings: &Settings, output: Output) -> anyhow::Result<ExitCode> {
    let mut checks = shared_things::checks(settings).await;
    checks.extend(machine::checks(settings).await);
    let has_failed = checks.iter().any(|(_, finding)| matches!(finding, Finding::Bad { .. }));
    if output.json {
        let values = checks.iter().map(|(name, finding)| {
            let (state, what, mend) = finding.parts();
            json!({"check": name, "ok": state != "FAIL", "state": state.to_lowercase(), "detail": what, "mend": mend})
        });
        println!("{}", serde_json::Value::Array(values.collect()));
    } else {
        for (name, finding) in &checks {
            let (state, what, mend) = finding.parts();
            let mend = mend.map(|mend| format!(" → {mend}")).unwrap_or_default();
            println!("{state:4}  {name:11} {}{mend}", what.replace('\n', " "));
        }
    }
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

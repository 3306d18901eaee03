//! `weir config`: what this process was told, by whom, and what it means.

use std::process::ExitCode;

use serde_json::json;
use weir_shared::config::Settings;
use weir_shared::config::shown::{self, Given};

use super::output::{Output, complain, or_dash, say};

/// Prints every setting; exit code 1 when one of them cannot be used, which is told at the end.
///
/// # Errors
/// When `.env` cannot be read, or a setting is wrong.
pub fn run(markdown: bool, output: Output) -> anyhow::Result<ExitCode> {
    if markdown {
        say(format_args!("{}", shown::markdown().trim_end()));
        return Ok(ExitCode::SUCCESS);
    }
    let settings = Given::read()?.shown();
    let rows = settings.iter().map(|setting| {
        let cells = [
            setting.name.to_owned(),
            or_dash(setting.value.as_ref().or(Some(&format!("({})", setting.default)))),
            setting.source.name().to_owned(),
            setting.meaning.replace('`', ""),
        ];
        (json!(setting), cells.to_vec())
    });
    output.list(&["SETTING", "VALUE", "FROM", "MEANING"], rows.collect());
    for unknown in Given::unknown() {
        complain(format_args!("{unknown} is no setting; it is not read"));
    }
    Settings::from_read_env()?;
    Ok(ExitCode::SUCCESS)
}

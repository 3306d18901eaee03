//! Log output: `WEIR_LOG` filters, `WEIR_LOG_FORMAT=json` is for machines.

mod lines;

use std::io::IsTerminal as _;

use anyhow::Context as _;
use lines::Lines;
use tracing_subscriber::EnvFilter;

use crate::config::LogSettings;

/// The log of a process, whose last lines are written when it is dropped.
#[must_use]
pub struct Log(Lines);

impl Drop for Log {
    fn drop(&mut self) {
        self.0.flush();
    }
}

/// Starts logging to standard error, in colours on a terminal and nowhere else. A wrong filter is an error that names the
/// setting.
pub fn init(settings: &LogSettings) -> anyhow::Result<Log> {
    let filter = &settings.filter;
    // A site's bad certificate is told to the caller who asked for the page; the log has no use for it. What callers of the API
    // do wrong is told to them, too: the libraries of HTTP and of the Model Context Protocol would write a line for each such
    // request, the latter with whole words of theirs.
    // The queue library tells of each error of the database twice, with all that the driver knows; its worker ends with the same
    // error, which is told there.
    let quiet = "apalis=warn,apalis_core=off,sqlx=warn,headless_chrome=off,actix_server=warn,tungstenite=warn,html5ever=error,\
                 selectors=error,rustls_platform_verifier=off,rmcp=error,actix_http=off";
    let filter = EnvFilter::try_new(format!("{quiet},{filter}")).map_err(|e| {
        anyhow::anyhow!("WEIR_LOG={filter}: allowed is a tracing filter such as info or weir=debug ({e})")
    })?;
    // The library would tell of a log that cannot be written where nothing can be written either, which panics.
    let left_out = |lines| tracing::warn!(lines, "lines of the log were left out, as nobody took them");
    let lines = Lines::start(std::io::stderr(), left_out).context("cannot start the thread of the log")?;
    let output =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(lines.clone()).log_internal_errors(false);
    // On a terminal the library asks NO_COLOR, too.
    let output = if std::io::stderr().is_terminal() { output } else { output.with_ansi(false) };
    if settings.is_json {
        output.json().init();
    } else {
        output.with_target(false).init();
    }
    Ok(Log(lines))
}

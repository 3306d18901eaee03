//! `weir-worker`: runs until SIGTERM or SIGINT, then drains.

use std::io::Write as _;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use weir_allocator as _;
use weir_shared::config::Settings;
use weir_shared::config::shown::Given;

/// How long calls that block are waited for at the end. Whatever they were for has ended: one may stand before a bucket that
/// does not answer.
const LAST_CALLS: Duration = Duration::from_secs(1);

fn main() -> std::process::ExitCode {
    weir_shared::memory::give_back_soon();
    if let Some(argument) = std::env::args().nth(1) {
        return match argument.as_str() {
            // The first process of a box; not for people.
            weir_worker::sandbox::BOX_ARGUMENT => weir_worker::sandbox::box_main(),
            // The reader of one PDF; not for people.
            weir_worker::pdf::CHILD_ARGUMENT => weir_worker::pdf::child_main(),
            // The reader of one office file; not for people.
            weir_worker::office::CHILD_ARGUMENT => weir_worker::office::child_main(),
            // What `weir doctor` asks.
            weir_shared::examination::ARGUMENT => ended(examine()),
            "--version" | "-V" => {
                println!("weir-worker {}", env!("CARGO_PKG_VERSION"));
                std::process::ExitCode::SUCCESS
            }
            "--help" | "-h" => {
                println!(
                    "weir-worker: takes jobs from the queue until SIGTERM, then finishes what it has.\n\n\
                     It takes no arguments; settings come from the environment or .env (see README)."
                );
                std::process::ExitCode::SUCCESS
            }
            other => {
                eprintln!("weir-worker: unknown argument {other}; it takes none (try --help)");
                std::process::ExitCode::from(2)
            }
        };
    }
    ended(run())
}

fn ended(outcome: anyhow::Result<()>) -> std::process::ExitCode {
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "weir-worker: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let settings = Settings::from_env()?;
    let _log = weir_shared::telemetry::init(&settings.log)?;
    Given::warn_of_unknown();
    weir_shared::descriptors::raise();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let stop = CancellationToken::new();
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let stopper = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
            tracing::info!("stopping");
            stopper.cancel();
        });
        weir_worker::node::run(settings, stop).await
    });
    runtime.shutdown_timeout(LAST_CALLS);
    outcome
}

fn examine() -> anyhow::Result<()> {
    let settings = Settings::from_env()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let found = runtime.block_on(weir_worker::node::examine(&settings))?;
    println!("{}", serde_json::to_string(&found)?);
    Ok(())
}

//! The command line of `weir`: the server, and what operators do around it.
//!
//! Exit code 0 success, 1 failure, 2 bad usage. `--json` makes every command that lists or shows print one JSON value.

mod agent;
mod backup;
mod config;
mod console;
mod database;
mod doctor;
mod feedback;
mod jobs;
mod keys;
mod mcp;
mod migrate;
mod monitors;
mod output;
mod pages;
mod remove_team;
mod replay;
mod rows;
mod teams;
mod watch;
mod webhooks;
mod workers;

use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use weir_shared::config::Settings;
use weir_shared::config::shown::Given;
use weir_shared::telemetry;

use crate::server;
use database::{open, open_or_make};
use output::{Output, complain};

/// A self-hosted web-data service: scrape one page or thousands, as markdown, html, links or screenshots.
#[derive(Parser)]
#[command(name = "weir", version, arg_required_else_help = true)]
struct Cli {
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the HTTP API until SIGTERM or SIGINT.
    Serve,
    /// Bring the database to this build's shape.
    Migrate {
        /// Change nothing: exit code 0 when the database fits, 1 when migrations are to be applied, which are listed.
        #[arg(long)]
        check: bool,
    },
    /// Teams and their limits.
    #[command(subcommand)]
    Team(teams::TeamCommand),
    /// API keys.
    #[command(subcommand)]
    Key(keys::KeyCommand),
    /// Credits of teams.
    #[command(subcommand)]
    Credits(teams::CreditsCommand),
    /// Jobs and their pages.
    #[command(subcommand)]
    Jobs(jobs::JobsCommand),
    /// Worker processes.
    #[command(subcommand)]
    Workers(workers::WorkersCommand),
    /// Webhook deliveries.
    #[command(subcommand)]
    Webhooks(webhooks::WebhooksCommand),
    /// Pages, crawls and searches that are looked at by a schedule.
    #[command(subcommand)]
    Monitor(monitors::MonitorCommand),
    /// What callers say of their results.
    #[command(subcommand)]
    Feedback(feedback::FeedbackCommand),
    /// Agents and extractions, step by step.
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// What is kept of sites.
    #[command(subcommand)]
    Pages(pages::PagesCommand),
    /// The console.
    #[command(subcommand)]
    Console(console::ConsoleCommand),
    /// Serve the tools of the Weir at WEIR_URL over the Model Context Protocol on standard input and output.
    Mcp,
    /// Save database, blobs and keys to a folder while the service works.
    Backup(backup::BackupCommand),
    /// Bring a backup to the database, the blobs and the key file of the settings, which must be empty.
    Restore(backup::RestoreCommand),
    /// Every setting with its value, where that comes from, and what it means; secrets are not shown.
    Config {
        /// The table of all settings for the documentation, without values.
        #[arg(long)]
        markdown: bool,
    },
    /// Check database, Chromium, sandbox, disk and clock; exit code 1 on any failure.
    Doctor,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = runtime.context("cannot start the runtime").and_then(|runtime| runtime.block_on(run(cli)));
    match outcome {
        Ok(code) => code,
        Err(error) => {
            complain(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let output = Output { json: cli.json };
    if let Command::Config { markdown } = cli.command {
        return config::run(markdown, output);
    }
    let settings = Settings::from_env()?;
    match cli.command {
        Command::Config { .. } => {}
        Command::Serve => {
            let _log = telemetry::init(&settings.log)?;
            Given::warn_of_unknown();
            server::serve(settings).await?;
        }
        Command::Migrate { check } => return migrate::run(&settings, check, output).await,
        Command::Mcp => mcp::run(&settings.mcp).await?,
        Command::Backup(command) => backup::save(command, &settings, output).await?,
        Command::Restore(command) => backup::restore(command, &settings, output).await?,
        Command::Doctor => return doctor::run(&settings, output).await,
        // What may come before the first start.
        Command::Team(command @ teams::TeamCommand::Add { .. }) => {
            teams::run(command, &open_or_make(&settings).await?, output).await?;
        }
        Command::Key(command @ keys::KeyCommand::Create { .. }) => {
            keys::run(command, &open_or_make(&settings).await?, output).await?;
        }
        Command::Team(command) => teams::run(command, &open(&settings).await?, output).await?,
        Command::Key(command) => keys::run(command, &open(&settings).await?, output).await?,
        Command::Credits(command) => {
            teams::run_credits(command, &open(&settings).await?, settings.limits.metered, output).await?;
        }
        Command::Jobs(command) => jobs::run(command, &open(&settings).await?, &settings, output).await?,
        Command::Workers(command) => workers::run(command, &open(&settings).await?, output).await?,
        Command::Console(command) => console::run(command, &open(&settings).await?, &settings, output).await?,
        Command::Pages(command) => pages::run(command, &open(&settings).await?, &settings, output).await?,
        Command::Monitor(command) => monitors::run(command, &open(&settings).await?, output).await?,
        Command::Agent(command) => agent::run(command, &open(&settings).await?, output).await?,
        Command::Feedback(command) => feedback::run(command, &open(&settings).await?, output).await?,
        Command::Webhooks(command) => webhooks::run(command, &open(&settings).await?, output).await?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// What has no help, from this command on down.
    fn without_help(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        let path = format!("{path} {}", command.get_name());
        if command.get_about().is_none() {
            found.push(path.clone());
        }
        let silent = command.get_arguments().filter(|argument| argument.get_help().is_none());
        found.extend(silent.map(|argument| format!("{path} {}", argument.get_id())));
        for inner in command.get_subcommands() {
            without_help(inner, &path, found);
        }
    }

    #[test]
    fn every_command_and_every_argument_says_what_it_is() {
        let mut command = Cli::command();
        command.build();
        let mut found = Vec::new();
        without_help(&command, "", &mut found);
        assert!(found.is_empty(), "without help: {}", found.join(","));
        assert!(command.get_subcommands().count() > 15);
    }

    #[test]
    fn every_command_of_the_interface_is_there() {
        for line in [
            "serve",
            "migrate",
            "migrate --check --json",
            "doctor",
            "config",
            "backup /var/backups/weir --json",
            "restore /var/backups/weir",
            "config --json",
            "mcp",
            "team add acme --json",
            "team list --json",
            "team set acme --concurrency 5 --sessions 2 --queue 9 --webhook-secret s --zero-data-retention on --rate scrape=9",
            "team set acme --concurrency default --sessions default --queue default --webhook-secret default --rate scrape=default",
            "team remove acme",
            "team remove acme --yes --wait --json",
            "key create --team acme --json",
            "key create --team acme --name shop",
            "key list",
            "key revoke 0190c0de-0000-7000-8000-000000000000",
            "credits grant --team acme 500",
            "credits show --team acme --json",
            "console link --team acme --json",
            "console link --read-only --base http://127.0.0.1:3002",
            "jobs list --team acme --status failed",
            "jobs list --kind agent",
            "jobs show 0190c0de-0000-7000-8000-000000000000",
            "jobs watch 0190c0de-0000-7000-8000-000000000000",
            "jobs replay 0190c0de-0000-7000-8000-000000000000 --dry-run",
            "jobs replay --code SCRAPE_TIMEOUT --older-than 5m --newer-than 1d --wait",
            "jobs replay --worth-it",
            "workers list",
            "workers drain host-1",
            "webhooks deliveries --state dead",
            "feedback list --team acme --limit 5 --json",
            "monitor list --team acme --json",
            "monitor run 0190c0de-0000-7000-8000-000000000000",
            "monitor pause 0190c0de-0000-7000-8000-000000000000 --resume",
            "monitor history 0190c0de-0000-7000-8000-000000000000 --limit 5 --json",
            "agent show 0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f --json",
            "pages export --warc /var/backups/pages.warc.gz --site example.com --json",
            "webhooks replay --job 0190c0de-0000-7000-8000-000000000000",
        ] {
            let words = std::iter::once("weir").chain(line.split(' '));
            assert!(Cli::try_parse_from(words).is_ok(), "{line}");
        }
    }

    #[test]
    fn bad_usage_ends_with_code_2() {
        for line in [
            "nonsense",
            "team set acme",
            "team set acme --rate lunch=3",
            "team set acme --rate lunch=default",
            "team set acme --concurrency 0",
            "team set acme --sessions none",
            "team remove",
            "key create",
            "jobs replay",
            "jobs show 5",
            "pages export",
            "monitor run 5",
            "jobs replay --older-than soon",
            "webhooks replay",
            "console link --team acme --read-only",
            "console link --base ftp://files.example",
            "console link --base https://weir.example/?a=b",
            "console link --base https://weir.example/#part",
        ] {
            let words = std::iter::once("weir").chain(line.split(' '));
            let error = Cli::try_parse_from(words).err().unwrap_or_else(|| panic!("{line} is taken"));
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }
}

//! `weir pages …`: what is kept of sites, for the operator.

mod export;
mod warc;

use std::path::PathBuf;

use clap::Subcommand;
use weir_shared::config::Settings;
use weir_shared::store::Db;

use super::output::Output;

#[derive(Subcommand)]
pub enum PagesCommand {
    /// Write what is kept of sites to an archive (WARC 1.1), in which other programs show, search and compare it. With it
    /// go pages of all teams, those with a password in their address too.
    Export {
        /// A file, compressed record by record where its name ends with .gz; or a folder, for files of a gigabyte each.
        /// What is there is not overwritten.
        #[arg(long)]
        warc: PathBuf,
        /// Only the pages of this registered domain.
        #[arg(long)]
        site: Option<String>,
    },
}

/// Runs `weir pages …`.
pub async fn run(command: PagesCommand, db: &Db, settings: &Settings, output: Output) -> anyhow::Result<()> {
    let PagesCommand::Export { warc, site } = command;
    export::run(&warc, site.as_deref(), db, settings, output).await
}

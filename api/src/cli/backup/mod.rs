//! `weir backup` and `weir restore`: the database, the blobs and the keys of an installation in one folder, and back.
//!
//! ```text
//! backup   blobs ─> database, as it is at one moment ─> blobs that came meanwhile ─> keys ─> backup.json
//! restore  checks ─> blobs ─> keys ─> database, whole or not at all
//! ```
//!
//! A row is written after its blob and goes before it, so blobs are copied on both sides of the database: what a row of the
//! copy names is there in one of the two passes. A folder that holds a backup is brought up to date, and holds a whole one at
//! every moment. A restore that was broken off is told again, and goes on.

mod folder;
mod restore;
mod save;

use std::path::PathBuf;

use clap::Args;
use weir_shared::config::Settings;

use super::output::Output;

/// `weir backup`.
#[derive(Args)]
pub struct BackupCommand {
    /// Where it goes: a new folder, or one that holds an older backup, which is brought up to date.
    folder: PathBuf,
}

/// `weir restore`.
#[derive(Args)]
pub struct RestoreCommand {
    /// What `weir backup` has made.
    folder: PathBuf,
}

/// Saves the installation that the settings name. Nothing needs to stop.
///
/// # Errors
/// When something of it cannot be read, or the folder not be written.
pub async fn save(command: BackupCommand, settings: &Settings, output: Output) -> anyhow::Result<()> {
    save::run(&command.folder, settings, output).await
}

/// Brings a backup to where the settings say. The database there must be empty, and nothing may be running.
///
/// # Errors
/// When that is not so, or something cannot be written.
pub async fn restore(command: RestoreCommand, settings: &Settings, output: Output) -> anyhow::Result<()> {
    restore::run(&command.folder, settings, output).await
}

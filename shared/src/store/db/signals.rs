//! Signals between processes on one SQLite file: what LISTEN and NOTIFY are on Postgres.
//!
//! A process that has committed something others wait for writes a byte into the small file beside the database that
//! stands for it, and the kernel tells whoever watches that file (inotify). Files say more than the database's own log would: nobody is woken for
//! a heartbeat, and when a signal comes the commit is visible. A signal that is lost costs its watcher a slow tick.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use inotify::{Inotify, WatchDescriptor, WatchMask};

use crate::private;

/// How a statement on Postgres tells whoever waits: for a page by its name, for a job by the job's. Of a job whose one page
/// somebody waits for (rank 0), the page is named.
macro_rules! notify_done {
    (page $page:literal) => {
        concat!("pg_notify('weir_done', 'p:' || ", $page, ")")
    };
    (job $job:literal) => {
        concat!("pg_notify('weir_done', 'j:' || ", $job, ")")
    };
    (rank $page:literal) => {
        concat!("pg_notify('weir_done', CASE rank WHEN 0 THEN COALESCE('p:' || ", $page, ", '') ELSE 'j:' || id END)")
    };
}
pub(in crate::store) use notify_done;

/// What a commit may have brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// A wake-up in the queue of that name.
    Scrape,
    Team,
    Webhook,
    Task,
    /// The end of a page or a change of its job.
    End,
}

impl Signal {
    pub(super) const ALL: [Self; 5] = [Self::Scrape, Self::Team, Self::Webhook, Self::Task, Self::End];

    /// The file beside the database.
    fn file(self, database: &Path) -> PathBuf {
        let mut name = database.as_os_str().to_owned();
        name.push(match self {
            Self::Scrape => "-scrape",
            Self::Team => "-lane",
            Self::Webhook => "-webhook",
            Self::Task => "-task",
            Self::End => "-ends",
        });
        name.into()
    }

    fn open(self, database: &Path) -> anyhow::Result<File> {
        let path = self.file(database);
        private::open(&path).with_context(|| format!("cannot open {}", path.display()))
    }
}

/// The files of one database, to write to.
#[derive(Debug)]
pub struct Signals([File; Signal::ALL.len()]);

impl Signals {
    /// Opens them, and makes them where they are not there.
    ///
    /// # Errors
    /// When the database's folder cannot be written to.
    pub fn open(database: &Path) -> anyhow::Result<Self> {
        let [scrape, team, webhook, task, end] = Signal::ALL.map(|signal| signal.open(database));
        Ok(Self([scrape?, team?, webhook?, task?, end?]))
    }

    pub(in crate::store) fn send(&self, signal: Signal) {
        if let Err(error) = self.0[signal as usize].write_at(b".", 0) {
            tracing::warn!(%error, "a signal is lost; whoever waits for it looks again soon");
        }
    }
}

/// Watches for signals of any process, with what tells them apart.
///
/// # Errors
/// When their files cannot be watched.
pub fn watch(database: &Path, wanted: &[Signal]) -> anyhow::Result<(Inotify, HashMap<WatchDescriptor, Signal>)> {
    let inotify = Inotify::init().context("inotify is not available")?;
    let mut watches = HashMap::new();
    for signal in wanted {
        signal.open(database)?;
        let path = signal.file(database);
        let watch = inotify.watches().add(&path, WatchMask::MODIFY);
        watches.insert(watch.with_context(|| format!("cannot watch {}", path.display()))?, *signal);
    }
    Ok((inotify, watches))
}

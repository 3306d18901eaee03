//! `weir pages export`: page by page, so that memory stays flat however much is kept.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::json;
use weir_shared::blobs::Blobs;
use weir_shared::config::Settings;
use weir_shared::store::contents::cache::{self, Age, Kept};
use weir_shared::store::{Db, StoreError};
use weir_shared::texts::counted;

use super::warc::Archive;
use crate::cli::output::{Output, complain};

/// Pages read at once.
const STEP: i64 = 50;
/// A file of a folder ends when it is so long, bytes.
const FILE: u64 = 1 << 30;

/// Where the records go.
enum Target {
    File(PathBuf),
    Folder(PathBuf),
}

impl Target {
    fn of(path: &Path) -> Self {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_file = (name.ends_with(".warc") || name.ends_with(".warc.gz")) && !path.is_dir();
        if is_file { Self::File(path.to_owned()) } else { Self::Folder(path.to_owned()) }
    }

    /// The file at this place in their order; `None`: there is one alone.
    fn file(&self, n: usize) -> Option<PathBuf> {
        match self {
            Self::File(path) => (n == 0).then(|| path.clone()),
            Self::Folder(folder) => Some(folder.join(format!("weir-{n:05}.warc.gz"))),
        }
    }
}

pub async fn run(to: &Path, site: Option<&str>, db: &Db, settings: &Settings, output: Output) -> anyhow::Result<()> {
    let blobs = Blobs::at(&settings.blobs)?;
    let target = Target::of(to);
    if let Target::Folder(folder) = &target {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let mut files = 0;
    let mut archive = open(&target, files)?;
    let (mut pages, mut lost) = (0_u64, 0_u64);
    // A page with a picture is found in several places.
    let mut written = HashSet::new();
    let (mut age, mut after) = (Age::Newest, (String::new(), String::new()));
    loop {
        let rows = cache::kept_after(db, age, (&after.0, &after.1), site, STEP).await?;
        let Some(last) = rows.last() else {
            if age == Age::Earlier {
                break;
            }
            (age, after) = (Age::Earlier, Default::default());
            continue;
        };
        after = (last.key.clone(), last.found.digest().to_owned());
        for kept in rows {
            if !written.insert((kept.found.head.url.to_string(), kept.found.digest().to_owned())) {
                continue;
            }
            if archive.length() > FILE
                && let Some(next) = target.file(files + 1)
            {
                archive.finish()?;
                files += 1;
                archive = Archive::create(&next)?;
            }
            match write(&mut archive, kept, &blobs).await {
                Ok(()) => pages += 1,
                Err(Trouble::Lost(why)) => {
                    complain(format_args!("left out: {why}"));
                    lost += 1;
                }
                Err(Trouble::Other(error)) => return Err(error),
            }
        }
    }
    archive.finish()?;
    let summary = json!({ "pages": pages, "lost": lost, "files": files + 1 });
    output.show(&summary, || {
        format!("{} in {} below {}", counted(pages, "page"), counted(files + 1, "file"), to.display())
    });
    if lost > 0 {
        bail!("could not be read, and left out: {}", counted(lost, "page"));
    }
    Ok(())
}

fn open(target: &Target, n: usize) -> anyhow::Result<Archive> {
    let path = target.file(n).context("there is always a first file")?;
    Archive::create(&path)
}

enum Trouble {
    /// Of this page alone.
    Lost(String),
    Other(anyhow::Error),
}

async fn write(archive: &mut Archive, kept: Kept, blobs: &Blobs) -> Result<(), Trouble> {
    let url = kept.found.head.url.clone();
    let trouble = |error| match error {
        StoreError::Lost(why) => Trouble::Lost(format!("{url}: {why}")),
        error => Trouble::Other(error.into()),
    };
    let found = kept.found.bring(blobs).await.map_err(trouble)?;
    let content = found.unpack().map_err(trouble)?;
    archive.page(&found, content.into_parts()).map_err(Trouble::Other)
}

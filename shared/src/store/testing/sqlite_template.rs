//! A SQLite database for one test, as the migrations leave it: a copy of one to which they were applied before. Crates whose
//! tests need databases include this file: it knows nothing of theirs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Tells the drafts of one program's tests apart.
static DRAFTS: AtomicU32 = AtomicU32::new(0);

/// Makes a file. The migrations are applied once for all tests of a program, each of which may run in a process of its own:
/// a file beside the program keeps the result until the program is built again. `migrate` brings a file to its shape, where
/// no test has done so yet.
pub async fn create(path: &Path, migrate: impl AsyncFnOnce(PathBuf)) {
    let program = std::env::current_exe().expect("a test knows its program");
    let template = program.with_extension("weir.db");
    let written = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
    if written(&template) <= written(&program) {
        // Under its name it is whole, whoever else writes it.
        let draft =
            program.with_extension(format!("{}-{}.db", std::process::id(), DRAFTS.fetch_add(1, Ordering::Relaxed)));
        migrate(draft.clone()).await;
        assert!(!draft.with_extension("db-wal").exists(), "it was closed: all of it is in the file");
        std::fs::rename(&draft, &template).expect("a draft gets its name");
    }
    std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder can be made");
    std::fs::copy(&template, path).expect("a template can be copied");
}

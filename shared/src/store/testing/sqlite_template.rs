//! A SQLite database for one test, as the migrations leave it: a copy of one to which they were applied before. Crates whose
//! tests need databases include this file: it knows nothing of theirs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Tells the drafts of one program's tests apart.
static DRAFTS: AtomicU32 = AtomicU32::new(0);

/// Makes a file. The migrations are applied once for all tests of a program, each of which may run in a process of its own:
/// a file beside the program keeps the result until the program is built again. `migrate` brings a file to its shape, where
/// no test has done so yet; what that leaves beside the file goes with its folder.
pub async fn create(path: &Path, migrate: impl AsyncFnOnce(PathBuf)) {
    let program = std::env::current_exe().expect("a test knows its program");
    let template = program.with_extension("weir.db");
    let written = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
    if written(&template) <= written(&program) {
        write(&template, migrate).await;
    }
    std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder can be made");
    std::fs::copy(&template, path).expect("a template can be copied");
}

/// Writes the template. Under its name it is whole, whoever else writes it.
async fn write(template: &Path, migrate: impl AsyncFnOnce(PathBuf)) {
    let own = format!("{}-{}", std::process::id(), DRAFTS.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(format!("weir-test-template-{own}"));
    // One of a process of the same number, which was killed.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let made = folder.join("weir.db");
    migrate(made.clone()).await;
    assert!(!made.with_extension("db-wal").exists(), "it was closed: all of it is in the file");
    // The name is given within one file system.
    let draft = template.with_extension(own);
    std::fs::copy(&made, &draft).expect("a draft can be written");
    std::fs::rename(&draft, template).expect("a draft gets its name");
    std::fs::remove_dir_all(&folder).expect("a folder can be removed");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_but_the_template_is_left_where_it_is_written() {
        let own = format!("{}-{}", std::process::id(), DRAFTS.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(format!("weir-test-templates-{own}"));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let beside = |made: &Path| made.with_extension("db-ends");
        write(&folder.join("program.weir.db"), async |made| {
            std::fs::write(&made, "rows").expect("it can be written");
            std::fs::write(beside(&made), "").expect("it can be written");
        })
        .await;
        let names = |folder: &Path| {
            let found = std::fs::read_dir(folder).expect("it is there");
            found.map(|entry| entry.expect("it can be read").file_name()).collect::<Vec<_>>()
        };
        assert_eq!(names(&folder), ["program.weir.db"]);
        assert_eq!(std::fs::read(folder.join("program.weir.db")).expect("it is there"), b"rows");
        std::fs::remove_dir_all(folder).expect("a folder can be removed");
    }
}

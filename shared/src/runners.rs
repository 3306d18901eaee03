//! What `scripts/setup` has installed for the code runners, and whether it is all there. Starts nothing.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The packages of the code runners, and the interpreters they were installed for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledRunners {
    /// The folder that holds them.
    pub folder: PathBuf,
    /// Node 20 or newer.
    pub node: PathBuf,
    /// The Python whose version the compiled modules fit.
    pub python: PathBuf,
    /// Digest of the lists of packages that were installed.
    pub pins: String,
}

/// `installed.json`, written last by `scripts/setup`.
#[derive(Deserialize)]
struct Record {
    pins: String,
    node: PathBuf,
    python: PathBuf,
}

impl InstalledRunners {
    /// Looks into `folder`, the setting `WEIR_RUNNERS`.
    ///
    /// # Errors
    /// One sentence: what is missing or out of reach, and what to do about it.
    pub fn find(folder: &Path) -> Result<Self, String> {
        let shown = folder.display();
        let record = std::fs::read(folder.join("installed.json")).map_err(|_| {
            format!("the code runners are not installed in {shown}: run scripts/setup, or set WEIR_RUNNERS to where they are")
        })?;
        let record: Record = serde_json::from_slice(&record)
            .map_err(|e| format!("{shown}/installed.json is not what scripts/setup writes ({e}): run scripts/setup"))?;
        for program in [&record.node, &record.python, &folder.join(AGENT_BROWSER)] {
            let runs = std::fs::metadata(program).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
            if !runs {
                return Err(format!(
                    "the code runners need {}, which is not there: run scripts/setup",
                    program.display()
                ));
            }
        }
        for package in ["node_modules/playwright-core", "node_modules/acorn", "python/playwright"] {
            if !folder.join(package).is_dir() {
                return Err(format!("{shown} lacks {package}: run scripts/setup"));
            }
        }
        let folder = folder.canonicalize().map_err(|e| format!("{shown}: {e}"))?;
        if let Some(closed) = closed_to_others(&folder) {
            return Err(format!(
                "{} is closed to the users that code runs as: set WEIR_RUNNERS to a folder outside of it and run scripts/setup",
                closed.display()
            ));
        }
        Ok(Self { folder, node: record.node, python: record.python, pins: record.pins })
    }
}

/// agent-browser's program in the folder.
const AGENT_BROWSER: &str = "node_modules/agent-browser/bin/agent-browser";

/// The folder on the way to `path`, itself included, that other users may not enter. Matters only when this process
/// is root: otherwise code runs as its own user.
fn closed_to_others(path: &Path) -> Option<&Path> {
    if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() != 0) {
        return None;
    }
    path.ancestors().find(|dir| std::fs::metadata(dir).is_ok_and(|m| m.permissions().mode() & 0o001 == 0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::fs;

    /// A folder with everything in it, as far as can be seen from outside.
    fn installed() -> tempdir::Dir {
        let dir = tempdir::Dir::new();
        for package in [
            "node_modules/playwright-core",
            "node_modules/acorn",
            "node_modules/agent-browser/bin",
            "python/playwright",
        ] {
            fs::create_dir_all(dir.path.join(package)).unwrap();
        }
        fs::write(dir.path.join(AGENT_BROWSER), "").unwrap();
        fs::set_permissions(dir.path.join(AGENT_BROWSER), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(dir.path.join("installed.json"), r#"{"pins": "p", "node": "/bin/sh", "python": "/bin/sh"}"#).unwrap();
        dir
    }

    #[test]
    fn a_whole_installation_is_found() {
        let dir = installed();
        let found = InstalledRunners::find(&dir.path).unwrap();
        assert_eq!((found.node, found.pins.as_str()), (PathBuf::from("/bin/sh"), "p"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let dir = installed();
        let error = |why: &str| {
            let error = InstalledRunners::find(&dir.path).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        fs::remove_dir_all(dir.path.join("python")).unwrap();
        error("lacks python/playwright");
        fs::remove_file(dir.path.join(AGENT_BROWSER)).unwrap();
        error("agent-browser/bin/agent-browser, which is not there");
        fs::write(dir.path.join("installed.json"), r#"{"pins": "p", "node": "/no/node", "python": "/bin/sh"}"#)
            .unwrap();
        error("need /no/node");
        fs::write(dir.path.join("installed.json"), "{}").unwrap();
        error("not what scripts/setup writes");
        fs::remove_file(dir.path.join("installed.json")).unwrap();
        error("are not installed in");
    }

    #[test]
    fn a_folder_that_code_cannot_enter_is_refused() {
        let dir = installed();
        fs::set_permissions(&dir.path, fs::Permissions::from_mode(0o700)).unwrap();
        let root = fs::metadata("/proc/self").unwrap().uid() == 0;
        assert_eq!(InstalledRunners::find(&dir.path).is_err(), root);
    }

    mod tempdir {
        use std::path::PathBuf;

        pub struct Dir {
            pub path: PathBuf,
        }

        impl Dir {
            pub fn new() -> Self {
                let path = std::env::temp_dir().join(format!("weir-runners-{}", crate::random::hex::<8>()));
                std::fs::create_dir_all(&path).unwrap();
                Self { path }
            }
        }

        impl Drop for Dir {
            fn drop(&mut self) {
                let _ = std::fs::remove_dir_all(&self.path);
            }
        }
    }
}

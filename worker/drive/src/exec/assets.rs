//! What every code box gets to see: the runners' programs, which are part of this binary, and the installed packages.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};
use weir_shared::runners::InstalledRunners;

use super::Language;
use super::boxes::{ASSETS, CDP_URL, HOME, PROXY_URL, Program, TMP};

/// The programs, by name and mode.
const PROGRAMS: &[(&str, u32, &str)] = &[
    ("node.cjs", 0o644, include_str!("../../../boxed/node.cjs")),
    ("outside.cjs", 0o644, include_str!("../../../boxed/outside.cjs")),
    ("python.py", 0o644, include_str!("../../../boxed/python.py")),
    ("shell.py", 0o644, include_str!("../../../boxed/shell.py")),
    ("keeper.py", 0o644, include_str!("../../../boxed/keeper.py")),
    ("agent-browser", 0o755, include_str!("../../../boxed/agent-browser")),
    ("scrape.js", 0o644, include_str!("../../../boxed/scrape.js")),
];

/// The lists of packages that the programs were written for, in the order in which `scripts/setup` digests them.
const PINS: &[&str] = &[
    include_str!("../../../boxed/package.json"),
    include_str!("../../../boxed/package-lock.json"),
    include_str!("../../../boxed/requirements.txt"),
];

/// Node's heap, MiB: less than a box has, so that code runs into Node's own error first.
const NODE_HEAP: u32 = 400;

/// Everything that boxes bind, found once per worker. The programs go with the sandbox's folder.
#[derive(Debug, PartialEq, Eq)]
pub struct Assets {
    programs: PathBuf,
    packages: PathBuf,
    node: PathBuf,
    python: PathBuf,
}

impl Assets {
    /// Finds the packages in `runners` (the setting `WEIR_RUNNERS`) and writes the programs into the folder `programs`,
    /// which is made if it is missing and lies where other users get through.
    ///
    /// # Errors
    /// One sentence: what is missing and what to do about it.
    pub fn find(runners: &Path, programs: &Path) -> anyhow::Result<Self> {
        let installed = InstalledRunners::find(runners).map_err(anyhow::Error::msg)?;
        if installed.pins != digest(PINS.iter().copied()) {
            bail!("the packages in {} are those of another version of Weir: run scripts/setup", runners.display());
        }
        write_programs(programs)
            .with_context(|| format!("writing the code runners' programs into {}", programs.display()))?;
        let real = |path: &Path| path.canonicalize().with_context(|| path.display().to_string());
        Ok(Self {
            programs: programs.to_owned(),
            packages: installed.folder,
            node: real(&installed.node)?,
            python: real(&installed.python)?,
        })
    }

    /// The runner of `language`.
    pub(super) fn runner(&self, language: Language) -> Program {
        let python = |options: &[&str], name: &str| {
            let mut argv = vec![self.python.display().to_string()];
            argv.extend(options.iter().map(|option| (*option).to_owned()));
            argv.push(program(name));
            argv
        };
        self.program(match language {
            Language::Node => {
                vec![self.node_inside(), format!("--max-old-space-size={NODE_HEAP}"), program("node.cjs")]
            }
            Language::Python => python(&[], "python.py"),
            Language::Bash => python(&["-IS"], "shell.py"),
        })
    }

    /// What keeps agent-browser's daemons.
    pub(super) fn keeper(&self) -> Program {
        self.program(vec![self.python.display().to_string(), "-IS".into(), program("keeper.py")])
    }

    fn program(&self, argv: Vec<String>) -> Program {
        let inside = |name: &str| format!("{ASSETS}/{name}");
        let mut binds: Vec<(PathBuf, String)> =
            ["node_modules", "python"].iter().map(|name| (self.packages.join(name), inside(name))).collect();
        binds.push((self.programs.clone(), inside("bin")));
        if self.node.starts_with(&self.packages) {
            binds.push((self.node.clone(), inside("node")));
        }
        let env = [
            ("PATH", format!("{ASSETS}/bin:/usr/local/bin:/usr/bin:/bin")),
            ("HOME", HOME.into()),
            ("LANG", "C.UTF-8".into()),
            ("TMPDIR", TMP.into()),
            ("TERM", "dumb".into()),
            ("NO_COLOR", "1".into()),
            ("CDP_URL", CDP_URL.into()),
            ("HTTP_PROXY", PROXY_URL.into()),
            ("HTTPS_PROXY", PROXY_URL.into()),
            ("http_proxy", PROXY_URL.into()),
            ("https_proxy", PROXY_URL.into()),
            ("NO_PROXY", "localhost,127.0.0.1".into()),
            ("no_proxy", "localhost,127.0.0.1".into()),
            ("NODE_PATH", inside("node_modules")),
            ("PYTHONPATH", inside("python")),
            ("PLAYWRIGHT_NODEJS_PATH", self.node_inside()),
            ("AGENT_BROWSER", inside("node_modules/agent-browser/bin/agent-browser")),
            ("AGENT_BROWSER_SOCKET_DIR", format!("{HOME}/.agent-browser")),
            ("AGENT_BROWSER_NO_VERSION_CHECK", "1".into()),
        ];
        Program { argv, env: env.map(|(name, value)| (name.to_owned(), value)).into(), binds }
    }

    /// Node's path as a box sees it: the system's, or the one that came with the packages.
    fn node_inside(&self) -> String {
        if self.node.starts_with(&self.packages) { format!("{ASSETS}/node") } else { self.node.display().to_string() }
    }
}

fn program(name: &str) -> String {
    format!("{ASSETS}/bin/{name}")
}

/// The first 16 hexadecimal digits of the SHA-256 of all texts in a row.
fn digest<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    texts.for_each(|text| hash.update(text));
    hex::encode(&hash.finalize()[..8])
}

/// Writes the programs into a new folder of `dir`.
/// What an earlier try has left, which was given up half way, is written over.
fn write_programs(folder: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    for (name, mode, text) in PROGRAMS {
        fs::write(folder.join(name), text)?;
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(*mode))?;
    }
    Ok(())
}

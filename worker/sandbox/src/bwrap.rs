//! How a box is made: the arguments of bubblewrap.
//!
//! The file system starts empty and read-only; into it come the system's programs, fonts and certificates
//! (read-only), the session's own directories, and small file systems in memory for `/tmp` and `/dev/shm`.
//! All namespaces are new: no network but a loopback of its own, no other processes, no host name. The program
//! that runs first is ours, as process 1: nothing of these arguments can be seen inside.

use std::fs;
use std::path::{Path, PathBuf};

use super::HOME;
use super::dir::SessionDir;

/// Where the first program lies in every box.
const PROGRAM: &str = "/weir-box";

/// What of the host's `/etc` and caches programs need; absent ones are left out.
const SYSTEM_FILES: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/mime.types",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/var/cache/fontconfig",
];

/// What differs between boxes.
#[derive(Debug, Default)]
pub(super) struct Layout<'a> {
    /// Read-only, host to box.
    pub read_only: Vec<(PathBuf, String)>,
    /// Writable, host to box.
    pub writable: Vec<(PathBuf, String)>,
    /// Whether Chromium may make namespaces of its own for its sandbox.
    pub nests: bool,
    /// Size of `/tmp`, bytes.
    pub tmp: u64,
    /// Size of `/dev/shm`, bytes.
    pub shm: u64,
    pub cwd: &'a str,
}

/// All arguments, the program included.
pub(super) fn arguments(program: &Path, dir: &SessionDir, layout: &Layout<'_>) -> Vec<String> {
    let mut args = Args::default();
    args.add(&["--unshare-all", "--unshare-user", "--new-session", "--as-pid-1", "--clearenv"]);
    args.add(&["--cap-drop", "ALL", "--hostname", "weir", "--json-status-fd", "1"]);
    for (name, value) in super::running::FIRST_ENV {
        args.add(&["--setenv", name, value]);
    }
    if !layout.nests {
        args.add(&["--disable-userns"]);
    }
    args.add(&["--tmpfs", "/", "--ro-bind", "/usr", "/usr"]);
    for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
        let path = format!("/{name}");
        match fs::read_link(&path) {
            Ok(target) => args.add(&["--symlink", &target.to_string_lossy(), &path]),
            Err(_) if Path::new(&path).is_dir() => args.add(&["--ro-bind", &path, &path]),
            Err(_) => {}
        }
    }
    for path in SYSTEM_FILES {
        args.add(&["--ro-bind-try", path, path]);
    }
    for name in ["passwd", "group", "hosts", "nsswitch.conf"] {
        args.add(&["--ro-bind", &dir.root.join("etc").join(name).to_string_lossy(), &format!("/etc/{name}")]);
    }
    args.add(&["--proc", "/proc", "--dev", "/dev"]);
    args.add(&["--perms", "1777", "--size", &layout.shm.to_string(), "--tmpfs", "/dev/shm"]);
    args.add(&["--perms", "1777", "--size", &layout.tmp.to_string(), "--tmpfs", "/tmp"]);
    args.add(&["--bind", &dir.work.to_string_lossy(), HOME]);
    for (host, inside) in &layout.writable {
        args.add(&["--bind", &host.to_string_lossy(), inside]);
    }
    for (host, inside) in &layout.read_only {
        args.add(&["--ro-bind", &host.to_string_lossy(), inside]);
    }
    args.add(&["--ro-bind", &program.to_string_lossy(), PROGRAM]);
    args.add(&["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", layout.cwd, "--", PROGRAM, super::BOX_ARGUMENT]);
    args.0
}

#[derive(Default)]
struct Args(Vec<String>);

impl Args {
    fn add(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(|word| (*word).to_owned()));
    }
}

//! What this machine has for a worker. Boxes are tried by the worker's own program, which makes them.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use weir_shared::blobs::BlobsUrl;
use weir_shared::config::{ApiSettings, DatabaseUrl, SandboxChoice, Settings};
use weir_shared::descriptors;
use weir_shared::examination::{self, Examination};
use weir_shared::runners::InstalledRunners;
use weir_shared::texts::counted;

use super::finding::{Check, Finding};
use crate::callers::first_key;

/// Least free space where data, blobs and boxes lie, bytes: below it writes fail soon.
const LEAST_FREE: u64 = 1024 * 1024 * 1024;
/// Bound on what the worker's program tries.
const EXAMINATION: Duration = Duration::from_secs(60);
/// A user without rights, for checks of what unprivileged processes may do.
const NOBODY: u32 = 65_534;
/// Names of browsers that can be used, best first.
const BROWSERS: &[&str] =
    &["chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome-stable"];
/// Where Debian keeps the headless shell, off PATH.
const BROWSER_FOLDERS: &[&str] = &["/usr/lib/chromium", "/usr/lib/chromium-browser", "/opt/chrome-headless-shell"];

pub(super) async fn checks(settings: &Settings) -> Vec<Check> {
    let mut checks = vec![("key", key(&settings.api)), ("disk", disk(settings))];
    checks.push(("open files", open_files(descriptors::allowed(), settings.worker.sessions)));
    let (chromium, sandbox) = (chromium(settings.browser.chromium.as_deref()), sandbox(settings.browser.sandbox));
    let for_boxes = mend_boxes(&chromium, &sandbox);
    checks.extend([("chromium", chromium), ("sandbox", sandbox)]);
    match examine().await {
        Ok(Some(found)) => checks.extend(told(&found, for_boxes, settings)),
        Ok(None) => {
            checks.push(("worker", Finding::good("weir-worker is not on this machine; what it needs was not tried")))
        }
        Err(error) => {
            checks.push(("worker", Finding::bad(format!("{error:#}"), "run weir-worker by hand and read what it says")))
        }
    }
    checks
}

/// What helps where boxes do not run: most likely the check that says so.
fn mend_boxes(chromium: &Finding, sandbox: &Finding) -> &'static str {
    match (chromium, sandbox) {
        (Finding::Bad { .. }, _) => "see chromium",
        (_, Finding::Bad { .. }) => "see sandbox",
        _ => "see sandbox and box limits",
    }
}

/// Whether the default team's key can be read, as the API does at its start.
fn key(settings: &ApiSettings) -> Finding {
    if settings.api_key.is_some() {
        return Finding::good("given in WEIR_API_KEY");
    }
    let file = settings.api_key_file.display();
    match first_key::read(&settings.api_key_file) {
        Ok(Some(_)) => Finding::good(format!("in {file}")),
        Ok(None) => Finding::good(format!("not made yet; the first `weir serve` writes it to {file}")),
        Err(error) => {
            Finding::bad(format!("{error:#}"), "run it as the service's user, who must own the file (`chown`)")
        }
    }
}

/// What the worker's program has tried, as checks.
fn told(found: &Examination, for_boxes: &str, settings: &Settings) -> Vec<Check> {
    let mut checks = Vec::new();
    checks.push(match &found.run_dir {
        Ok(()) => ("box folder", Finding::good("boxes can be made and entered")),
        Err(why) => (
            "box folder",
            Finding::bad(
                why.clone(),
                "mkdir -m 0711 /run/weir, owned by the worker's user, or name another in WEIR_RUN_DIR",
            ),
        ),
    });
    if let Some(limits) = &found.limits {
        let mend = "run the worker with a cgroup of its own (systemd: Delegate=yes; containers: a writable cgroup)";
        checks.push((
            "box limits",
            match limits.is_cgroup {
                true => Finding::good(limits.name.clone()),
                false => Finding::weak(format!("{}: processor time is not bounded", limits.name), mend),
            },
        ));
    }
    match &found.boxes {
        Some(Ok(())) => checks.push(("boxes", Finding::good("code and a browser ran in one"))),
        Some(Err(why)) => checks.push(("boxes", Finding::bad(why.clone(), for_boxes))),
        None => {}
    }
    if settings.worker.sessions > 0 {
        checks.push(("runners", runners(&settings.worker.runners)));
    }
    checks.push((
        "recognition",
        match (found.reads_pages, found.reads_images) {
            (true, true) => Finding::good("scans in PDFs and images are read"),
            (false, true) => Finding::weak("scans in PDFs are not read", "install poppler-utils"),
            (_, false) => Finding::weak("scans and images are not read", "install tesseract-ocr and poppler-utils"),
        },
    ));
    checks
}

/// Has the worker's program try it. `None`: it is not on this machine.
async fn examine() -> anyhow::Result<Option<Examination>> {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join("weir-worker")));
    let Some(program) = beside.filter(|path| is_program(path)).or_else(|| on_path("weir-worker")) else {
        return Ok(None);
    };
    let mut command = tokio::process::Command::new(&program);
    command.arg(examination::ARGUMENT).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(EXAMINATION, command.output()).await;
    let output = output.context("weir-worker took too long")?.with_context(|| format!("{}", program.display()))?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(Some(serde_json::from_slice(&output.stdout).context("weir-worker is of another release")?))
}

/// The program has raised its own limit to the hard one. Where a worker with so many sessions runs, those may take their part.
fn open_files(allowed: u64, sessions: usize) -> Finding {
    let needed = descriptors::needed(sessions);
    if allowed >= needed {
        return Finding::good(format!("{allowed} at once"));
    }
    let raise = "raise the hard limit to 65536 (LimitNOFILE of systemd, --ulimit nofile= of containers";
    if allowed >= descriptors::LEAST {
        return Finding::weak(
            format!("{allowed} at once, and {} in one worker may take them all", counted(sessions, "session")),
            format!("{raise}, {needed} at least for so many), or lower WEIR_SESSIONS_PER_WORKER"),
        );
    }
    Finding::weak(
        format!("{allowed} at once, connections included"),
        format!("{raise}, {} at least)", descriptors::LEAST),
    )
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.mode() & 0o111 != 0)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| is_program(file))
}

fn chromium(configured: Option<&Path>) -> Finding {
    let mend = "install chromium-headless-shell or chromium, or set WEIR_CHROMIUM to the program";
    match find_chromium(configured) {
        Ok(found) => Finding::good(found),
        Err(error) => Finding::bad(format!("{error:#}"), mend),
    }
}

fn find_chromium(configured: Option<&Path>) -> anyhow::Result<String> {
    let found = match configured {
        Some(path) if is_program(path) => path.to_owned(),
        Some(path) => bail!("WEIR_CHROMIUM={} is not a program", path.display()),
        None => {
            let find = |name: &&str| {
                let folders = BROWSER_FOLDERS.iter().map(|folder| Path::new(folder).join(name));
                folders.into_iter().find(|file| is_program(file)).or_else(|| on_path(name))
            };
            BROWSERS.iter().find_map(find).context("none found")?
        }
    };
    let version = Command::new(&found).arg("--version").stderr(Stdio::null()).output();
    let version = version.with_context(|| format!("cannot run {}", found.display()))?;
    if !version.status.success() {
        bail!("{} --version failed: {}", found.display(), version.status);
    }
    Ok(format!("{}, {}", found.display(), String::from_utf8_lossy(&version.stdout).trim()))
}

/// Whether an unprivileged process can make namespaces of its own: Chromium's sandbox and bubblewrap need it.
fn sandbox(wanted: SandboxChoice) -> Finding {
    if wanted == SandboxChoice::Off {
        let mend = "take WEIR_SANDBOX=off away, unless whoever calls may have this machine";
        return Finding::weak("switched off: code and Chromium run with an ordinary user's rights", mend);
    }
    let Some(bwrap) = on_path("bwrap") else {
        return Finding::bad("bubblewrap (bwrap) is missing", "install bubblewrap");
    };
    let mut probe = Command::new("unshare");
    probe.args(["-U", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
    if is_root {
        probe.uid(NOBODY).gid(NOBODY).current_dir("/");
    }
    match probe.status() {
        Ok(status) if status.success() => Finding::good(format!("user namespaces work, {}", bwrap.display())),
        Ok(_) => Finding::bad(
            "unprivileged user namespaces are forbidden here",
            "sysctl kernel.unprivileged_userns_clone=1 and user.max_user_namespaces, AppArmor's \
             kernel.apparmor_restrict_unprivileged_userns=0, or the container's seccomp profile",
        ),
        Err(error) => Finding::bad(format!("cannot run unshare: {error}"), "install util-linux"),
    }
}

/// Whether what sessions run code with is there, and its interpreters start: Node wants libraries that a small Debian lacks.
fn runners(folder: &Path) -> Finding {
    let found = match InstalledRunners::find(folder) {
        Ok(found) => found,
        Err(why) => {
            let mend = "scripts/setup, or WEIR_SESSIONS_PER_WORKER=0 for a worker without sessions";
            return Finding::bad(why, mend);
        }
    };
    for program in [&found.node, &found.python] {
        let said = match Command::new(program).arg("--version").stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => continue,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        return Finding::bad(
            format!("{} does not run: {said}", program.display()),
            "install the library that it misses (libatomic1, libstdc++6)",
        );
    }
    Finding::good(format!("installed in {}", found.folder.display()))
}

/// Free space where the service writes.
fn disk(settings: &Settings) -> Finding {
    let data = match &settings.database_url {
        DatabaseUrl::Sqlite(path) => path.parent().map(Path::to_owned),
        DatabaseUrl::Postgres(_) => None,
    };
    let blobs = match &settings.blobs {
        BlobsUrl::Folder(folder) => Some(folder.clone()),
        BlobsUrl::Bucket { .. } => None,
    };
    let boxes = settings.worker.run_dirs.iter().find(|place| place.exists()).cloned();
    let mut lines = Vec::new();
    for (name, folder) in [("data", data), ("blobs", blobs), ("boxes", boxes), ("drafts", Some(std::env::temp_dir()))] {
        let Some(folder) = folder else { continue };
        match free_bytes(&folder) {
            Ok(free) => {
                let text = format!("{name} in {}: {:.1} GiB free", folder.display(), free as f64 / LEAST_FREE as f64);
                if free < LEAST_FREE {
                    return Finding::bad(
                        text,
                        "free at least 1 GiB there; WEIR_RESULT_TTL and WEIR_CACHE_SIZE bound what is kept",
                    );
                }
                lines.push(text);
            }
            Err(error) => return Finding::bad(format!("{name}: {error:#}"), "see that `df` works"),
        }
    }
    Finding::good(lines.join("; "))
}

/// Free space for unprivileged processes at a folder, or at the nearest one above that exists.
fn free_bytes(folder: &Path) -> anyhow::Result<u64> {
    let absolute = std::path::absolute(folder)?;
    let existing = absolute.ancestors().find(|f| f.exists()).unwrap_or(Path::new("/"));
    let output = Command::new("df").args(["-Pk", "--"]).arg(existing).output().context("cannot run df")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let kilobytes = text.lines().nth(1).and_then(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok());
    let kilobytes = kilobytes.with_context(|| format!("df says nothing about {}", existing.display()))?;
    Ok(kilobytes.saturating_mul(1_024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_that_do_not_run_are_led_back_to_what_they_need() {
        let (good, bad) = (|| Finding::good("there"), || Finding::bad("missing", "install it"));
        let mends = [mend_boxes(&bad(), &bad()), mend_boxes(&good(), &bad()), mend_boxes(&good(), &good())];
        assert_eq!(mends, ["see chromium", "see sandbox", "see sandbox and box limits"]);
    }

    #[test]
    fn a_low_limit_of_open_files_is_told_with_its_mend() {
        let states = [1_024, 4_095, 4_096, 65_536, u64::MAX].map(|allowed| open_files(allowed, 0).parts().0);
        assert_eq!(states, ["weak", "weak", "ok", "ok", "ok"]);
        assert!(open_files(1_024, 0).parts().2.is_some_and(|mend| mend.contains("LimitNOFILE")));
        // What the sessions of one worker may hold counts.
        let states = [4_096, 18_495, 18_496, 65_536].map(|allowed| open_files(allowed, 12).parts().0);
        assert_eq!(states, ["weak", "weak", "ok", "ok"]);
        assert!(open_files(4_096, 12).parts().2.is_some_and(|mend| mend.contains("WEIR_SESSIONS_PER_WORKER")));
    }
}

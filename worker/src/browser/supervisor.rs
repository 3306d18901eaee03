//! Starts, owns and ends one Chromium per [`Browser`], and removes what dead workers left behind.
//!
//! Each browser has a permanent thread, because the kernel's parent-death signal follows the *thread*
//! that started the process. It launches through `headless_chrome`, lets that library's own transport
//! go idle (it would attach to every page), hands out the WebSocket address, and then only waits for the
//! word to stop. Chromium never outlives its worker:
//!
//! ```text
//! worker ends the browser   kill the whole session (pid == pgid == sid), reap, remove the directory
//! Chromium dies             the same, from the same thread
//! worker is killed          the parent-death signal kills the main process, its children follow;
//!                           the next worker on the same run directory kills stragglers and cleans up
//! ```
//!
//! Under the run directory: `w-<worker pid>-<its start time>-<random>/launch.sh` and `…/b<n>/{pid,home/}`. The name
//! is the owner's record: a pid with another start time is another process.
//!
//! Chromium runs as an unprivileged user with its sandbox on. There is no silent way around that:
//! without a usable sandbox a launch fails, unless [`SandboxMode::Off`] was configured.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use headless_chrome::LaunchOptions;
use tokio::sync::oneshot;

use super::chromium::{BLIND_FLAGS, ChromiumKind, Found, flags};
use crate::process;

/// Whether Chromium's own sandbox is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxMode {
    /// Required: a launch without it fails.
    Strict,
    /// Off, for hosts that allow no user namespaces. Pages then run with the rights of the browser's user.
    Off,
}

/// User and group that Chromium gets when the worker is root and nothing is configured (`nobody`).
const NOBODY: (u32, u32) = (65_534, 65_534);

/// How long a start may take before it is given up. Cold start under load took up to 1.9 s.
const LAUNCH_LIMIT: Duration = Duration::from_secs(20);

/// Idle time after which `headless_chrome`'s transport ends; also the limit of its one call at start, so
/// later attempts are more patient.
const TRANSPORT_IDLE: [Duration; 3] = [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(5)];

/// `/dev/shm` smaller than this is not used, bytes.
const SHM_NEEDED: u64 = 512 << 20;

/// Everything that the browsers of one worker have in common.
#[derive(Debug)]
pub struct Launcher {
    found: Found,
    worker_dir: PathBuf,
    script: PathBuf,
    user: Option<(u32, u32)>,
    sandbox: SandboxMode,
    flags: Vec<String>,
    counter: AtomicU32,
}

impl Launcher {
    /// Cleans up after dead workers and prepares this worker's directory.
    ///
    /// # Errors
    /// When the directory cannot be made or is out of reach of Chromium's user, or `setpriv` and `setsid`
    /// (util-linux) are missing.
    pub fn prepare(
        found: Found,
        run_dir: &Path,
        user: Option<(u32, u32)>,
        sandbox: SandboxMode,
        proxy: SocketAddr,
        extra_flags: &[String],
    ) -> anyhow::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o711)
            .create(run_dir)
            .with_context(|| format!("creating {}", run_dir.display()))?;
        let run_dir = run_dir.canonicalize()?;
        remove_leftovers(&run_dir);

        let user = if process::is_root() { Some(user.unwrap_or(NOBODY)) } else { None };
        if user.is_some_and(|(uid, _)| uid == 0) {
            bail!("Chromium may not run as root: configure another user");
        }
        // Chromium's children come to us when it dies, so that nothing stays a zombie where no init reaps.
        process::adopt_orphans();
        let me = process::Identity::of_self()?;
        let worker_dir = run_dir.join(format!("w-{}-{}-{:08x}", me.pid, me.started, rand::random::<u32>()));
        fs::DirBuilder::new().mode(0o711).create(&worker_dir)?;
        if let Some((uid, gid)) = user {
            check_reach(&worker_dir, uid, gid)?;
        }
        if sandbox == SandboxMode::Off {
            tracing::warn!(
                "Chromium's sandbox is OFF by configuration: a page that breaks the browser has the rights of its user"
            );
        }
        let script = worker_dir.join("launch.sh");
        fs::write(&script, launch_script(&found.path, user)?)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o700))?;
        let flags = flags(found.kind, proxy, process::shm_size() < SHM_NEEDED, extra_flags);
        Ok(Self { found, worker_dir, script, user, sandbox, flags, counter: AtomicU32::new(0) })
    }

    /// Starts a browser, with or without eyes for pictures. Patient up to 20 s; on any failure nothing is left running.
    ///
    /// # Errors
    /// When Chromium does not come up; the text says why as far as it can be found out.
    pub async fn launch(&self, has_pictures: bool) -> anyhow::Result<Browser> {
        let mut last = None;
        for idle in TRANSPORT_IDLE {
            let began = Instant::now();
            match self.launch_once(idle, has_pictures).await {
                Ok(browser) => {
                    tracing::info!(
                        browser.pid = browser.pid,
                        duration_ms = began.elapsed().as_millis() as u64,
                        "browser started"
                    );
                    return Ok(browser);
                }
                Err(e) if e.is::<EarlyExit>() => return Err(self.diagnose().await),
                Err(e) => {
                    tracing::warn!(error = format!("{e:#}"), "browser did not start");
                    last = Some(e);
                }
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("the browser did not start")))
    }

    async fn launch_once(&self, idle: Duration, has_pictures: bool) -> anyhow::Result<Browser> {
        let dir = self.worker_dir.join(format!(
            "b{}-{}",
            self.counter.fetch_add(1, Ordering::Relaxed),
            rand::random::<u16>()
        ));
        fs::DirBuilder::new().mode(0o711).create(&dir)?;
        let home = dir.join("home");
        fs::DirBuilder::new().mode(0o700).create(&home)?;
        if let Some((uid, gid)) = self.user {
            chown(&home, Some(uid), Some(gid))?;
        }

        let (stop_tx, stop_rx) = mpsc::channel::<()>();
        let (ready_tx, mut ready_rx) = oneshot::channel();
        let (ended_tx, ended_rx) = oneshot::channel();
        let mut flags = self.flags.clone();
        if !has_pictures {
            flags.extend(BLIND_FLAGS.iter().map(|f| (*f).to_owned()));
        }
        let plan = Plan {
            script: self.script.clone(),
            headless_shell: self.found.kind == ChromiumKind::HeadlessShell,
            sandbox: self.sandbox,
            flags,
            dir: dir.clone(),
            home,
            idle,
        };
        std::thread::Builder::new().name("browser".into()).spawn(move || {
            own_browser(&plan, ready_tx, &stop_rx);
            remove_dir(&plan.dir);
            let _ = ended_tx.send(());
        })?;

        // The library waits 30 s for the address even when Chromium is already dead, so watch its pid.
        let deadline = Instant::now() + LAUNCH_LIMIT;
        let pid_file = dir.join("pid");
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        let started = loop {
            tokio::select! {
                started = &mut ready_rx => break started.context("the browser thread ended")??,
                _ = tick.tick() => {}
            }
            let pid = process::read_pid(&pid_file);
            let over = Instant::now() > deadline;
            if over {
                if let Some(pid) = pid {
                    process::kill_session(pid);
                }
                bail!("the browser did not start within {LAUNCH_LIMIT:?}");
            }
            if let Some(pid) = pid.filter(|pid| !process::is_alive(*pid)) {
                // Either the library has just given up on it and says so, or Chromium ended and the library
                // has not noticed. Then the thread follows within its 30 s, reaps and cleans up.
                if let Ok(started) = tokio::time::timeout(Duration::from_secs(1), &mut ready_rx).await {
                    break started.context("the browser thread ended")??;
                }
                process::kill_session(pid);
                return Err(EarlyExit.into());
            }
        };
        Ok(Browser { ws_url: started.ws_url, pid: started.pid, stop: Some(stop_tx), ended: Some(ended_rx) })
    }

    /// Starts Chromium once more for its error messages only.
    async fn diagnose(&self) -> anyhow::Error {
        let dir = self.worker_dir.join(format!("probe-{}", rand::random::<u32>()));
        let home = dir.join("home");
        let made = fs::DirBuilder::new().recursive(true).mode(0o711).create(&home).and_then(|()| match self.user {
            Some((uid, gid)) => chown(&home, Some(uid), Some(gid)),
            None => Ok(()),
        });
        let script = self.script.clone();
        let mut args = self.flags.clone();
        args.push(format!("--user-data-dir={}", home.join("profile").display()));
        if self.found.kind == ChromiumKind::HeadlessShell {
            args.push("--headless".into());
        }
        if self.sandbox == SandboxMode::Off {
            args.push("--no-sandbox".into());
        }
        args.extend(["--dump-dom".into(), "about:blank".into()]);
        let probe_dir = dir.clone();
        let output = tokio::task::spawn_blocking(move || {
            let child = Command::new(&script)
                .args(&args)
                .envs(script_env(&probe_dir, &home))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()?;
            let pid = child.id();
            let (done_tx, done_rx) = mpsc::channel::<()>();
            std::thread::spawn(move || {
                if done_rx.recv_timeout(Duration::from_secs(10)).is_err() {
                    process::kill_session(pid);
                }
            });
            let output = child.wait_with_output();
            let _ = done_tx.send(());
            process::kill_session(pid);
            output
        })
        .await;
        remove_dir(&dir);
        let text = match (made, output) {
            (Ok(()), Ok(Ok(output))) => String::from_utf8_lossy(&output.stderr).into_owned(),
            (Err(e), _) | (_, Ok(Err(e))) => e.to_string(),
            (_, Err(e)) => e.to_string(),
        };
        if ["No usable sandbox", "credentials.cc", "namespace", "setuid sandbox"].iter().any(|hint| text.contains(hint))
        {
            return anyhow::anyhow!(
                "Chromium's sandbox cannot start on this host (user namespaces are forbidden, often by a container's seccomp profile or \
                 kernel.apparmor_restrict_unprivileged_userns). Allow them, or switch the browser sandbox off in the configuration, knowing the risk"
            );
        }
        let tail: Vec<&str> = text.lines().rev().filter(|l| !l.contains("dbus")).take(3).collect();
        anyhow::anyhow!("{} ended at start: {}", self.found.path.display(), tail.join(" | "))
    }

    /// The directory of this worker, for checks.
    pub fn worker_dir(&self) -> &Path {
        &self.worker_dir
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // Browsers remove their own directories; one that still ends is left to its thread and, at worst, to
        // the next worker's clean-up.
        let _ = fs::remove_file(&self.script);
        let _ = fs::remove_dir(&self.worker_dir);
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the browser ended while it started")]
struct EarlyExit;

/// A running Chromium. Dropping it ends the process and everything it started.
#[derive(Debug)]
pub struct Browser {
    /// Full control of the browser: never leaves this process.
    pub ws_url: String,
    /// Main process; also its session and process group.
    pub pid: u32,
    stop: Option<mpsc::Sender<()>>,
    ended: Option<oneshot::Receiver<()>>,
}

impl Browser {
    /// Ends Chromium; returns when the process is reaped and the directory removed, at most after 10 s.
    pub async fn stop(mut self) {
        self.stop = None;
        if let Some(ended) = self.ended.take() {
            let _ = tokio::time::timeout(Duration::from_secs(10), ended).await;
        }
    }
}

struct Plan {
    script: PathBuf,
    headless_shell: bool,
    sandbox: SandboxMode,
    flags: Vec<String>,
    dir: PathBuf,
    home: PathBuf,
    idle: Duration,
}

struct Started {
    ws_url: String,
    pid: u32,
}

/// The life of the browser's thread. Returns when no process of it is left.
fn own_browser(plan: &Plan, ready: oneshot::Sender<anyhow::Result<Started>>, stop: &mpsc::Receiver<()>) {
    let options = LaunchOptions {
        path: Some(plan.script.clone()),
        headless: plan.headless_shell,
        sandbox: plan.sandbox == SandboxMode::Strict,
        // Chromium chooses a free port and says which.
        port: Some(0),
        user_data_dir: Some(plan.home.join("profile")),
        ignore_certificate_errors: false,
        disable_default_args: true,
        args: plan.flags.iter().map(OsStr::new).collect(),
        process_envs: Some(script_env(&plan.dir, &plan.home)),
        idle_browser_timeout: plan.idle,
        ..LaunchOptions::default()
    };
    let browser = match headless_chrome::Browser::new(options) {
        Ok(browser) => browser,
        Err(e) => {
            if let Some(pid) = process::read_pid(&plan.dir.join("pid")) {
                process::kill_session(pid);
            }
            let _ = ready.send(Err(e));
            return;
        }
    };
    let pid = browser.get_process_id().unwrap_or_default();
    let mut stopped = !wait_for_idle_transport(&browser, plan.idle, stop);
    let mut gone = ready.send(Ok(Started { ws_url: browser.get_ws_url(), pid })).is_err();
    while !stopped && !gone {
        stopped = !matches!(stop.recv_timeout(Duration::from_millis(250)), Err(mpsc::RecvTimeoutError::Timeout));
        gone = !process::is_alive(pid);
    }
    // Before the reap: until then the pid cannot belong to anybody else.
    process::kill_session(pid);
    drop(browser);
    process::kill_session_members(pid);
}

/// Waits until `headless_chrome`'s transport has ended, so that it does not attach to our pages.
/// `false` when asked to stop meanwhile.
fn wait_for_idle_transport(browser: &headless_chrome::Browser, idle: Duration, stop: &mpsc::Receiver<()>) -> bool {
    for _ in 0..20 {
        match stop.recv_timeout(idle + Duration::from_millis(20)) {
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            _ => return false,
        }
        // A call on an ended transport fails at once; on a living one it starts another idle period.
        if browser.get_version().is_err() {
            return true;
        }
    }
    tracing::warn!("the launch transport did not go idle; pages will cost more");
    true
}

fn script_env(dir: &Path, home: &Path) -> HashMap<String, String> {
    HashMap::from([
        ("WEIR_BROWSER_DIR".to_owned(), dir.display().to_string()),
        ("WEIR_BROWSER_HOME".to_owned(), home.display().to_string()),
    ])
}

/// The start script: records the pid, drops the environment (it holds the worker's secrets), makes a
/// session of its own, drops root, and asks the kernel to die with the thread that started it. The
/// order matters: a change of user clears the death signal, so it is set by a second `setpriv`.
fn launch_script(chromium: &Path, user: Option<(u32, u32)>) -> anyhow::Result<String> {
    let setpriv = tool("setpriv")?;
    let setsid = tool("setsid")?;
    let drop_root = user.map_or_else(String::new, |(uid, gid)| {
        format!("{setpriv} --reuid={uid} --regid={gid} --clear-groups --inh-caps=-all -- \\\n  ")
    });
    Ok(format!(
        "#!/bin/sh\n\
         # Starts one Chromium; written by the worker, removed with it.\n\
         echo $$ > \"$WEIR_BROWSER_DIR/pid\"\n\
         cd \"$WEIR_BROWSER_HOME\" || exit 1\n\
         exec /usr/bin/env -i PATH=/usr/bin:/bin LANG=C.UTF-8 HOME=\"$WEIR_BROWSER_HOME\" TMPDIR=\"$WEIR_BROWSER_HOME\" \\\n  \
         {setsid} {drop_root}{setpriv} --pdeathsig KILL -- \\\n  {chromium} \"$@\"\n",
        chromium = shell_quote(&chromium.to_string_lossy()),
    ))
}

fn tool(name: &str) -> anyhow::Result<String> {
    ["/usr/bin", "/bin", "/usr/local/bin"]
        .iter()
        .map(|dir| format!("{dir}/{name}"))
        .find(|path| Path::new(path).exists())
        .with_context(|| format!("{name} (util-linux) is needed to start Chromium safely and was not found"))
}

fn shell_quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Whether the unprivileged user can enter `dir`: a run directory below a closed home is a frequent mistake.
fn check_reach(dir: &Path, uid: u32, gid: u32) -> anyhow::Result<()> {
    let status = Command::new(tool("setpriv")?)
        .args([&format!("--reuid={uid}"), &format!("--regid={gid}"), "--clear-groups", "--", "/usr/bin/test", "-x"])
        .arg(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        bail!(
            "the browser's user {uid} cannot enter {}: choose a run directory whose parents are open to it (mode 711)",
            dir.display()
        );
    }
    Ok(())
}

/// Ends the browsers of workers that are gone and removes their directories. Errors are logged, not
/// returned: a leftover must not keep a worker from starting.
fn remove_leftovers(run_dir: &Path) {
    let Ok(entries) = fs::read_dir(run_dir) else { return };
    for entry in entries.flatten() {
        let Some(owner) = entry.file_name().to_str().and_then(owner_of) else { continue };
        if owner.is_alive() {
            continue;
        }
        let dir = entry.path();
        let killed = process::kill_users_of(&dir);
        remove_dir(&dir);
        tracing::info!(worker.pid = owner.pid, processes = killed, "removed the browsers of a dead worker");
    }
}

fn owner_of(name: &str) -> Option<process::Identity> {
    process::Identity::from_name(name.strip_prefix("w-")?)
}

/// Removes a directory against dying children that still write into it.
fn remove_dir(dir: &Path) {
    for attempt in 0..50 {
        match fs::remove_dir_all(dir) {
            Ok(()) => return,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return,
            Err(e) if attempt == 49 => tracing::warn!(error = %e, "a browser directory could not be removed"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_name_tells_its_owner_and_other_names_tell_nothing() {
        let owner = owner_of("w-12-3456-00ab").expect("a worker directory");
        assert_eq!((owner.pid, owner.started), (12, 3456));
        assert!(owner_of("w-12").is_none());
        assert!(owner_of("profiles").is_none());
    }

    #[test]
    fn the_death_signal_is_set_after_root_is_dropped() {
        let script = launch_script(Path::new("/opt/it's/chrome"), Some((65_534, 65_534))).expect("tools");
        let user = script.find("--reuid=65534").expect("user change");
        let signal = script.find("--pdeathsig KILL").expect("death signal");
        assert!(user < signal);
        assert!(script.contains(r"'/opt/it'\''s/chrome'"));
        assert!(script.contains("env -i"));
    }

    #[test]
    fn directories_of_dead_workers_go_and_those_of_living_ones_stay() {
        let root = std::env::temp_dir().join(format!("weir-leftovers-{}", rand::random::<u32>()));
        let me = process::Identity::of_self().expect("proc");
        let mine = root.join(format!("w-{}-{}", me.pid, me.started));
        let stale = root.join(format!("w-{}-{}", me.pid, me.started + 1));
        for dir in [&mine, &stale] {
            fs::create_dir_all(dir.join("b0/home")).expect("created");
        }
        remove_leftovers(&root);
        assert!(mine.exists());
        assert!(!stale.exists());
        remove_dir(&root);
    }
}

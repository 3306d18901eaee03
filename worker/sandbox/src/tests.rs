//! Real boxes on this machine. Skipped, with a word, where bubblewrap or Chromium is not installed.

use std::collections::HashMap;
use std::fs;
use std::io::BufRead as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use headless_chrome::protocol::cdp::{Page, Runtime, Target};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};
use weir_browser::cdp::Cdp;
use weir_fetch::{EgressOptions, EgressProxy, HostFilter};
use weir_shared::clock::{self, Stopwatch};
use weir_shared::guard::AddressGuard;
use weir_shared::{blocking, random};

use super::*;

/// The worker's binary: the test's own does not know the box's argument.
fn program() -> PathBuf {
    let me = std::env::current_exe().unwrap();
    let program = me.ancestors().nth(2).unwrap().join("weir-worker");
    assert!(program.exists(), "{} is missing: build it with `cargo build -p weir-worker`", program.display());
    program
}

fn is_possible() -> bool {
    let is_possible = Path::new("/usr/bin/bwrap").exists() && find_chromium(None).is_some();
    if !is_possible {
        eprintln!("skipped: bubblewrap or Chromium is not installed");
    }
    is_possible
}

struct World {
    sandbox: Sandbox,
    egress: EgressProxy,
    run_dir: PathBuf,
    /// A site of this machine that the proxy lets through as `site.test`.
    site: u16,
}

impl World {
    /// `None`: this machine lacks the programs.
    async fn new() -> Option<Self> {
        Self::with(SandboxMode::Strict).await
    }

    async fn with(mode: SandboxMode) -> Option<Self> {
        if !is_possible() {
            return None;
        }
        let run_dir = std::env::temp_dir().join(format!("weir-box-{}", random::hex::<4>()));
        Some(Self::at(run_dir, mode).await)
    }

    async fn at(run_dir: PathBuf, mode: SandboxMode) -> Self {
        let host = |name: &str, ip: &str| (name.to_owned(), ip.parse::<IpAddr>().unwrap());
        let hosts = HashMap::from([host("site.test", "127.0.0.1"), host("inner.test", "10.0.0.1")]);
        let guard = AddressGuard::new(vec!["127.0.0.1/32".parse().unwrap()], hosts);
        let egress = EgressProxy::start_with(guard, EgressOptions::default()).await.unwrap();
        let config = SandboxConfig {
            run_dirs: vec![run_dir.clone()],
            mode,
            egress: egress.door(),
            ad_free: egress.door(),
            upstreams: Vec::new(),
            allow_ports: Vec::new(),
            chromium: None,
            program: Some(program()),
        };
        let sandbox = Sandbox::prepare(config).unwrap();
        Self { sandbox, egress, run_dir, site: site().await }
    }

    fn dir(&self) -> SessionDir {
        self.sandbox.session_dir(&format!("s-{}", random::hex::<4>())).unwrap()
    }

    /// Runs a Python program to its end, with two seconds' worth of output.
    async fn python(&self, dir: &SessionDir, text: &str) -> (Option<i32>, String, String) {
        let spec = CodeSpec { program: ["python3", "-I", "-c", text].map(str::to_owned).into(), ..CodeSpec::default() };
        let mut code = self.sandbox.start_code(dir, spec).await.unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        let read = async { tokio::join!(code.stdout.read_to_string(&mut out), code.stderr.read_to_string(&mut err)) };
        tokio::time::timeout(LONG, read).await.expect("an end").0.unwrap();
        (code.exited().await, out, err)
    }

    async fn close(self, dirs: impl IntoIterator<Item = SessionDir>) {
        for dir in dirs {
            let uid = dir.owner().0;
            dir.remove().await;
            if process::is_root() {
                assert_eq!(processes_of(uid), Vec::<u32>::new());
            }
        }
        let groups: Vec<PathBuf> = self.sandbox.cgroups.dirs().map(Path::to_owned).collect();
        for group in &groups {
            let boxes = fs::read_dir(group).into_iter().flatten().flatten().filter(|e| e.path().is_dir()).count();
            assert_eq!(boxes, 0, "cgroups are left in {}", group.display());
        }
        drop(self.sandbox);
        assert!(groups.iter().all(|group| !group.exists()));
        assert_eq!(fs::read_dir(&self.run_dir).unwrap().count(), 0);
        fs::remove_dir(&self.run_dir).unwrap();
        drop(self.egress);
    }
}

/// Answers every request with a small page.
async fn site() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 8192];
                let _ = stream.read(&mut request).await;
                let body = "<title>Site</title><h1>hello from the site</h1>";
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    port
}

fn processes_of(uid: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| process::user_of(*pid) == Some(uid)).collect()
}

/// Living processes with this path in their arguments, this one apart.
fn processes_that_name(path: &Path) -> Vec<u32> {
    let path = path.to_str().unwrap();
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let names = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.windows(path.len()).any(|part| part == path.as_bytes()))
    };
    pids.filter(|pid| *pid != std::process::id() && names(pid)).collect()
}

/// For what comes soon, on a machine on which every process may stand still for seconds.
const LONG: Duration = Duration::from_secs(60);

async fn until<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let end = clock::deadline(LONG);
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(clock::instant() < end, "waited for: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn read_all<R: AsyncRead + Unpin>(mut from: R) -> String {
    let mut text = String::new();
    tokio::time::timeout(LONG, from.read_to_string(&mut text)).await.expect("an end").unwrap();
    text
}

const LOOK_AROUND: &str = r#"
import json, os, socket, sys
def attempt(action):
    try: return str(action())
    except Exception as e: return type(e).__name__ + ": " + str(e)
def tcp(host, port):
    s = socket.create_connection((host, port), timeout=2)
    # A port in the ephemeral range can be answered by the asking socket itself.
    return "self" if s.getsockname() == s.getpeername() else "CONNECTED"
status = dict(l.split(":\t", 1) for l in open("/proc/self/status").read().splitlines() if ":\t" in l)
print(json.dumps({
    "uid": [os.getuid(), os.geteuid(), os.getgid()], "groups": os.getgroups(),
    "caps": [status[c] for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
    "nnp": status["NoNewPrivs"], "seccomp": status["Seccomp"],
    "env": dict(os.environ), "root": sorted(os.listdir("/")), "etc": sorted(os.listdir("/etc")),
    "pids": sorted(int(p) for p in os.listdir("/proc") if p.isdigit()), "me": os.getpid(),
    "fds": sorted(int(f) for f in os.listdir("/proc/self/fd")),
    "passwd": open("/etc/passwd").read(), "hostname": socket.gethostname(),
    "shadow": attempt(lambda: open("/etc/shadow").read()),
    "first_env": attempt(lambda: open("/proc/1/environ").read()),
    "first_fds": attempt(lambda: os.listdir("/proc/1/fd")),
    "cmdline": attempt(lambda: open("/proc/1/cmdline").read()),
    "home": os.listdir(os.environ["HOME"]), "cwd": os.getcwd(),
    "write": {p: attempt(lambda: open(p + "/x", "w").close()) for p in ("/", "/usr", "/etc", "/dev", "/proc/sys/kernel", "/tmp", "/dev/shm", os.environ["HOME"])},
    "interfaces": [n for _, n in socket.if_nameindex()],
    "world": attempt(lambda: tcp("93.184.216.34", 80)), "host": attempt(lambda: tcp("127.0.0.1", SITE)),
    "dns": attempt(lambda: socket.gethostbyname("example.com")),
    "abstract": open("/proc/net/unix").read().count("@"),
    "kill": attempt(lambda: os.kill(1, 9)),
}))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn code_sees_nothing_of_the_machine() {
    let Some(world) = World::new().await else { return };
    let dir = world.dir();
    fs::write(dir.io.join("secret"), "x").unwrap();
    let (code, out, err) = world.python(&dir, &LOOK_AROUND.replace("SITE", &world.site.to_string())).await;
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let seen: Value = serde_json::from_str(&out).unwrap();
    let (uid, gid) = dir.owner();
    assert_eq!(seen["uid"], json!([uid, uid, gid]));
    assert!(uid != 0 || !process::is_root());
    assert!(seen["groups"].as_array().unwrap().iter().all(|g| *g == gid), "{}", seen["groups"]);
    assert_eq!(seen["caps"], json!(vec!["0000000000000000"; 5]));
    assert_eq!((seen["nnp"].as_str(), seen["seccomp"].as_str()), (Some("1"), Some("2")));
    let names: Vec<&str> = seen["env"].as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["HOME", "HTTPS_PROXY", "HTTP_PROXY", "LANG", "NO_PROXY", "PATH", "TMPDIR", "USER"];
    for name in names {
        assert!(expected.contains(&name.to_uppercase().as_str()) || name == "LC_CTYPE", "{name}");
    }
    for gone in ["root", "work", "var/lib", "mnt", "run", "sys", "boot", "srv", "media"] {
        assert!(!seen["root"].as_array().unwrap().contains(&json!(gone)), "{}", seen["root"]);
    }
    for gone in ["shadow", "ssh", "machine-id", "resolv.conf", "environment", "hostname"] {
        assert!(!seen["etc"].as_array().unwrap().contains(&json!(gone)), "{}", seen["etc"]);
    }
    assert_eq!(seen["pids"], json!([1, seen["me"]]));
    // 4 is the listing itself.
    assert_eq!(seen["fds"], json!([0, 1, 2, 3, 4]));
    assert_eq!(seen["passwd"], json!(format!("user:x:{uid}:{gid}::/home/user:/bin/bash\n")));
    assert_eq!(seen["hostname"], "weir");
    assert!(seen["shadow"].as_str().unwrap().starts_with("FileNotFound"), "{}", seen["shadow"]);
    for closed in ["first_env", "first_fds"] {
        assert!(seen[closed].as_str().unwrap().starts_with("PermissionError"), "{}", seen[closed]);
    }
    assert_eq!(seen["cmdline"], "/weir-box\0__box\0");
    assert_eq!((seen["home"].clone(), seen["cwd"].as_str()), (json!([]), Some("/home/user")));
    for (place, outcome) in seen["write"].as_object().unwrap() {
        let may = ["/tmp", "/dev/shm", "/home/user"].contains(&place.as_str());
        assert_eq!(outcome == "None", may, "{place}: {outcome}");
    }
    assert_eq!(seen["interfaces"], json!(["lo"]));
    for target in ["world", "host", "dns"] {
        assert!(seen[target].as_str().unwrap().contains("rror"), "{target}: {}", seen[target]);
    }
    assert_eq!(seen["abstract"], 0);
    world.close([dir]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_network_is_the_proxy_and_nothing_else() {
    let Some(world) = World::new().await else { return };
    let dir = world.dir();
    let text = format!(
        r#"
import urllib.request, urllib.error
for url in ["http://site.test:{0}/", "http://10.0.0.1/", "http://inner.test/", "http://169.254.169.254/latest", "http://[::1]:{0}/", "http://2130706433:1/"]:
    try: print(urllib.request.urlopen(url, timeout=5).read().decode())
    except urllib.error.HTTPError as e: print(e.code, e.headers.get("x-weir-egress"))
"#,
        world.site
    );
    let (code, out, err) = world.python(&dir, &text).await;
    assert_eq!(code, Some(0), "{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].contains("hello from the site"), "{out}");
    // The last is the proxy's own machine by another spelling, on a port where nothing is.
    assert_eq!(lines[1..5], ["403 blocked"; 4], "{out}");
    assert!(lines[5].starts_with("403") || lines[5].starts_with("502"), "{out}");
    world.close([dir]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_has_its_control_socket_its_pipes_and_the_sessions_browser() {
    let Some(world) = World::new().await else { return };
    let dir = world.dir();
    let socket = dir.io.join("cdp.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = [0; 4];
        stream.read_exact(&mut text).await.unwrap();
        stream.write_all(b"pong").await.unwrap();
    });
    let asset = dir.root.join("asset.txt");
    fs::write(&asset, "an asset").unwrap();
    let text = r#"
import os, socket, sys
control = socket.socket(fileno=3)
ask = control.recv(100)
cdp = socket.create_connection(("127.0.0.1", 9222)); cdp.sendall(b"ping")
control.sendall(ask + b" " + cdp.recv(4) + b" " + os.environ["WEIR_CDP"].encode() + b" " + os.environ["MINE"].encode())
print(open("/opt/asset.txt").read()); print("problem", file=sys.stderr)
open("left", "w").write("file of one box")
sys.exit(7)
"#;
    let spec = CodeSpec {
        program: ["python3", "-I", "-c", text].map(str::to_owned).into(),
        env: vec![("MINE".into(), "own".into())],
        binds: vec![(asset, "/opt/asset.txt".into())],
        cdp: Some(socket),
        ..CodeSpec::default()
    };
    let mut code = world.sandbox.start_code(&dir, spec).await.unwrap();
    code.control.write_all(b"hello").await.unwrap();
    assert_eq!(read_all(&mut code.control).await, "hello pong http://127.0.0.1:9222 own");
    assert_eq!(
        (read_all(&mut code.stdout).await, read_all(&mut code.stderr).await),
        ("an asset\n".into(), "problem\n".into())
    );
    assert_eq!(code.exited().await, Some(7));
    // The session's files are those of all its boxes.
    assert_eq!(fs::read_to_string(dir.work.join("left")).unwrap(), "file of one box");
    let (_, out, _) = world.python(&dir, "print(open('left').read())").await;
    assert_eq!(out, "file of one box\n");
    world.close([dir]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_leads_out_of_boxes_is_refused() {
    let Some(world) = World::new().await else { return };
    let dir = world.dir();
    let text = r#"
import ctypes, errno, os, platform, socket, subprocess
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    ctypes.set_errno(0)
    return errno.errorcode.get(ctypes.get_errno()) if libc.syscall(number, *args) == -1 else "DONE"
assert platform.machine() == "x86_64"
calls = {"ptrace": (101, 0, 0, 0, 0), "mount": (165, 0, 0, 0, 0, 0), "unshare": (272, 0x10000000), "setns": (308, 0, 0),
    "bpf": (321, 0, 0, 0), "keyctl": (250, 0, 0), "io_uring_setup": (425, 1, 0), "userfaultfd": (323, 0),
    "perf_event_open": (298, 0, 0, 0, 0, 0), "process_vm_readv": (310, 1, 0, 0, 0, 0, 0), "chroot": (161, b"/tmp"),
    "open_by_handle_at": (304, 0, 0, 0), "clone_newuser": (56, 0x10000011, 0, 0, 0, 0), "tiocsti": (16, 0, 0x5412, 0)}
for name, args in calls.items(): print(name, call(*args))
print("clone3", call(435, 0, 0))
for family in (40, 38, 17, 30):
    try: socket.socket(family, socket.SOCK_STREAM); print(family, "DONE")
    except OSError as e: print(family, errno.errorcode[e.errno])
try:
    pid = os.fork()
    if pid == 0:
        libc.syscall(0x40000000 + 39)
        os._exit(0)
    print("x32", os.waitpid(pid, 0)[1])
except OSError as e: print(e)
print(subprocess.run(["unshare", "-Ur", "true"], capture_output=True).returncode != 0)
"#;
    let (code, out, err) = world.python(&dir, text).await;
    assert_eq!(code, Some(0), "{err}");
    for line in out.lines() {
        let (name, outcome) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "clone3" => assert_eq!(outcome, "ENOSYS"),
            "x32" => assert_ne!(outcome, "0", "the call was let through"),
            "True" => {}
            _ => assert_eq!(outcome, "EPERM", "{line}"),
        }
    }
    assert_eq!(out.lines().count(), 21, "{out}");
    world.close([dir]).await;
}

/// How nice each process of a browser's box is.
fn niceness_in(first: u32) -> Vec<i32> {
    process::worked_in(first).into_iter().filter_map(|of_box| niceness_of(of_box.pid)).collect()
}

fn niceness_of(pid: u32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(16)?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_runs_steps_back_behind_the_worker_and_the_pages_of_others() {
    let Some(world) = World::new().await else { return };
    let dirs = [world.dir(), world.dir()];
    let own = niceness_of(std::process::id()).unwrap();
    let behind = (own + i32::from(SESSION_NICENESS)).min(19);
    let purpose = Purpose::Pages { has_pictures: false, own_exits: 0 };
    let of_pages = BrowserSpec { purpose, exit: None, ..BrowserSpec::session() };
    let session = world.sandbox.start_browser(&dirs[0], BrowserSpec::session()).await.unwrap();
    let pages = world.sandbox.start_browser(&dirs[1], of_pages).await.unwrap();
    // Processes and threads may be nicer than where they come from, and never less so.
    let (first, found) = (session.pid().unwrap(), niceness_in(session.pid().unwrap()));
    assert!(found.len() > 2 && found.iter().all(|nice| *nice >= behind), "{found:?} and {own}");
    let found = niceness_in(pages.pid().unwrap());
    assert_eq!(found.iter().min(), Some(&own), "{found:?}");
    let (_, out, err) = world.python(&dirs[0], "import os; print(os.nice(0))").await;
    assert_eq!(out.trim(), behind.to_string(), "{err}");

    // Where there are groups to share out the processor, the boxes have their parts of it as a whole.
    let boxes = world.sandbox.cgroups.dirs().flat_map(|dir| fs::read_dir(dir).into_iter().flatten().flatten());
    let nice =
        |of_box: fs::DirEntry| fs::read_to_string(of_box.path().join("cpu.weight.nice")).ok()?.trim().parse().ok();
    let mut parts: Vec<i32> = boxes.filter_map(nice).collect();
    parts.sort_unstable();
    assert!(parts.is_empty() || parts == [0, SESSION_NICENESS.into()], "{parts:?}");

    // Where the kernel compares sessions, the box as a whole.
    let group = || fs::read_to_string(format!("/proc/{first}/autogroup"));
    if group().is_ok_and(|text| text.contains("nice")) {
        let told = async {
            while !group().unwrap().trim_end().ends_with(&format!("nice {SESSION_NICENESS}")) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LONG, told).await.expect("its group steps back, too");
    }
    session.kill().await;
    pages.kill().await;
    drop((session, pages));
    world.close(dirs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bombs_go_off_inside() {
    let Some(world) = World::new().await else { return };
    let dir = world.dir();
    let text = r#"
import os, resource, subprocess, sys, time
forks = 0
try:
    while forks < 500:
        if os.fork() == 0: time.sleep(60); os._exit(0)
        forks += 1
except OSError: pass
print("forks", forks, flush=True)
subprocess.run(["kill", "-9", "-1"]) if False else os.system("")
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.kill(-1, signal.SIGTERM); time.sleep(0.3)
while True:
    try: os.waitpid(-1, os.WNOHANG)
    except ChildProcessError: break
hog = subprocess.run([sys.executable, "-c", "b = []\nfor i in range(1400): b.append(bytearray(b'x') * (1 << 20))\nprint('TOO MUCH')"], capture_output=True, text=True)
print("memory", hog.returncode != 0, hog.stdout, flush=True)
for place, limit in (("/tmp", 300), ("/dev/shm", 100), ("/home/user", 600)):
    written = 0
    try:
        with open(place + "/big", "wb", buffering=0) as f:
            while written < 1024: f.write(b"x" * (1 << 20)); written += 1
    except (OSError, Exception) as e: pass
    print(place, written < limit, flush=True)
    os.unlink(place + "/big")
print("alive")
"#;
    let began = Stopwatch::start();
    let (code, out, err) = world.python(&dir, text).await;
    eprintln!("bombs: {:?}", began.elapsed());
    assert_eq!(code, Some(0), "{out} {err}");
    let lines: Vec<&str> = out.lines().collect();
    let forks: u32 = lines[0].strip_prefix("forks ").unwrap().parse().unwrap();
    assert!((50..96).contains(&forks), "{forks}");
    assert_eq!(lines[1..], ["memory True ", "/tmp True", "/dev/shm True", "/home/user True", "alive"], "{err}");
    world.close([dir]).await;
}

const HUNGRY: &str = r#"
import ctypes, errno, os, signal, time
libc = ctypes.CDLL(None, use_errno=True)
print("memfd", errno.errorcode.get(ctypes.get_errno()) if libc.syscall(319, b"x", 0) == -1 else "DONE")
children = []
for n in range(5):
    pid = os.fork()
    if pid == 0:
        b = bytearray(b"x") * (60 << 20)
        time.sleep(15)
        os._exit(0)
    children.append(pid)
pid, status = os.wait()
print("killed", os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, flush=True)
for pid in children:
    try: os.kill(pid, signal.SIGKILL)
    except ProcessLookupError: pass
"#;

/// Each of its processes is within the bound, all together are not; then one is not that may reserve as much.
#[tokio::test(flavor = "multi_thread")]
async fn without_cgroups_a_watcher_bounds_the_box_as_a_whole() {
    let Some(mut world) = World::new().await else { return };
    world.sandbox.cgroups = Cgroups::without();
    assert_eq!(world.sandbox.cgroups.kind(), LimitsKind::Watched);
    let dir = world.dir();
    let limits = CodeLimits { memory: 160 << 20, ..CodeLimits::default() };
    let program: Vec<String> = ["python3", "-I", "-c", HUNGRY].map(str::to_owned).into();
    let mut code = world.sandbox.start_code(&dir, CodeSpec { program, limits, ..CodeSpec::default() }).await.unwrap();
    assert_eq!(read_all(&mut code.stdout).await, "memfd EPERM\nkilled True\n");
    assert_eq!(code.exited().await, Some(0), "the box itself goes on");
    let text = "import mmap, time\nroom = mmap.mmap(-1, 200 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n\
        print('reserved', len(room), flush=True)\n\
        b = b'x' * (200 << 20); time.sleep(15); print('TOO MUCH')";
    let program: Vec<String> = ["python3", "-I", "-c", text].map(str::to_owned).into();
    let mut code = world.sandbox.start_code(&dir, CodeSpec { program, limits, ..CodeSpec::default() }).await.unwrap();
    assert_eq!(read_all(&mut code.stdout).await, "reserved 209715200\n");
    world.close([dir]).await;
}

/// On a busy machine a program may be over before its box is looked at for the first time.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_ends_before_anybody_watches_has_run() {
    let Some(mut world) = World::new().await else { return };
    world.sandbox.cgroups = Cgroups::without();
    let (dir, sandbox) = (world.dir(), &world.sandbox);
    let run = async || {
        let spec = CodeSpec { program: vec!["true".into()], ..CodeSpec::default() };
        sandbox.start_code(&dir, spec).await.unwrap().exited().await
    };
    for _ in 0..20 {
        let codes: [_; 8] = tokio::join!(run(), run(), run(), run(), run(), run(), run(), run()).into();
        assert_eq!(codes, [Some(0); 8]);
    }
    world.close([dir]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_takes_no_sessions_where_boxes_cannot_be_bounded_and_degraded_does() {
    let Some(mut world) = World::new().await else { return };
    world.sandbox.cgroups = Cgroups::without_watcher();
    let why = world.sandbox.probe().await.unwrap_err().to_string();
    assert!(why.contains("WEIR_SANDBOX=degraded") && why.contains("Delegate=yes"), "{why}");
    world.sandbox.config.mode = SandboxMode::Degraded;
    world.sandbox.probe().await.unwrap();
    world.close([]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_without_cgroups() {
    let Some(mut world) = World::new().await else { return };
    world.sandbox.cgroups = Cgroups::without();
    let dir = world.dir();
    // What is only reserved stays within the bound of what is used, whenever that is looked at.
    let text = r#"
import mmap, os, time
forks = 0
try:
    while forks < 500:
        if os.fork() == 0: time.sleep(60); os._exit(0)
        forks += 1
except OSError: pass
room = mmap.mmap(-1, 700 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
try: b = bytearray(1400 << 20); print("TOO MUCH")
except MemoryError: print("bounded", forks < 96)
"#;
    let (code, out, err) = world.python(&dir, text).await;
    assert_eq!((code, out.as_str()), (Some(0), "bounded True\n"), "{err}");
    let node =
        CodeSpec { program: ["node", "-e", "console.log(1 + 1)"].map(str::to_owned).into(), ..CodeSpec::default() };
    if Path::new("/usr/bin/node").exists() {
        let mut code = world.sandbox.start_code(&dir, node).await.unwrap();
        assert_eq!(read_all(&mut code.stdout).await, "2\n");
    }
    // Chromium lives within them.
    let browser = world.sandbox.start_browser(&dir, BrowserSpec::session()).await.unwrap();
    let page = Tab::open(&browser, &format!("http://site.test:{}/", world.site)).await;
    assert_eq!(page.text().await, "hello from the site");
    assert!(browser.memory().await > 20 << 20);
    browser.kill().await;
    world.close([dir]).await;
}

const DAEMON: &str = r#"
import os, signal, sys, time
for n in range(5):
    if os.fork() == 0:
        os.setsid()
        for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(s, signal.SIG_IGN)
        if os.fork() == 0:
            while True: time.sleep(0.01)
        os._exit(0)
print("ready", flush=True)
time.sleep(100)
"#;

async fn started(world: &World, dir: &SessionDir) -> CodeBox {
    let spec = CodeSpec { program: ["python3", "-I", "-c", DAEMON].map(str::to_owned).into(), ..CodeSpec::default() };
    let mut code = world.sandbox.start_code(dir, spec).await.unwrap();
    let mut text = [0; 6];
    tokio::time::timeout(LONG, code.stdout.read_exact(&mut text)).await.expect("ready").unwrap();
    code
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_box_leaves_nothing() {
    let Some(world) = World::new().await else { return };
    let (one, two) = (world.dir(), world.dir());
    let killed = started(&world, &one).await;
    let other = started(&world, &two).await;
    let began = Stopwatch::start();
    killed.kill().await;
    eprintln!("killed in {:?}", began.elapsed());
    // What runs in it would go on for much longer, and listens to nobody.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!((killed.exited().await, killed.exited().await), (None, None));
    if process::is_root() {
        assert_eq!(processes_of(one.owner().0), Vec::<u32>::new());
        assert!(processes_of(two.owner().0).len() > 5, "the other session's box is alive");
    }
    // Dropping is enough.
    let uid = two.owner().0;
    let exited = other.running.pid().unwrap();
    drop(other);
    until("the dropped box to end", || (!process::is_alive(exited)).then_some(())).await;
    if process::is_root() {
        until("its processes to end", || processes_of(uid).is_empty().then_some(())).await;
    }
    until("its cgroup to go", || {
        world
            .sandbox
            .cgroups
            .dirs()
            .all(|d| fs::read_dir(d).unwrap().flatten().all(|e| !e.path().is_dir()))
            .then_some(())
    })
    .await;
    world.close([one, two]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bubblewrap_killed_from_outside_takes_the_box_along() {
    let Some(world) = World::new().await else { return };
    let dir = world.dir();
    let code = started(&world, &dir).await;
    let first = code.running.pid().unwrap();
    let stat = fs::read_to_string(format!("/proc/{first}/stat")).unwrap();
    let outer: u32 = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap();
    process::kill(outer);
    assert_eq!(tokio::time::timeout(LONG, code.exited()).await.expect("an end"), None);
    assert!(!Path::new(&format!("/proc/{first}")).exists(), "not even a zombie");
    world.close([dir]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_box_that_nobody_waits_for_any_more_leaves_nothing() {
    let Some(world) = World::new().await else { return };
    let mut dirs = Vec::new();
    // The start takes 10 to 50 ms: it is given up at each of its steps.
    for step in 0..100 {
        let dir = world.dir();
        let spec = CodeSpec { program: vec!["/bin/true".to_owned()], ..CodeSpec::default() };
        let start = world.sandbox.start_code(&dir, spec);
        let _ = tokio::time::timeout(Duration::from_micros(250 * step), start).await;
        dirs.push(dir);
    }
    let left = || processes_that_name(&world.run_dir);
    until("all of them to be gone", || left().is_empty().then_some(())).await;
    world.close(dirs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_closes_leaves_nothing_whoever_still_holds_it() {
    let Some(world) = World::new().await else { return };
    let groups: Vec<PathBuf> = world.sandbox.cgroups.dirs().map(Path::to_owned).collect();
    let (programs, writing) = world.sandbox.programs().unwrap();
    let write = blocking::run(move || {
        let _writing = writing;
        std::thread::sleep(Duration::from_millis(50));
        fs::create_dir(&programs).unwrap();
        fs::write(programs.join("runner.py"), "pass").unwrap();
    });
    world.sandbox.close(LONG).await;
    write.await.unwrap();
    assert!(world.sandbox.programs().is_none(), "nothing is written any more");
    assert_eq!(fs::read_dir(&world.run_dir).unwrap().count(), 0);
    assert!(groups.iter().all(|group| !group.exists()), "{groups:?}");
    world.close([]).await;
}

/// Not a test by itself: the worker that is killed while it starts one box after the other.
#[tokio::test(flavor = "multi_thread")]
async fn worker_to_be_killed_at_starts() {
    let Ok(run_dir) = std::env::var("WEIR_TEST_BOX_STARTER") else { return };
    let world = World::at(PathBuf::from(&run_dir), SandboxMode::Strict).await;
    println!("starting");
    loop {
        let dir = world.dir();
        let spec = CodeSpec { program: vec!["/bin/true".to_owned()], ..CodeSpec::default() };
        drop(world.sandbox.start_code(&dir, spec).await);
        dir.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_while_it_starts_boxes_leaves_nothing() {
    if !is_possible() {
        return;
    }
    let run_dir = std::env::temp_dir().join(format!("weir-box-{}", random::hex::<4>()));
    for step in 0..20 {
        let mut worker = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::worker_to_be_killed_at_starts", "--nocapture"])
            .env("WEIR_TEST_BOX_STARTER", &run_dir)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufReader::new(worker.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("starting")));
        tokio::time::sleep(Duration::from_micros(1_500 * step)).await;
        worker.kill().unwrap();
        worker.wait().unwrap();
        until("its boxes to end", || processes_that_name(&run_dir).is_empty().then_some(())).await;
    }
    World::at(run_dir, SandboxMode::Strict).await.close([]).await;
}

/// Not a test by itself: the worker that `a_killed_worker_leaves_nothing` kills.
#[tokio::test(flavor = "multi_thread")]
async fn worker_to_be_killed() {
    let Ok(run_dir) = std::env::var("WEIR_TEST_BOX_WORKER") else { return };
    let mode = if std::env::var("WEIR_TEST_BOX_MODE").as_deref() == Ok("off") {
        SandboxMode::Off
    } else {
        SandboxMode::Strict
    };
    let world = World::at(PathBuf::from(&run_dir), mode).await;
    let dir = world.dir();
    let _code = started(&world, &dir).await;
    let _browser = world.sandbox.start_browser(&dir, BrowserSpec::session()).await.unwrap();
    let groups: Vec<&Path> = world.sandbox.cgroups.dirs().collect();
    fs::write(Path::new(&run_dir).join("ready.part"), json!({ "uid": dir.owner().0, "groups": groups }).to_string())
        .unwrap();
    fs::rename(Path::new(&run_dir).join("ready.part"), Path::new(&run_dir).join("ready")).unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
}

async fn kill_a_worker(mode: &str) {
    let run_dir = std::env::temp_dir().join(format!("weir-box-{}", random::hex::<4>()));
    let mut worker = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::worker_to_be_killed", "--nocapture"])
        .env("WEIR_TEST_BOX_WORKER", &run_dir)
        .env("WEIR_TEST_BOX_MODE", mode)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let end = clock::deadline(2 * LONG);
    while !run_dir.join("ready").exists() {
        assert!(clock::instant() < end && worker.try_wait().unwrap().is_none(), "the worker did not come up");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let told: Value = serde_json::from_str(&fs::read_to_string(run_dir.join("ready")).unwrap()).unwrap();
    fs::remove_file(run_dir.join("ready")).unwrap();
    let uid = told["uid"].as_u64().unwrap() as u32;
    if process::is_root() {
        assert!(processes_of(uid).len() > 10);
    }
    worker.kill().unwrap();
    worker.wait().unwrap();
    if process::is_root() {
        // Dead ones may come to this process, which an earlier test made the parent of orphans.
        let alive = || processes_of(uid).into_iter().any(process::is_alive);
        until("the dead worker's processes to end", || (!alive()).then_some(())).await;
    }
    // The next worker removes the rest.
    let world = World::at(run_dir.clone(), SandboxMode::Strict).await;
    assert_eq!(fs::read_dir(&run_dir).unwrap().count(), 1, "only its own directory is left");
    for group in told["groups"].as_array().unwrap() {
        assert!(!Path::new(group.as_str().unwrap()).exists(), "{group}");
    }
    world.close([]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_leaves_nothing() {
    if is_possible() {
        kill_a_worker("strict").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_leaves_nothing_without_boxes_either() {
    if is_possible() {
        kill_a_worker("off").await;
    }
}

/// A page of a browser under test.
struct Tab {
    cdp: Cdp,
    session: String,
}

impl Tab {
    async fn open(browser: &BrowserBox, url: &str) -> Self {
        let cdp = Cdp::connect_over(browser.connect().await.unwrap(), browser.ws_path()).await.unwrap();
        let by = clock::deadline(LONG);
        let target =
            cdp.call::<Target::CreateTarget>(None, json!({ "url": "about:blank" }), by).await.unwrap().target_id;
        let attach = json!({ "targetId": target, "flatten": true });
        let session = cdp.call::<Target::AttachToTarget>(None, attach, by).await.unwrap().session_id;
        let tab = Self { cdp, session };
        tab.go(url).await;
        tab
    }

    async fn go(&self, url: &str) -> Option<String> {
        let by = clock::deadline(LONG);
        let gone = self.cdp.call::<Page::Navigate>(Some(&self.session), json!({ "url": url }), by).await.unwrap();
        for _ in 0..6_000 {
            if self.value("document.readyState").await == "complete"
                && self.value("location.href").await != "about:blank"
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        gone.error_text
    }

    async fn value(&self, expression: &str) -> Value {
        let by = clock::deadline(LONG);
        let ask = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.cdp.call::<Runtime::Evaluate>(Some(&self.session), ask, by).await.unwrap();
        answer.result.value.unwrap_or(Value::Null)
    }

    async fn text(&self) -> String {
        self.value("document.body.innerText").await.as_str().unwrap_or_default().trim().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_in_its_box_answers_and_sees_nothing_of_the_machine() {
    let Some(world) = World::new().await else { return };
    let dir = world.dir();
    fs::write(dir.work.join("upload.txt"), "mine").unwrap();
    let began = clock::instant();
    let browser = world
        .sandbox
        .start_browser(
            &dir,
            BrowserSpec { purpose: Purpose::Session { window: (1000, 600) }, ..BrowserSpec::session() },
        )
        .await
        .unwrap();
    eprintln!("browser started in {:?}", began.elapsed());
    assert!(browser.ws_path().starts_with("/devtools/browser/"));

    let tab = Tab::open(&browser, &format!("http://site.test:{}/", world.site)).await;
    assert_eq!(tab.text().await, "hello from the site");
    for url in ["http://10.0.0.1/", "http://inner.test/", "http://169.254.169.254/"] {
        tab.go(url).await;
        assert!(!tab.text().await.contains("hello"), "{url}");
    }
    let failure = tab.go(&format!("https://127.0.0.1:{}/", world.site)).await;
    assert!(failure.is_some(), "a tunnel to the machine itself");

    tab.go("file:///etc/passwd").await;
    let (uid, gid) = dir.owner();
    assert_eq!(tab.text().await, format!("user:x:{uid}:{gid}::/home/user:/bin/bash"));
    for url in ["file:///etc/shadow", "file:///proc/1/environ", "file:///root/"] {
        let failure = tab.go(url).await;
        assert!(failure.is_some(), "{url}: {}", tab.text().await);
    }
    tab.go("file:///home/user/upload.txt").await;
    assert_eq!(tab.text().await, "mine", "the session's own files can be uploaded");

    // Its own sandbox is on: renderers have filters and namespaces of their own.
    let first = browser.pid().unwrap();
    let link = |pid: u32, what: &str| fs::read_link(format!("/proc/{pid}/ns/{what}")).unwrap();
    let mut renderers = 0;
    for pid in fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok()) {
        let cmdline = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let cmdline = String::from_utf8_lossy(&cmdline);
        if cmdline.contains("--type=renderer") && process::user_of(pid) == Some(uid) && process::is_root() {
            renderers += 1;
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            assert!(status.contains("Seccomp:\t2") && !cmdline.contains("no-sandbox"));
            assert!(link(pid, "user") != link(first, "user") && link(pid, "pid") != link(first, "pid"));
            assert!(link(pid, "net") != link(first, "net"));
        }
    }
    assert!(renderers > 0 || !process::is_root());

    assert!(browser.memory().await > 20 << 20);
    let began = Stopwatch::start();
    browser.kill().await;
    eprintln!("browser killed in {:?}", began.elapsed());
    assert!(browser.connect().await.is_err());
    assert!(tab.cdp.closed().is_cancelled() || tokio::time::timeout(LONG, tab.cdp.closed().cancelled()).await.is_ok());
    world.close([dir]).await;
}

struct All;

impl HostFilter for All {
    fn blocks(&self, _: &str) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_s_browser_leaves_by_the_way_that_it_is_given_and_never_by_another() {
    let Some(mut world) = World::new().await else { return };
    let guard = AddressGuard::new(Vec::new(), HashMap::new());
    let filter = EgressOptions { filter: Some(Arc::new(All)), ..EgressOptions::default() };
    let closed = EgressProxy::start_with(guard, filter).await.unwrap();
    world.sandbox.config.ad_free = closed.door();
    let dir = world.dir();
    let spec = BrowserSpec { exit: None, ..BrowserSpec::session() };
    let browser = world.sandbox.start_browser(&dir, spec).await.unwrap();
    let url = format!("http://site.test:{}/", world.site);
    let mut opening = Box::pin(Tab::open(&browser, &url));
    let waited = tokio::time::timeout(Duration::from_millis(300), &mut opening).await;
    assert!(waited.is_err(), "without a way out nothing is loaded");
    let missing = Exit { upstream: Some(0), refuses_ads: false };
    assert!(world.sandbox.let_out(&browser, missing, None).is_err(), "there is no such proxy, and none instead of it");
    world.sandbox.let_out(&browser, Exit::default(), None).unwrap();
    let page = opening.await;
    assert_eq!(page.text().await, "hello from the site");
    world.sandbox.let_out(&browser, Exit { refuses_ads: true, ..Exit::default() }, None).unwrap();
    page.go(&format!("{url}again")).await;
    assert!(page.text().await.contains("list of ads"), "{}", page.text().await);
    world.sandbox.let_out(&browser, Exit::default(), Some(Arc::new(|host: &str, _: u16| host == "site.test"))).unwrap();
    page.go(&format!("{url}once-more")).await;
    assert!(page.text().await.contains("list of ads"), "{}", page.text().await);
    world.sandbox.let_out(&browser, Exit::default(), None).unwrap();
    page.go(&url).await;
    assert_eq!(page.text().await, "hello from the site");
    let code = CodeSpec { program: vec!["true".into()], exit: missing, ..CodeSpec::default() };
    assert!(world.sandbox.start_code(&dir, code).await.is_err());
    browser.kill().await;
    world.close([dir]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_dies_is_seen_by_all_who_wait() {
    let Some(world) = World::new().await else { return };
    let dir = world.dir();
    let browser = Arc::new(world.sandbox.start_browser(&dir, BrowserSpec::session()).await.unwrap());
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let browser = Arc::clone(&browser);
            tokio::spawn(async move { browser.exited().await })
        })
        .collect();
    process::kill(browser.pid().unwrap());
    for waiter in waiters {
        tokio::time::timeout(LONG, waiter).await.expect("an end").unwrap();
    }
    // A new one finds the same profile.
    drop(browser);
    let again = world.sandbox.start_browser(&dir, BrowserSpec::session()).await.unwrap();
    again.kill().await;
    world.close([dir]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_probe_is_quick_and_says_what_it_found() {
    let began = Stopwatch::start();
    let Some(world) = World::with(SandboxMode::Strict).await else { return };
    eprintln!("prepared in {:?}: {:?}", began.elapsed(), world.sandbox.status());
    world.sandbox.probe().await.unwrap();
    world.close([]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_cannot_says_why_and_starts_nothing() {
    let Some(mut world) = World::new().await else { return };
    let (dir, fake, words) = (world.dir(), world.run_dir.join("bwrap"), world.run_dir.join("words"));
    fs::write(&fake, format!("#!/bin/sh\ncat {} >&2\nexit 1\n", words.display())).unwrap();
    fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.sandbox.bwrap = Some(fake.clone());
    for (said, explained) in [
        (
            "Can't mount proc on /newroot/proc: Operation not permitted",
            "this machine lets no box have a /proc of its own",
        ),
        (
            "No permissions to create new namespace, likely because the kernel does not allow it",
            "this machine forbids the user namespaces that boxes need",
        ),
    ] {
        fs::write(&words, format!("bwrap: {said}\n")).unwrap();
        let error = world.sandbox.probe().await.unwrap_err();
        assert!(error.to_string().starts_with(explained), "{error}");
    }
    assert!(world.sandbox.start_browser(&dir, BrowserSpec::session()).await.is_err());
    assert!(world.sandbox.start_code(&dir, CodeSpec::default()).await.is_err());
    world.sandbox.bwrap = None;
    assert!(matches!(world.sandbox.start_browser(&dir, BrowserSpec::session()).await, Err(SandboxError::Refused(_))));
    assert!(matches!(world.sandbox.start_code(&dir, CodeSpec::default()).await, Err(SandboxError::Refused(_))));
    assert_eq!(world.sandbox.probe().await.unwrap_err().to_string(), NO_BWRAP);
    [fake, words].into_iter().for_each(|file| fs::remove_file(file).unwrap());
    world.close([dir]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_boxes_programs_run_and_end_completely_all_the_same() {
    let Some(world) = World::with(SandboxMode::Off).await else { return };
    let dir = world.dir();
    let code = started(&world, &dir).await;
    code.kill().await;
    if process::is_root() {
        assert_eq!(processes_of(dir.owner().0), Vec::<u32>::new());
    }
    let asset = dir.root.join("asset.py");
    fs::write(
        &asset,
        "import os, urllib.request\nprint(os.getcwd(), urllib.request.urlopen(os.environ['SITE']).read().decode())",
    )
    .unwrap();
    let spec = CodeSpec {
        program: ["python3", "/opt/asset.py"].map(str::to_owned).into(),
        env: vec![("SITE".into(), format!("http://site.test:{}/", world.site))],
        binds: vec![(asset, "/opt/asset.py".into())],
        ..CodeSpec::default()
    };
    let mut code = world.sandbox.start_code(&dir, spec).await.unwrap();
    let (out, err) = (read_all(&mut code.stdout).await, read_all(&mut code.stderr).await);
    assert!(out.contains("hello from the site") && out.starts_with(&*dir.work.to_string_lossy()), "{out} {err}");
    let browser = world.sandbox.start_browser(&dir, BrowserSpec::session()).await.unwrap();
    let tab = Tab::open(&browser, &format!("http://site.test:{}/", world.site)).await;
    assert_eq!(tab.text().await, "hello from the site");
    browser.kill().await;
    world.close([dir]).await;
}

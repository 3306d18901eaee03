//! The service as it is deployed: the binaries `weir` and `weir-worker` with a fresh database and folder.

use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use weir_shared::clock;

use crate::database::{FreshDatabase, WriteLock, is_writable};
use crate::process::{Process, ProcessInfo, cpu_of, free_port, processes_mentioning, signal, threads_have_stopped};
use crate::{Answer, Caller, Database, wait_until, wait_until_within};

/// The secret that signs webhooks of every service under test.
pub const WEBHOOK_SECRET: &str = "a secret of the tests";

/// What differs between one test's service and the next one's.
pub struct ServiceOptions {
    pub database: Database,
    pub workers: usize,
    /// Settings on top of the tests' own; an empty value removes the setting.
    pub env: Vec<(&'static str, String)>,
    /// Where the workers run, in their order; those beyond the list run beside the API.
    pub machines: Vec<Machine>,
}

/// Something like a machine of its own for a worker. Needs root.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// The command that runs the worker's program, whose path is appended.
    pub launcher: Vec<String>,
    /// Settings on top of the service's.
    pub env: Vec<(&'static str, String)>,
}

impl Machine {
    /// One with a file of its own in the place of `/etc/hosts`, which counts at every look.
    pub fn with_hosts(hosts: &Path) -> Self {
        let script = "mount --bind \"$0\" /etc/hosts && exec \"$1\"";
        let launcher = ["unshare", "--mount", "sh", "-c", script, &hosts.display().to_string()];
        Self { launcher: launcher.map(str::to_owned).to_vec(), env: Vec::new() }
    }
}

impl ServiceOptions {
    pub fn new(database: Database) -> Self {
        Self { database, workers: 1, env: Vec::new(), machines: Vec::new() }
    }

    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    pub fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// Its workers take browser sessions, as many as they do by themselves, and so pages with a profile.
    pub fn with_sessions(self) -> Self {
        self.env("WEIR_SESSIONS_PER_WORKER", "")
    }
}

/// One API process and some workers, with a team and its key.
///
/// When it is dropped it is stopped in good order, and the test fails when something is left then: pages or wake-ups in
/// work, sessions, leases of profiles, workers that count as alive, processes, boxes, temporary files. A test that takes
/// from the service what it needs to end says so ([`TestService::abandon`]).
pub struct TestService {
    api: Option<Process>,
    workers: Vec<Option<Process>>,
    caller: Caller,
    port: u16,
    folder: PathBuf,
    database: FreshDatabase,
    env: HashMap<&'static str, String>,
    machines: Vec<Machine>,
    is_abandoned: bool,
    /// It was stopped in good order.
    is_stopped: bool,
    /// A worker was killed: its row, and the wake-ups that it had in hand, are taken back seconds later.
    has_killed: bool,
}

impl TestService {
    /// A service with one worker.
    pub async fn start(database: Database) -> Self {
        Self::start_with(ServiceOptions::new(database)).await
    }

    pub async fn start_with(options: ServiceOptions) -> Self {
        Self::start_in(crate::temporary("test"), options).await
    }

    /// Starts in a folder that the test has prepared, such as one on a small file system.
    pub async fn start_in(folder: PathBuf, options: ServiceOptions) -> Self {
        // Chromium may run as another user, who must be able to pass through.
        for (path, mode) in [(folder.clone(), 0o755), (folder.join("tmp"), 0o1777)] {
            std::fs::create_dir_all(&path).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        }
        let database = options.database.create(&folder).await;
        let port = free_port();
        let mut env = HashMap::from([
            ("DATABASE_URL", database.url.clone()),
            ("TMPDIR", folder.join("tmp").display().to_string()),
            // Each service's own, so that what it leaves can be told from what others have.
            ("WEIR_RUN_DIR", folder.join("tmp/weir-run").display().to_string()),
            ("WEIR_BIND", format!("127.0.0.1:{port}")),
            ("WEIR_BLOBS", format!("file://{}", folder.join("blobs").display())),
            ("WEIR_ALLOW_NETS", "127.0.0.0/8".to_owned()),
            ("WEIR_WEBHOOK_RETRIES", "200ms,400ms,800ms".to_owned()),
            ("WEIR_WEBHOOK_SECRET", WEBHOOK_SECRET.to_owned()),
            ("WEIR_RATE_LIMITS", "off".to_owned()),
            // Each page is asked for; tests of the cache give it room.
            ("WEIR_CACHE_SIZE", "0".to_owned()),
            // Most tests open no session, and to try a box of each kind costs as much as the rest of a start.
            ("WEIR_SESSIONS_PER_WORKER", "0".to_owned()),
            // A browser and a runner that wait cost even more.
            ("WEIR_WARM_BROWSERS", "0".to_owned()),
            // Nor do most render a page.
            ("WEIR_PAGE_BROWSER_IDLE", "1h".to_owned()),
            ("WEIR_LOG", "info".to_owned()),
        ]);
        env.extend(options.env);
        env.retain(|_, value| !value.is_empty());

        let caller = Caller::new(&format!("http://127.0.0.1:{port}"), None);
        let mut service = Self {
            api: None,
            workers: (0..options.workers).map(|_| None).collect(),
            caller,
            port,
            folder,
            database,
            env,
            machines: options.machines,
            is_abandoned: false,
            is_stopped: false,
            has_killed: false,
        };
        service.start_api();
        for n in 0..options.workers {
            service.start_worker(n);
        }
        service.ready().await;
        service.caller = service.new_team("tests");
        service
    }

    // --- Talking to it --------------------------------------------------------------------------

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    pub fn base(&self) -> &str {
        &self.caller.base
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn key(&self) -> &str {
        self.caller.key.as_deref().expect("the tests' team has a key")
    }

    pub fn database_url(&self) -> &str {
        &self.database.url
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.caller.get(path).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.caller.post(path, body).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.caller.delete(path).await
    }

    /// The same service without a key.
    pub fn anonymous(&self) -> Caller {
        Caller::new(&self.caller.base, None)
    }

    /// Adds a team and returns a caller with its first key.
    pub fn new_team(&self, name: &str) -> Caller {
        self.cli(&["team", "add", name, "--json"]);
        self.new_key(name)
    }

    /// A further key of a team.
    pub fn new_key(&self, team: &str) -> Caller {
        let key = self.cli_json(&["key", "create", "--team", team, "--json"]);
        let key = key["key"].as_str().unwrap_or_else(|| panic!("no key in {key}"));
        Caller::new(&self.caller.base, Some(key))
    }

    /// Waits until `/readyz` answers 200.
    pub async fn ready(&self) {
        let caller = self.anonymous();
        wait_until_within(Duration::from_secs(90), "the service is ready", || {
            if let Some(api) = &self.api {
                let api = std::fs::read_to_string(format!("/proc/{}/stat", api.id())).unwrap_or_default();
                assert!(!api.is_empty() && !api.contains(") Z"), "the API ended\n{}", self.logs());
            }
            let caller = &caller;
            async move {
                let answer = caller.try_send(caller.request(reqwest::Method::GET, "/readyz")).await.ok()?;
                (answer.status == 200).then_some(())
            }
        })
        .await;
    }

    /// Tables of the database in which this text is found in any column, and how many documents there are.
    pub async fn tables_with(&self, text: &str) -> (Vec<String>, i64) {
        crate::database::tables_with(&self.database.url, text).await
    }

    /// Keeps everybody from writing, and on Postgres every team but `spared` from having its rows written.
    pub async fn lock_writes(&self, spared: &str) -> WriteLock {
        WriteLock::take(&self.database.url, spared).await
    }

    /// Keeps everybody from writing to a table, and on SQLite from writing at all.
    pub async fn lock_table(&self, table: &str) -> WriteLock {
        WriteLock::take_table(&self.database.url, table).await
    }

    /// Changes rows behind the service's back.
    pub async fn execute(&self, sql: &str) {
        crate::database::execute(&self.database.url, sql).await;
    }

    // --- The operator's commands ----------------------------------------------------------------

    /// Runs `weir …`; panics when it fails.
    pub fn cli(&self, arguments: &[&str]) -> String {
        let output = self.try_cli(arguments);
        assert!(
            output.status.success(),
            "weir {}: {}\n{}{}",
            arguments.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `weir … --json` and parses what it prints.
    pub fn cli_json(&self, arguments: &[&str]) -> Value {
        let text = self.cli(arguments);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("weir {}: {error} in {text:?}", arguments.join(" ")))
    }

    /// Runs `weir …` and returns whatever came of it.
    pub fn try_cli(&self, arguments: &[&str]) -> Output {
        self.command("weir").args(arguments).output().unwrap()
    }

    /// A command with this service's settings and none of the caller's.
    pub fn command(&self, binary: &str) -> Command {
        self.with_settings(Command::new(binary_path(binary)))
    }

    /// The settings of its processes, and of commands that are run beside them.
    pub fn environment(&self) -> &HashMap<&'static str, String> {
        &self.env
    }

    fn with_settings(&self, mut command: Command) -> Command {
        for (name, _) in std::env::vars() {
            if name.starts_with("WEIR_") || name == "DATABASE_URL" {
                command.env_remove(name);
            }
        }
        command.envs(&self.env).current_dir(&self.folder);
        command
    }

    // --- Its processes --------------------------------------------------------------------------

    /// A setting of the processes that start from now on.
    pub fn set_env(&mut self, name: &'static str, value: &str) {
        self.env.insert(name, value.to_owned());
    }

    /// Takes a setting back.
    pub fn remove_env(&mut self, name: &str) {
        self.env.remove(name);
    }

    pub fn start_api(&mut self) {
        let mut command = self.command("weir");
        command.arg("serve");
        self.api = Some(Process::start("api", command, &self.folder.join("api.log")));
    }

    /// Its API as where a process may have so many files open.
    pub fn start_api_with_files(&mut self, most: u32) {
        let mut command = self.with_settings(Command::new("sh"));
        command.arg("-c").arg(format!("ulimit -n {most} && exec \"$0\" serve")).arg(binary_path("weir"));
        self.api = Some(Process::start("api", command, &self.folder.join("api.log")));
    }

    /// A further API process over the same database, as long as it is kept, and the tests' caller of it.
    pub async fn start_another_api(&self) -> (Process, Caller) {
        let port = free_port();
        let mut command = self.command("weir");
        command.arg("serve").env("WEIR_BIND", format!("127.0.0.1:{port}"));
        let process = Process::start("another api", command, &self.folder.join("api-2.log"));
        let caller = Caller::new(&format!("http://127.0.0.1:{port}"), self.caller.key.as_deref());
        wait_until_within(Duration::from_secs(90), "the other API answers", || async {
            let answer = caller.try_send(caller.request(reqwest::Method::GET, "/healthz")).await.ok()?;
            (answer.status == 200).then_some(())
        })
        .await;
        (process, caller)
    }

    /// An API process that gets its socket from outside, as systemd hands it over.
    pub fn start_api_on(&self, socket: &std::net::TcpListener) -> Process {
        self.start_api_on_as(socket, &socket.local_addr().unwrap().to_string())
    }

    /// The same with any address in the settings.
    pub fn start_api_on_as(&self, socket: &std::net::TcpListener, bind: &str) -> Process {
        rustix::io::fcntl_setfd(socket, rustix::io::FdFlags::empty()).unwrap();
        let script = format!("exec 3<&{} && LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" serve", socket.as_raw_fd());
        // The plain shell reads no descriptor above 9.
        let mut command = self.with_settings(Command::new("bash"));
        command.arg("-c").arg(script).arg(binary_path("weir")).env("WEIR_BIND", bind);
        Process::start("an API on a socket", command, &self.folder.join("api-socket.log"))
    }

    /// SIGKILL to the API.
    pub fn kill_api(&mut self) {
        if let Some(mut api) = self.api.take() {
            api.kill();
        }
    }

    pub fn start_worker(&mut self, n: usize) {
        let log = self.folder.join(format!("worker-{n}.log"));
        // There was one before, which did not end in good order.
        self.has_killed |= log.exists() && !self.is_stopped;
        self.is_stopped = false;
        let command = match self.machines.get(n) {
            Some(Machine { launcher, env }) if !launcher.is_empty() => {
                let mut command = Command::new(&launcher[0]);
                command.args(&launcher[1..]).arg(binary_path("weir-worker"));
                let mut command = self.with_settings(command);
                command.envs(env.iter().map(|(name, value)| (name, value)));
                command
            }
            _ => self.command("weir-worker"),
        };
        self.workers[n] = Some(Process::start(&format!("worker {n}"), command, &log));
    }

    /// SIGKILL to one worker alone; whatever it had started must end without its help.
    pub fn kill_worker(&mut self, n: usize) {
        if let Some(mut worker) = self.workers[n].take() {
            worker.kill();
        }
    }

    /// Waits until one worker ends by itself; panics when it takes longer than `bound`.
    pub fn await_worker(&mut self, n: usize, bound: Duration) -> std::process::ExitStatus {
        self.workers[n].take().expect("it was started").await_end(bound)
    }

    /// Stops a worker where it is, without ending it, though not where it holds SQLite's one write lock; `resume_worker`
    /// lets it go on.
    pub async fn pause_worker(&self, n: usize) {
        let id = self.worker_id(n);
        wait_until("the worker stands still outside a write", || async {
            signal("STOP", &id);
            // The signal only asks for it.
            wait_until("every thread has stopped", || async { threads_have_stopped(&id).then_some(()) }).await;
            if is_writable(self.database_url()).await {
                return Some(());
            }
            signal("CONT", &id);
            None
        })
        .await;
    }

    pub fn resume_worker(&self, n: usize) {
        signal("CONT", &self.worker_id(n));
    }

    fn worker_id(&self, n: usize) -> String {
        self.worker_process(n).to_string()
    }

    /// Processor time of the API so far, to a hundredth of a second.
    pub fn api_cpu(&self) -> Duration {
        cpu_of(self.api.as_ref().expect("it was started").id()).expect("it runs")
    }

    /// The process of one worker.
    pub fn worker_process(&self, n: usize) -> u32 {
        self.workers[n].as_ref().expect("it was started").id()
    }

    /// What one worker says of itself: the value of a line of its metrics, 0 where there is none.
    pub async fn worker_figure(&self, n: usize, line: &str) -> u64 {
        let end = format!("-{}", self.worker_id(n));
        let workers = self.cli_json(&["workers", "list", "--json"]);
        let mut all = workers.as_array().unwrap().iter();
        let Some(worker) = all.find(|worker| worker["name"].as_str().unwrap().ends_with(&end)) else { return 0 };
        let address = worker["address"].as_str().unwrap();
        let text = reqwest::get(format!("http://{address}/metrics")).await.unwrap().text().await.unwrap();
        let value = text.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok());
        value.unwrap_or(0)
    }

    /// Takes the API process away from the service; whoever holds it ends it.
    pub fn take_api(&mut self) -> Process {
        self.api.take().expect("the API was started")
    }

    /// What `weir workers` calls one worker.
    pub fn worker_name(&self, n: usize) -> String {
        let workers = self.cli_json(&["workers", "list", "--json"]);
        let worker = workers.as_array().unwrap().iter().find(|worker| self.is_named(n, worker));
        let worker = worker.unwrap_or_else(|| panic!("worker {n} is not in {workers}"));
        worker["name"].as_str().unwrap().to_owned()
    }

    /// Waits until each worker that was started has announced itself: earlier it may not hear of a stop.
    pub async fn workers_are_there(&self) {
        wait_until("every worker is there", || async {
            let workers = self.cli_json(&["workers", "list", "--json"]);
            let is_there = |n| workers.as_array().unwrap().iter().any(|worker| self.is_named(n, worker));
            (0..self.worker_count()).all(|n| self.workers[n].is_none() || is_there(n)).then_some(())
        })
        .await;
    }

    /// Waits until one of its workers takes sessions: they are refused until the sandbox was tried, which is done at a start.
    pub async fn takes_sessions(&self) {
        wait_until("a worker that takes sessions", || async {
            let workers = self.cli_json(&["workers", "list", "--json"]);
            let takes = |worker: &Value| worker["state"] == "live" && worker["sessionSlots"].as_i64() > Some(0);
            workers.as_array().is_some_and(|workers| workers.iter().any(takes)).then_some(())
        })
        .await;
    }

    fn is_named(&self, n: usize, worker: &Value) -> bool {
        worker["name"].as_str().is_some_and(|name| name.ends_with(&format!("-{}", self.worker_id(n))))
    }

    pub fn restart_worker(&mut self, n: usize) {
        self.kill_worker(n);
        self.start_worker(n);
    }

    pub fn worker_count(&self) -> usize {
        self.workers.len()
    }

    /// Every process that this service has started and that still lives, browsers included.
    pub fn processes(&self) -> Vec<ProcessInfo> {
        processes_mentioning(&self.folder.display().to_string())
    }

    /// The main process of each Chromium of this service.
    pub fn browsers(&self) -> Vec<ProcessInfo> {
        self.processes().into_iter().filter(ProcessInfo::is_browser_main).collect()
    }

    /// SIGTERM to all; panics when one does not end in 40 s or not with success.
    pub fn stop(&mut self) {
        let names = self.workers.iter_mut().chain([&mut self.api]);
        for process in names.filter_map(Option::take) {
            let mut process = process;
            let status = process.terminate(Duration::from_secs(40));
            assert!(status.success(), "{} ended with {status}\n{}", process.name, process.tail(40));
        }
        self.is_stopped = true;
    }

    /// The service cannot end in good order: its end is not looked at.
    pub fn abandon(&mut self) {
        self.is_abandoned = true;
    }

    /// Stops everything in good order and says what is left.
    fn end(&mut self) -> Vec<String> {
        // Whoever was killed and not started again has left what the others would take over in time.
        let is_whole = self.is_stopped || self.workers.iter().all(Option::is_some);
        let mut ending: Vec<Process> =
            self.workers.iter_mut().chain([&mut self.api]).filter_map(Option::take).collect();
        for process in &ending {
            signal("CONT", &process.id().to_string());
            signal("TERM", &process.id().to_string());
        }
        let mut left = Vec::new();
        for process in &mut ending {
            let status = process.await_end(Duration::from_secs(40));
            if !status.success() {
                left.push(format!("{} ended with {status}\n{}", process.name, process.tail(40)));
            }
        }
        drop(ending);
        if is_whole {
            left.extend(rows_left(&self.env["DATABASE_URL"], !self.has_killed));
        }
        let until = clock::deadline(Duration::from_secs(30));
        while !self.processes().is_empty() && clock::instant() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        left.extend(self.processes().iter().map(|process| format!("process {process:?}")));
        if is_whole {
            left.extend(files_below(&self.folder.join("tmp")).iter().map(|path| format!("file {}", path.display())));
        }
        left
    }

    /// The end of every process's log, for a test that fails.
    pub fn logs(&self) -> String {
        let mut text = String::new();
        for name in
            std::iter::once("api.log".to_owned()).chain((0..self.workers.len()).map(|n| format!("worker-{n}.log")))
        {
            let log = std::fs::read(self.folder.join(&name)).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let lines: Vec<_> = log.lines().collect();
            text += &format!(
                "--- {name} ({} lines)\n{}\n",
                lines.len(),
                lines[lines.len().saturating_sub(60)..].join("\n")
            );
        }
        text
    }
}

impl Drop for TestService {
    fn drop(&mut self) {
        let is_failing = std::thread::panicking();
        let left = if is_failing || self.is_abandoned { Vec::new() } else { self.end() };
        if is_failing || !left.is_empty() {
            eprintln!("{}", self.logs());
        }
        self.api = None;
        self.workers.clear();
        // Until none is left: a process that dies may still have started another one.
        for _ in 0..50 {
            let left = self.processes();
            left.iter().for_each(ProcessInfo::kill);
            if left.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
        assert!(left.is_empty(), "the service left: {left:#?}");
    }
}

/// Everything below a folder but folders that are empty.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap());
    entries
        .flat_map(
            |entry| if entry.file_type().unwrap().is_dir() { files_below(&entry.path()) } else { vec![entry.path()] },
        )
        .collect()
}

/// What the rows of a service that has ended still hold.
fn rows_left(url: &str, none_died: bool) -> Vec<String> {
    let url = url.to_owned();
    // Whoever drops a service cannot wait: a thread with a small runtime does.
    let look = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(crate::database::rows_left(&url, none_died))
    });
    look.join().expect("the database of a service that has ended answers")
}

/// Where the binaries are: `WEIR_TEST_BIN_DIR`, or the build folder that the test itself came from.
pub fn binary_folder() -> PathBuf {
    match std::env::var("WEIR_TEST_BIN_DIR") {
        Ok(folder) => PathBuf::from(folder),
        Err(_) => std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned(),
    }
}

fn binary_path(name: &str) -> PathBuf {
    let path = binary_folder().join(name);
    assert!(path.exists(), "{} is missing: build it with `cargo build -p weir-api -p weir-worker`", path.display());
    path
}

//! Finds a Chromium and says how to start it: path, kind, version and flags. Starts no browser itself.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// How long the program may take to tell its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// Which program was found; it decides the headless flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChromiumKind {
    /// `chromium-headless-shell`: a fifth of full Chromium's CPU per page, so preferred.
    HeadlessShell,
    /// Full Chromium or Chrome, run with `--headless=new`.
    Full,
}

/// A Chromium that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The program itself, not a distribution's launcher script where that can be avoided.
    pub path: PathBuf,
    /// What it is.
    pub kind: ChromiumKind,
}

/// Where distributions and vendors put it, best first. Launcher scripts add flags and API keys of
/// their own, so the programs behind them come before them.
const CANDIDATES: &[&str] = &[
    "/usr/lib/chromium/chromium-headless-shell",
    "/usr/lib/chromium-browser/chromium-headless-shell",
    "/opt/chrome-headless-shell/chrome-headless-shell",
    "/usr/bin/chromium-headless-shell",
    "/usr/bin/chrome-headless-shell",
    "/usr/local/bin/chrome-headless-shell",
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/usr/lib/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome-stable",
];

/// The Chromium to use: the configured path when it is a program (and then nothing else), otherwise
/// the first known place that holds one.
pub fn find_chromium(configured: Option<&Path>) -> Option<Found> {
    match configured {
        Some(path) => is_program(path).then(|| found(path)),
        None => CANDIDATES.iter().map(Path::new).find(|path| is_program(path)).map(found),
    }
}

fn found(path: &Path) -> Found {
    let path = behind_launcher(path);
    let kind = kind_of(&path);
    Found { path, kind }
}

fn kind_of(path: &Path) -> ChromiumKind {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    if name.contains("headless") { ChromiumKind::HeadlessShell } else { ChromiumKind::Full }
}

/// Debian's `/usr/bin/<name>` is a script around `/usr/lib/chromium/<name>`.
fn behind_launcher(path: &Path) -> PathBuf {
    let Some(name) = path.file_name() else { return path.to_owned() };
    let program = Path::new("/usr/lib/chromium").join(name);
    if path.starts_with("/usr/bin") && is_program(&program) { program } else { path.to_owned() }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// The version of a Chromium, which its names are made from.
#[derive(Debug, Clone)]
pub struct Version {
    /// `156`.
    pub major: String,
    /// `156.0.7444.59`.
    pub full: String,
}

impl Version {
    /// From `Browser.getVersion`'s product, such as `HeadlessChrome/156.0.7444.59`.
    pub fn from_product(product: &str) -> Self {
        Self::from_text(product.split('/').nth(1).unwrap_or("140.0.0.0"))
    }

    /// From what the program says of itself; `None` when it says nothing that has a version.
    pub(super) async fn of_program(program: &Path) -> Option<Self> {
        let mut command = tokio::process::Command::new(program);
        command.arg("--version").env_clear().stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(VERSION_LIMIT, command.output()).await.ok()?.ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version =
            text.split_whitespace().find(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()));
        version.map(Self::from_text)
    }

    fn from_text(full: &str) -> Self {
        let full = full.to_owned();
        let major = full.split('.').next().unwrap_or("140").to_owned();
        Self { major, full }
    }

    /// The header `User-Agent` of an ordinary Chromium of this version, without the word for having no window.
    pub fn user_agent(&self, is_mobile: bool) -> String {
        let (system, mobile) = if is_mobile { ("Linux; Android 10; K", "Mobile ") } else { ("X11; Linux x86_64", "") };
        let major = &self.major;
        format!(
            "Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.0.0 {mobile}Safari/537.36"
        )
    }
}

/// The flags of a browser of the scraping pool, in a box whose loopback has the egress proxy on `proxy_port`.
pub(super) fn page_flags(kind: ChromiumKind, has_pictures: bool, proxy_port: u16) -> Vec<String> {
    let more = if has_pictures { &[] } else { BLIND_FLAGS };
    flags(kind, proxy_port, POOL_FLAGS.iter().chain(more))
}

/// The flags of a session's browser, in a box whose loopback has the egress proxy on `proxy_port`.
///
/// A session is driven and looked at by its owner, so it may open pages, and pages find what they find in an
/// ordinary browser, which goes by `name` if that is known.
pub(super) fn session_flags(
    kind: ChromiumKind,
    (width, height): (u32, u32),
    name: Option<&str>,
    proxy_port: u16,
) -> Vec<String> {
    let mut flags = flags(kind, proxy_port, SESSION_FLAGS);
    flags.push(format!("--window-size={width},{height}"));
    flags.extend(name.map(|name| format!("--user-agent={name}")));
    flags
}

/// All traffic goes through the proxy; `<-loopback>` takes away Chromium's habit of going to loopback addresses
/// directly. Each flag's reason stands beside it.
fn flags<'a>(kind: ChromiumKind, proxy_port: u16, more: impl IntoIterator<Item = &'a &'static str>) -> Vec<String> {
    let mut flags =
        vec![format!("--proxy-server=http://127.0.0.1:{proxy_port}"), "--proxy-bypass-list=<-loopback>".to_owned()];
    flags.extend(COMMON_FLAGS.iter().chain(more).map(|f| (*f).to_owned()));
    flags.push(if kind == ChromiumKind::Full { "--headless=new" } else { "--headless" }.to_owned());
    flags
}

/// Further flags of sessions.
const SESSION_FLAGS: &[&str] = &[
    // Services of the maker that a person at the machine might want.
    "--disable-features=AutofillServerCommunication,OptimizationHints,Translate,MediaRouter",
    // `navigator.webdriver` would have some pages show a person in the live view something else.
    "--disable-blink-features=AutomationControlled",
    "--accept-lang=en-US,en",
];

/// Flags of every browser.
const COMMON_FLAGS: &[&str] = &[
    // Nothing but what a page asks for may reach the network.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-component-extensions-with-background-pages",
    "--disable-client-side-phishing-detection",
    "--disable-quic",
    "--no-pings",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--no-first-run",
    "--no-default-browser-check",
    "--metrics-recording-only",
    "--password-store=basic",
    "--use-mock-keychain",
    // A crash is seen on the socket; no reporter process is wanted.
    "--disable-breakpad",
    "--disable-crash-reporter",
    // Pages that nobody looks at must still run at full speed.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-hang-monitor",
    "--disable-notifications",
    "--deny-permission-prompts",
    "--mute-audio",
    "--force-color-profile=srgb",
    // No graphics card.
    "--disable-gpu",
    "--lang=en-US",
];

/// Further flags of the scraping pool.
const POOL_FLAGS: &[&str] = &[
    // Pages must not open more pages.
    "--block-new-web-contents",
    "--hide-scrollbars",
    // No emulated graphics card either: WebGL is not worth its memory and CPU.
    "--disable-software-rasterizer",
    "--autoplay-policy=user-gesture-required",
    "--window-size=1280,800",
    // Each context would open databases of bounce tracking and performance reports, which nobody reads.
    "--disable-features=DeclarativePerformanceObserver,DIPS",
    // A process less to send messages to. On Linux it has the rights of the browser's own process anyway.
    "--enable-features=NetworkServiceInProcess2",
];

/// Flags of a browser whose pages nobody looks at: no pictures, no fonts of the site (refusing them one by one costs a
/// message each way per request; this costs nothing), and nothing is painted, which saves a tenth of a page's CPU.
/// Layout, animation frames, observers and scrolling go on as before.
const BLIND_FLAGS: &[&str] =
    &["--blink-settings=imagesEnabled=false,acceleratedCompositingEnabled=false", "--disable-remote-fonts"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_path_that_is_no_program_is_not_replaced_by_another() {
        assert_eq!(find_chromium(Some(Path::new("/nonexistent/chromium"))), None);
    }

    #[test]
    fn the_kind_follows_the_name() {
        assert_eq!(kind_of(Path::new("/x/chrome-headless-shell")), ChromiumKind::HeadlessShell);
        assert_eq!(kind_of(Path::new("/usr/bin/chromium")), ChromiumKind::Full);
    }

    #[test]
    fn every_browser_is_bound_to_the_egress_proxy_and_keeps_loopback_behind_it() {
        for kind in [ChromiumKind::Full, ChromiumKind::HeadlessShell] {
            for flags in [
                session_flags(kind, (800, 600), Some("Mine"), 4000),
                page_flags(kind, true, 4000),
                page_flags(kind, false, 4000),
            ] {
                for wanted in ["--proxy-server=http://127.0.0.1:4000", "--proxy-bypass-list=<-loopback>"] {
                    assert!(flags.iter().any(|f| f == wanted), "{wanted}");
                }
                assert_eq!(flags.iter().filter(|f| f.starts_with("--headless")).count(), 1);
                assert!(!flags.iter().any(|f| f.contains("no-sandbox") || f.contains("single-process")));
                // A page that changes its address without end keeps the browser's own process from all others.
                assert!(!flags.iter().any(|f| f.contains("flooding-protection")));
            }
        }
    }
}

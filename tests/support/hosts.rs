//! Hosts of a network: network namespaces with a cable each to this machine, which can be cut, and clocks of their own.
//! Needs root.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use tokio::net::{TcpListener, TcpStream};

use crate::service::Machine;

/// This machine as the hosts see it: one address that all of them reach.
pub struct Hub {
    /// Second byte of every address: 10.NET.x.y.
    net: u8,
}

impl Hub {
    pub fn new() -> Self {
        // Tests of different processes may run at once.
        let net = u8::try_from(std::process::id() % 250).unwrap();
        let hub = Self { net };
        ip(&format!("address add {}/32 dev lo", hub.address()));
        hub
    }

    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.net, 255, 1)
    }

    /// All addresses of the network.
    pub fn nets(&self) -> String {
        format!("10.{}.0.0/16", self.net)
    }

    /// Makes a server of 127.0.0.1 reachable for the hosts. Returns the address, for as long as the test runs.
    pub async fn forward(&self, port: u16) -> SocketAddr {
        let listener = TcpListener::bind((self.address(), 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                tokio::spawn(async move {
                    if let Ok(mut far) = TcpStream::connect(("127.0.0.1", port)).await {
                        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        });
        address
    }

    /// A further host; its number is from 0 to 200.
    pub fn host(&self, number: u8) -> Host {
        let (name, cable) = (format!("weir-{}-{number}", self.net), format!("wt{}n{number}", self.net));
        let host = Host { address: Ipv4Addr::new(10, self.net, number, 2), name, cable };
        let (name, cable, near) = (&host.name, &host.cable, Ipv4Addr::new(10, self.net, number, 1));
        ip(&format!("netns add {name}"));
        ip(&format!("link add {cable} type veth peer name far netns {name}"));
        ip(&format!("address add {near}/24 dev {cable}"));
        ip(&format!("link set {cable} up"));
        ip(&format!("-n {name} link set lo up"));
        ip(&format!("-n {name} address add {}/24 dev far", host.address));
        ip(&format!("-n {name} link set far up"));
        ip(&format!("-n {name} route add default via {near}"));
        host
    }
}

impl Default for Hub {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        try_ip(&format!("address del {}/32 dev lo", self.address()));
    }
}

/// One host. It is gone when this is dropped.
pub struct Host {
    name: String,
    cable: String,
    pub address: Ipv4Addr,
}

impl Host {
    /// What runs a worker there.
    pub fn machine(&self) -> Machine {
        let launcher = ["ip", "netns", "exec", &self.name].map(str::to_owned).to_vec();
        Machine { launcher, env: vec![("WEIR_WORKER_BIND", format!("{}:0", self.address))] }
    }

    /// Cuts the cable: whatever is sent is lost without a word.
    pub fn cut(&self) {
        ip(&format!("link set {} down", self.cable));
    }

    pub fn heal(&self) {
        ip(&format!("link set {} up", self.cable));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        try_ip(&format!("link del {}", self.cable));
        try_ip(&format!("netns del {}", self.name));
    }
}

/// A clock that differs from this machine's for the programs that load it.
const CLOCK: &str = r#"
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *t) {
    int outcome = (int)syscall(SYS_clock_gettime, id, t);
    const char *step = getenv("CLOCK_STEP");
    if (outcome == 0 && step && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += atoi(step);
    return outcome;
}
"#;

impl Machine {
    /// Lets the machine's clock be `seconds` ahead. The library for it is built into `folder` with gcc.
    pub fn with_clock(mut self, folder: &Path, seconds: i64) -> Self {
        let (source, library): (PathBuf, PathBuf) = (folder.join("clock.c"), folder.join("clock.so"));
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(&source, CLOCK).unwrap();
        let mut gcc = Command::new("gcc");
        let made = gcc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status().expect("gcc runs");
        assert!(made.success());
        self.env.push(("LD_PRELOAD", library.display().to_string()));
        self.env.push(("CLOCK_STEP", seconds.to_string()));
        self
    }
}

fn ip(arguments: &str) {
    assert!(try_ip(arguments), "ip {arguments}");
}

fn try_ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).output().expect("ip runs").status.success()
}

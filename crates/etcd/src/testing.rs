//! A real etcd on loopback, for tests.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to be ready.
const READY: Duration = Duration::from_secs(60);

/// An etcd of one member, which ends with this.
#[derive(Debug)]
pub struct Local {
    child: Option<Child>,
    ports: (u16, u16),
    folder: std::path::PathBuf,
}

impl Local {
    /// Starts one that keeps its data in `folder`; none when the program is not installed, which
    /// CI does not allow.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn start(folder: &Path) -> Option<Self> {
        let there = Command::new("etcd").arg("--version").stdout(Stdio::null()).status();
        if there.is_err() {
            let is_ci = std::env::var("CI").is_ok_and(|v| v == "true");
            assert!(!is_ci, "etcd is not installed: scripts/setup.sh test");
            eprintln!("skipped: etcd is not installed (scripts/setup.sh test)");
            return None;
        }
        for _ in 0..5 {
            let ports = (free_port(), free_port());
            let mut local = Self { child: None, ports, folder: folder.to_owned() };
            if local.up() {
                return Some(local);
            }
        }
        panic!("etcd does not start; see {}", folder.join("etcd.log").display());
    }

    /// Its address for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.0)
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it again with the data that it had; whether it is ready.
    pub fn up(&mut self) -> bool {
        let (clients, peers) = (self.url(), format!("http://127.0.0.1:{}", self.ports.1));
        let log = std::fs::File::create(self.folder.join("etcd.log")).expect("a log");
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(self.folder.join("etcd"))
            .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
            .args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers])
            .args(["--initial-cluster", &format!("default={peers}")])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.expect("etcd is installed"));
        let begun = Instant::now();
        while begun.elapsed() < READY {
            let child = self.child.as_mut().expect("invariant: just started");
            if child.try_wait().is_ok_and(|ended| ended.is_some()) {
                self.child = None;
                return false;
            }
            if is_healthy(self.ports.0) {
                return true;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.kill();
    }
}

/// It has a leader: itself.
fn is_healthy(port: u16) -> bool {
    use std::io::{Read as _, Write as _};
    let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) else { return false };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let _ = stream.write_all(b"GET /health HTTP/1.0\r\n\r\n");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.contains("\"true\"")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("bound").port()
}

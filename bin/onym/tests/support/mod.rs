//! A daemon and commands as a person would start them, with deadlines instead of sleeps.

// Each test file uses a part of this.
#![allow(dead_code, clippy::unwrap_used)]

pub(crate) mod http;
pub(crate) mod managed;

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take before a test fails; generous, because machines are busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `done` says so.
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// How long the output of a process that has ended is read on: its children may keep the pipe open.
const REST: Duration = Duration::from_secs(2);

/// What a process wrote so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    text: Arc<Mutex<String>>,
    /// It is all there is.
    is_whole: Arc<AtomicBool>,
}

impl Said {
    fn of(pipe: impl Read + Send + 'static) -> Self {
        let said = Self::default();
        let to = said.clone();
        thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                let mut text = to.text.lock().unwrap();
                text.push_str(&line);
                text.push('\n');
            }
            to.is_whole.store(true, Ordering::Release);
        });
        said
    }

    pub(crate) fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }
}

/// A process that goes on beside the test; killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pub(crate) out: Said,
    pub(crate) err: Said,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = Said::of(child.stdout.take().unwrap());
        let err = Said::of(child.stderr.take().unwrap());
        Self { child, out, err }
    }

    /// Waits until it wrote `text`, on either side.
    pub(crate) fn wait_for(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        let has = |said: &Said| said.text().contains(text);
        while !has(&self.out) && !has(&self.err) {
            let exited = self.child.try_wait().unwrap();
            if exited.is_some() {
                self.read_on();
                if has(&self.out) || has(&self.err) {
                    return;
                }
            }
            let all = format!("{}{}", self.out.text(), self.err.text());
            assert!(exited.is_none(), "ended with {exited:?} before it said {text:?}: {all}");
            assert!(Instant::now() < end, "did not say {text:?}: {all}");
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether it is still there.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end and what it wrote; the exit code, `None` after a signal.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let mut status = None;
        wait_until("the end of a process", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        self.read_on();
        status.unwrap().code()
    }

    /// Waits until everything that it wrote was read, now that it has ended.
    fn read_on(&self) {
        let end = Instant::now() + REST;
        let is_whole = |said: &Said| said.is_whole.load(Ordering::Acquire);
        while !(is_whole(&self.out) && is_whole(&self.err)) && Instant::now() < end {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory with a home, a Unix socket and files.
#[derive(Debug)]
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn node(&self) -> String {
        format!("unix://{}", self.path("nfd.sock").display())
    }

    /// `onym` in surroundings that know this place's node only.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onym"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env("HOME", self.dir.path())
            .env("XDG_RUNTIME_DIR", self.dir.path())
            .env("ONYM_KEYSTORE", self.path("keys"))
            .env("NDN_CLIENT_TRANSPORT", self.node())
            .stdin(Stdio::null());
        command
    }

    /// Starts a daemon on this place's socket without network faces, and waits until it is ready.
    pub(crate) fn daemon(&self, sets: &[&str]) -> Running {
        let socket = format!("faces.unix.path={}", self.path("nfd.sock").display());
        let mut command = self.command(&["daemon", "--set", &socket]);
        for set in ["faces.udp.listen=", "faces.tcp.listen=", "faces.websocket.listen=", "shards=1"]
            .iter()
            .chain(sets)
        {
            command.args(["--set", set]);
        }
        let mut daemon = Running::start(&mut command);
        daemon.wait_for("ready\n");
        daemon
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        Ended::of(self.command(args).output().unwrap())
    }

    /// Starts a command that goes on.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::start(&mut self.command(args))
    }

    /// Starts `onym put` and waits until the node routes the name to it.
    pub(crate) fn put(&self, args: &[&str]) -> Running {
        let mut all = vec!["put"];
        all.extend(args);
        let mut put = self.start(&all);
        put.wait_for("ready: ");
        put
    }

    /// The JSON of a command that ends well.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let mut all = args.to_vec();
        all.push("--json");
        let ended = self.run(&all);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.err);
        serde_json::from_str(&ended.out).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", ended.out))
    }
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code, or less than 0: the signal that ended it.
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or_else(|| -output.status.signal().unwrap_or(0)),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Octets that look random and are the same for the same seed.
pub(crate) fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    let mut octets = Vec::with_capacity(len + 8);
    while octets.len() < len {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        octets.extend(seed.to_le_bytes());
    }
    octets.truncate(len);
    octets
}

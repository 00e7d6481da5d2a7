//! Services as processes of this machine: nothing to install.
//!
//! Each service has a folder under the manager's state: its order, its token, its log. The
//! process carries the manager's mark in its environment, so a manager that was killed between
//! starting it and noting it finds it all the same.

use super::{
    Answer, Driver, DriverError, Found, Order, Started, Usage, quota_us, ready_line, words,
};
use crate::network::Function;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The environment variable that marks a service: `<manager>/<instance>`.
pub const MARK: &str = "ONYM_MANAGED";
/// Time for a service to become ready.
const READY: Duration = Duration::from_secs(20);
/// Time for a service to end by itself.
const GRACE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// How services are run as processes.
#[derive(Debug, Clone)]
pub struct ProcessOptions {
    /// The program: `onym` itself.
    pub program: PathBuf,
    /// Folder for orders, tokens and logs.
    pub folder: PathBuf,
    /// Tells this manager's services from others'.
    pub manager: String,
    /// The address on which neighbours connect.
    pub host: String,
    /// Folder of control groups for processor time, such as /sys/fs/cgroup/cpu; none where quotas
    /// are not to be had.
    pub cgroup: Option<PathBuf>,
}

/// Services as processes.
#[derive(Debug)]
pub struct ProcessDriver {
    options: ProcessOptions,
    /// Children of this manager's life: they must be waited for.
    children: Mutex<HashMap<u32, Child>>,
}

impl ProcessDriver {
    /// A driver; nothing is started yet.
    #[must_use]
    pub fn new(options: ProcessOptions) -> Self {
        Self { options, children: Mutex::new(HashMap::new()) }
    }

    fn folder(&self, instance: &str) -> PathBuf {
        self.options.folder.join(instance)
    }

    fn spawn(&self, order: &Order) -> Result<(u32, PathBuf), DriverError> {
        let folder = self.folder(&order.instance);
        let fault = |e: std::io::Error| DriverError::start(&order.name, e);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(fault)?;
        let secret = |name: &str, text: &str| -> std::io::Result<()> {
            let path = folder.join(name);
            let mut file = fs::OpenOptions::new()
                .create(true)
                .truncate(true)
                .write(true)
                .mode(0o600)
                .open(path)?;
            file.write_all(text.as_bytes())
        };
        secret("token", &order.token).map_err(fault)?;
        let text = serde_json::to_string(order).map_err(|e| DriverError::start(&order.name, e))?;
        secret("order.json", &text).map_err(fault)?;
        let log = fs::File::create(folder.join("log")).map_err(fault)?;
        let token = folder.join("token").display().to_string();
        let mut command = Command::new(&self.options.program);
        command
            .args(words(order, &self.options.host, &format!("{}:0", self.options.host), &token))
            .env(MARK, format!("{}/{}", self.options.manager, order.instance))
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(fault)?)
            .stderr(log)
            // What ends the manager by its terminal does not end its services.
            .process_group(0);
        let child = command.spawn().map_err(|e| {
            DriverError::start(&order.name, format!("{}: {e}", self.options.program.display()))
        })?;
        let pid = child.id();
        self.children.lock().expect("invariant: no panic under this lock").insert(pid, child);
        Ok((pid, folder))
    }

    /// Whether `pid` runs: a child that ended is waited for.
    fn runs(&self, pid: u32) -> bool {
        let mut children = self.children.lock().expect("invariant: no panic under this lock");
        if let Some(child) = children.get_mut(&pid)
            && matches!(child.try_wait(), Ok(Some(_)))
        {
            children.remove(&pid);
            return false;
        }
        drop(children);
        stat(pid).is_some_and(|s| s.state != 'Z')
    }

    fn known(&self, handle: &str) -> Option<u32> {
        let (pid, begin) = handle.split_once(':')?;
        let pid: u32 = pid.parse().ok()?;
        let same = stat(pid).is_some_and(|s| s.begin.to_string() == begin);
        (same && self.runs(pid)).then_some(pid)
    }

    async fn start_now(&self, order: &Order) -> Result<Started, DriverError> {
        let (pid, folder) = self.spawn(order)?;
        let deadline = Instant::now() + READY;
        let text = || fs::read_to_string(folder.join("log")).unwrap_or_default();
        loop {
            let alive = self.runs(pid);
            if let Some((control, listeners)) = ready_line(&text()) {
                let Some(handle) = handle(pid).filter(|_| alive) else {
                    return Err(self.abandon(order, pid, &folder, "it ended at once"));
                };
                if order.function.quota.is_some() {
                    self.bound(pid, order.function.quota)
                        .map_err(|e| self.abandon(order, pid, &folder, &e.to_string()))?;
                }
                return Ok(Started { handle, control, listeners });
            }
            if !alive {
                let why = last_words(&text());
                return Err(self.abandon(order, pid, &folder, &why));
            }
            if Instant::now() > deadline {
                let why = format!("it was not ready within {} s", READY.as_secs());
                return Err(self.abandon(order, pid, &folder, &why));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Leaves nothing behind of a start that failed.
    fn abandon(&self, order: &Order, pid: u32, folder: &Path, why: &str) -> DriverError {
        if self.runs(pid) {
            signal(pid, rustix::process::Signal::KILL);
        }
        let mut children = self.children.lock().expect("invariant: no panic under this lock");
        if let Some(mut child) = children.remove(&pid) {
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(folder);
        DriverError::start(&order.name, why)
    }

    fn group(&self, pid: u32) -> Option<PathBuf> {
        let root = self.options.cgroup.as_ref()?;
        Some(root.join(format!("onym-{}-{pid}", self.options.manager)))
    }

    /// Sets a quota by the control group of the processor, of either version.
    fn bound(&self, pid: u32, cores: Option<f64>) -> Result<(), DriverError> {
        let doing = "limiting processor time";
        let Some(group) = self.group(pid) else {
            if cores.is_none() {
                return Ok(());
            }
            let why = "no cpu control group is writable; run as root or remove the quota";
            return Err(DriverError::engine(doing, why));
        };
        let (period, quota) = cores.map_or((10_000, None), |cores| {
            let (period, quota) = quota_us(cores);
            (period, Some(quota))
        });
        let work = || -> std::io::Result<()> {
            fs::create_dir_all(&group)?;
            if group.join("cpu.cfs_quota_us").exists() {
                // No quota while the period changes: one must fit the other at each moment.
                fs::write(group.join("cpu.cfs_quota_us"), "-1")?;
                fs::write(group.join("cpu.cfs_period_us"), period.to_string())?;
                fs::write(group.join("cpu.cfs_quota_us"), quota.unwrap_or(-1).to_string())?;
            } else {
                let quota = quota.map_or_else(|| "max".to_owned(), |q| q.to_string());
                fs::write(group.join("cpu.max"), format!("{quota} {period}"))?;
            }
            fs::write(group.join("cgroup.procs"), pid.to_string())
        };
        work().map_err(|e| DriverError::engine(doing, format!("{}: {e}", group.display())))
    }

    fn all(&self) -> Vec<Found> {
        let prefix = format!("{}/", self.options.manager);
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let pid = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok());
            let Some(pid) = pid else { continue };
            let Some(instance) =
                mark_of(pid).and_then(|m| m.strip_prefix(&prefix).map(str::to_owned))
            else {
                continue;
            };
            let folder = self.folder(&instance);
            let order = fs::read_to_string(folder.join("order.json"));
            let order = order.ok().and_then(|text| serde_json::from_str::<Order>(&text).ok());
            let (Some(order), Some(handle)) = (order, handle(pid)) else { continue };
            if !self.runs(pid) {
                continue;
            }
            let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
            let started = ready_line(&log).map(|(control, listeners)| Started {
                handle: handle.clone(),
                control,
                listeners,
            });
            found.push(Found { order, started, handle });
        }
        found
    }

    async fn stop_now(&self, handle: &str) {
        let Some(pid) = self.known(handle) else { return self.forget(handle) };
        signal(pid, rustix::process::Signal::TERM);
        let deadline = Instant::now() + GRACE;
        while self.known(handle).is_some() {
            if Instant::now() > deadline {
                signal(pid, rustix::process::Signal::KILL);
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.forget(handle);
    }

    /// Removes the control group of a process that ended.
    fn forget(&self, handle: &str) {
        let pid = handle.split_once(':').and_then(|(pid, _)| pid.parse().ok());
        if let Some(group) = pid.and_then(|pid| self.group(pid)) {
            let _ = fs::remove_dir(group);
        }
    }
}

impl Driver for ProcessDriver {
    fn word(&self) -> &'static str {
        "process"
    }

    fn prepare(&self) -> Answer<'_, ()> {
        Box::pin(async {
            let mut builder = fs::DirBuilder::new();
            let made = builder.recursive(true).mode(0o700).create(&self.options.folder);
            let shown = self.options.folder.display().to_string();
            made.map_err(|e| DriverError::engine(format!("making {shown}"), e))
        })
    }

    fn start<'a>(&'a self, order: &'a Order) -> Answer<'a, Started> {
        Box::pin(self.start_now(order))
    }

    fn list(&self) -> Answer<'_, Vec<Found>> {
        Box::pin(async { Ok(self.all()) })
    }

    fn check<'a>(
        &'a self,
        functions: &'a [(&'a str, &'a Function)],
        freed: &'a BTreeSet<String>,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            let program = &self.options.program;
            if let Some((name, _)) = functions.first().filter(|_| !program.is_file()) {
                let why = format!("{}: the program does not exist", program.display());
                return Err(DriverError::start(name, why));
            }
            super::check::listeners(functions, freed)
        })
    }

    fn alive<'a>(&'a self, handle: &'a str) -> Answer<'a, bool> {
        Box::pin(async { Ok(self.known(handle).is_some()) })
    }

    fn usage<'a>(&'a self, handle: &'a str) -> Answer<'a, Usage> {
        Box::pin(async {
            let gone = || DriverError::engine("reading usage", "the process is gone");
            let pid = self.known(handle).ok_or_else(gone)?;
            let stat = stat(pid).ok_or_else(gone)?;
            Ok(Usage { cpu_ns: cpu_ns(pid).unwrap_or(stat.cpu_ns), memory: stat.memory })
        })
    }

    fn limit<'a>(&'a self, handle: &'a str, cores: Option<f64>) -> Answer<'a, ()> {
        Box::pin(async move {
            let gone = || DriverError::engine("limiting", "the process is gone");
            self.bound(self.known(handle).ok_or_else(gone)?, cores)
        })
    }

    fn stop<'a>(&'a self, handle: &'a str) -> Answer<'a, ()> {
        Box::pin(async {
            self.stop_now(handle).await;
            Ok(())
        })
    }

    fn last_words<'a>(&'a self, handle: &'a str) -> Answer<'a, String> {
        Box::pin(async {
            let found = handle.split_once(':').and_then(|(pid, _)| pid.parse::<u32>().ok());
            let mark = found.and_then(mark_of);
            let instance = mark.as_deref().and_then(|m| m.split_once('/')).map(|(_, i)| i);
            let log = instance.map(|i| self.folder(i).join("log"));
            let text = log.and_then(|p| fs::read_to_string(p).ok()).unwrap_or_default();
            Ok(last_words(&text))
        })
    }
}

/// The mark in the environment of a process that we may read.
fn mark_of(pid: u32) -> Option<String> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let begin = format!("{MARK}=");
    let rows = environ.split(|b| *b == 0);
    rows.filter_map(|row| std::str::from_utf8(row).ok())
        .find_map(|row| row.strip_prefix(&begin).map(str::to_owned))
}

struct Stat {
    state: char,
    begin: u64,
    cpu_ns: u64,
    memory: u64,
}

/// What /proc tells about a process; the name in parentheses may hold anything.
fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|f| f.parse::<u64>().ok());
    const TICK_NS: u64 = 10_000_000; // USER_HZ is 100 on every Linux that Rust runs on.
    Some(Stat {
        state: fields.first()?.chars().next()?,
        begin: number(19)?,
        cpu_ns: (number(11)? + number(12)?) * TICK_NS,
        memory: number(21)? * 4096,
    })
}

/// Processor time of all threads in nanoseconds, finer than the ticks of `stat`.
fn cpu_ns(pid: u32) -> Option<u64> {
    let mut total = 0u64;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        total += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(total)
}

fn handle(pid: u32) -> Option<String> {
    stat(pid).map(|s| format!("{pid}:{}", s.begin))
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The end of a log, for an error.
fn last_words(text: &str) -> String {
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("ready ")).collect();
    let from = lines.len().saturating_sub(3);
    if lines.is_empty() { "it ended without a word".to_owned() } else { lines[from..].join("; ") }
}

/// The control group folder of the processor that can be written here, if any.
#[must_use]
pub fn usable_cgroup() -> Option<PathBuf> {
    let trial = |root: &str| {
        let folder = Path::new(root).join(format!("onym-trial-{}", std::process::id()));
        let made = fs::create_dir(&folder).is_ok();
        let usable =
            made && (folder.join("cpu.cfs_quota_us").exists() || folder.join("cpu.max").exists());
        if made {
            let _ = fs::remove_dir(&folder);
        }
        usable.then(|| PathBuf::from(root))
    };
    ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"]
        .into_iter()
        .find_map(trial)
}

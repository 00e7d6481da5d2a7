//! A folder of the laboratory's results: how far its runs are, and their reports. It is read only.
//!
//! The layout is that of `lab/README.md`: `<experiment>/<run>/`, with `plan.json`, `state.json`, a
//! `state.json` for each replicate, and the files of its report.

mod plans;

use crate::refused::{Kind, Refused};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName};
use plans::{Plan, Plans};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

/// Runs that are told; those that come later in the order of names are counted.
const RUNS_MAX: usize = 500;
/// Replicates whose state is read for one answer.
const READ_MAX: usize = 8192;
/// Files of a report that are told.
const FILES_MAX: usize = 200;
/// Longest file of a plan or state, in octets.
const STATE_MAX: u64 = 4 << 20;
/// Longest file of a report, in octets.
const FILE_MAX: u64 = 64 << 20;

/// What a report may do in a browser: show itself, and offer its numbers. No script runs, nothing is
/// loaded, and it is of no origin, so it reaches nothing of the console.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'; sandbox allow-downloads";

/// The kinds of files that a report has, with whether a browser shows them.
const KINDS: [(&str, &str, bool); 5] = [
    ("html", "text/html; charset=utf-8", true),
    ("pdf", "application/pdf", false),
    ("svg", "image/svg+xml", true),
    ("png", "image/png", true),
    ("csv", "text/csv; charset=utf-8", false),
];

/// A folder of results.
#[derive(Debug, Clone)]
pub(crate) struct Lab {
    folder: PathBuf,
    plans: Arc<Mutex<Plans>>,
}

/// A file of a report, with what a browser is told about it.
pub(crate) struct Report {
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) octets: Vec<u8>,
}

/// All runs of the folder.
#[derive(Debug, Serialize)]
struct Told {
    now_ms: u64,
    runs: Vec<Run>,
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct Run {
    experiment: String,
    run: String,
    /// `replicates`, `aggregate`, `report`, `done`; none: it did not begin.
    phase: Option<String>,
    why: Option<String>,
    /// Replicates: all of the plan, and those that are done; none where too many would be read.
    total: usize,
    done: Option<usize>,
    /// Seconds that the replicates took so far.
    took_s: f64,
    /// When anything of it changed last, in milliseconds of Unix time.
    changed_ms: u64,
    /// What is under way, or was when it stopped.
    now: Option<Now>,
    reports: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Now {
    label: String,
    replication: u64,
    phase: String,
    attempts: u64,
    began_ms: u64,
    why: Option<String>,
}

/// Whether it can be the name of a folder or file of results: nothing that leads elsewhere, or is
/// hidden.
fn is_plain(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._=+,@-".contains(c);
    !name.is_empty() && name.len() <= 200 && !name.starts_with('.') && name.chars().all(fits)
}

fn kind_of(name: &str) -> Option<&'static (&'static str, &'static str, bool)> {
    let (_, end) = name.rsplit_once('.')?;
    KINDS.iter().find(|(kind, ..)| *kind == end)
}

/// Names of what is in a folder, in their order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_plain(name)).collect();
    names.sort();
    names
}

/// At most `max` octets of a file; none when it is longer, no file, or not there.
fn read(path: &Path, max: u64) -> Option<Vec<u8>> {
    // Before it is opened: a pipe would wait for a writer.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let mut octets = Vec::new();
    file.take(max + 1).read_to_end(&mut octets).ok()?;
    (octets.len() as u64 <= max).then_some(octets)
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&read(path, STATE_MAX)?).ok()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Milliseconds of seconds.
fn ms(value: &Value) -> u64 {
    let seconds = value.as_f64().filter(|s| (0.0..1e12).contains(s)).unwrap_or(0.0);
    u64::try_from(std::time::Duration::from_secs_f64(seconds).as_millis()).unwrap_or(0)
}

/// When a file changed last, in milliseconds of Unix time.
fn changed(path: &Path) -> u64 {
    let modified = fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let since = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(0)
}

impl Lab {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, plans: Arc::default() }
    }

    /// All runs with their state, as JSON.
    pub(crate) fn runs(&self, now_ms: u64) -> Result<String, Refused> {
        let (mut runs, mut left_out, mut reads) = (Vec::new(), 0, READ_MAX);
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = HashSet::new();
        for experiment in names(&self.folder) {
            let folder = self.folder.join(&experiment);
            for run in names(&folder) {
                let path = folder.join(&run).join("plan.json");
                if runs.len() >= RUNS_MAX {
                    left_out += usize::from(path.is_file());
                    continue;
                }
                let plan = plans.get(&path, |path| json(path).as_ref().map(Plan::of));
                seen.insert(path);
                let Some(plan) = plan else { continue };
                runs.push(Run::of(&folder.join(&run), &experiment, &run, &plan, &mut reads));
            }
        }
        plans.keep(&seen);
        let told = Told { now_ms, runs, left_out };
        serde_json::to_string(&told).map_err(|e| Refused::new(Kind::Failed, e.to_string()))
    }

    /// The file of a report, `<experiment>/<run>/report.html` and its like.
    pub(crate) fn file(&self, path: &str) -> Result<Report, Refused> {
        let nowhere = || Refused::new(Kind::NotFound, "there is no such file of a report");
        let parts: Vec<&str> = path.split('/').collect();
        let (name, is_of_report) = match parts.as_slice() {
            [_, _, name] => (*name, name.starts_with("report.")),
            [_, _, "plots", name] => (*name, true),
            _ => return Err(nowhere()),
        };
        let kind = kind_of(name).filter(|_| is_of_report && parts.iter().all(|p| is_plain(p)));
        let Some((_, media, is_shown)) = kind else { return Err(nowhere()) };
        // A link in the folder may lead out of it.
        let root = self.folder.canonicalize().map_err(|_| nowhere())?;
        let file = root.join(path).canonicalize().map_err(|_| nowhere())?;
        if !file.starts_with(&root) {
            return Err(nowhere());
        }
        let octets = read(&file, FILE_MAX).ok_or_else(nowhere)?;
        let mut headers = vec![
            (CONTENT_TYPE, HeaderValue::from_static(media)),
            (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        ];
        if !is_shown {
            let said = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
            headers.push((CONTENT_DISPOSITION, said.map_err(|_| nowhere())?));
        }
        Ok(Report { headers, octets })
    }
}

impl Run {
    fn of(folder: &Path, experiment: &str, run: &str, plan: &Plan, reads: &mut usize) -> Self {
        let state = json(&folder.join("state.json")).unwrap_or_default();
        let is_done = state["phase"] == "done";
        let mut made = Self {
            experiment: experiment.to_owned(),
            run: run.to_owned(),
            phase: text(&state["phase"]),
            why: text(&state["why"]),
            total: plan.total,
            done: is_done.then_some(plan.total),
            took_s: state["took"].as_f64().unwrap_or(0.0),
            changed_ms: changed(&folder.join("state.json")),
            now: None,
            reports: reports(folder),
        };
        // What is done has no replicate to look at.
        if !is_done && plan.total <= *reads {
            *reads -= plan.total;
            made.look(folder, plan);
        }
        made
    }

    /// Counts the replicates, and finds the one that changed last.
    fn look(&mut self, folder: &Path, plan: &Plan) {
        let mut done = 0;
        for (cell, replication) in plan.order.iter().filter(|(cell, _)| is_plain(cell)) {
            let path = folder.join("cells").join(cell).join(format!("r{replication}"));
            let Some(state) = json(&path.join("state.json")) else { continue };
            self.took_s += state["took"].as_f64().unwrap_or(0.0);
            let at = changed(&path.join("state.json"));
            self.changed_ms = self.changed_ms.max(at);
            if state["phase"] == "done" {
                done += 1;
                continue;
            }
            self.now = Some(Now {
                label: plan.labels.get(cell).unwrap_or(cell).clone(),
                replication: *replication,
                phase: text(&state["phase"]).unwrap_or_else(|| "begins".to_owned()),
                attempts: state["attempts"].as_u64().unwrap_or(0),
                began_ms: ms(&state["began"]),
                why: text(&state["why"]),
            });
        }
        self.done = Some(done);
    }
}

/// The files of a run's report.
fn reports(folder: &Path) -> Vec<String> {
    let own = names(folder).into_iter().filter(|name| name.starts_with("report."));
    let plots = names(&folder.join("plots")).into_iter().map(|name| format!("plots/{name}"));
    own.chain(plots).filter(|name| kind_of(name).is_some()).take(FILES_MAX).collect()
}

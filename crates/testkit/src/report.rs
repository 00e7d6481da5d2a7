//! Runs many scripts and reports, one line each and a summary.

use crate::run::{Outcome, run};
use crate::script::Script;
use crate::subject::Bench;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How each script ended, in the order of the scripts.
#[derive(Debug)]
pub struct Report {
    /// Name of the bench.
    pub subject: String,
    /// Script names and outcomes.
    pub outcomes: Vec<(String, Outcome)>,
}

/// Runs the scripts on `threads` threads, but those that `forbidden` gives a reason against.
pub fn run_but(
    bench: &dyn Bench,
    scripts: &[Script],
    threads: usize,
    forbidden: &(dyn Fn(&Script) -> Option<String> + Sync),
) -> Report {
    let next = AtomicUsize::new(0);
    let outcomes: Vec<Mutex<Option<Outcome>>> = scripts.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, 64) {
            scope.spawn(|| {
                while let Some((i, script)) = {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    scripts.get(i).map(|s| (i, s))
                } {
                    let outcome = match forbidden(script) {
                        Some(reason) => Outcome::Skipped(reason),
                        None => run(bench, script),
                    };
                    if let Ok(mut slot) = outcomes[i].lock() {
                        *slot = Some(outcome);
                    }
                }
            });
        }
    });
    let ended = |slot: Mutex<Option<Outcome>>| {
        let slot = slot.into_inner().unwrap_or(None);
        slot.unwrap_or_else(|| Outcome::Failed("the runner itself failed".into()))
    };
    let outcomes =
        scripts.iter().map(|s| s.name.clone()).zip(outcomes.into_iter().map(ended)).collect();
    Report { subject: bench.name().into(), outcomes }
}

/// Runs the scripts on `threads` threads.
pub fn run_all(bench: &dyn Bench, scripts: &[Script], threads: usize) -> Report {
    run_but(bench, scripts, threads, &|_| None)
}

impl Report {
    /// The messages of the scripts that failed.
    #[must_use]
    pub fn failures(&self) -> Vec<&str> {
        let outcomes = self.outcomes.iter().map(|(_, outcome)| outcome);
        outcomes
            .filter_map(|outcome| match outcome {
                Outcome::Failed(text) | Outcome::NotSetUp(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// How many passed, failed, and were skipped or deviate.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |f: fn(&Outcome) -> bool| self.outcomes.iter().filter(|(_, o)| f(o)).count();
        (
            count(|o| *o == Outcome::Passed),
            count(|o| matches!(o, Outcome::Failed(_) | Outcome::NotSetUp(_))),
            count(|o| matches!(o, Outcome::Skipped(_) | Outcome::Deviates(_))),
        )
    }

    /// One line for each script that was not run, with the reason.
    #[must_use]
    pub fn skips(&self) -> String {
        let line = |(name, outcome): &(String, Outcome)| match outcome {
            Outcome::Skipped(reason) => Some(format!("skip  {name}: {reason}\n")),
            _ => None,
        };
        self.outcomes.iter().filter_map(line).collect()
    }

    /// One line for each script.
    #[must_use]
    pub fn lines(&self) -> String {
        self.outcomes.iter().map(|(name, outcome)| line(name, outcome)).collect()
    }

    /// One line for each script that failed or deviates.
    #[must_use]
    pub fn remarks(&self) -> String {
        let worth =
            |(_, o): &&(String, Outcome)| !matches!(o, Outcome::Passed | Outcome::Skipped(_));
        self.outcomes.iter().filter(worth).map(|(name, outcome)| line(name, outcome)).collect()
    }

    /// One line that sums up.
    #[must_use]
    pub fn summary(&self) -> String {
        let (passed, failed, rest) = self.counts();
        let known = |(_, o): &&(String, Outcome)| matches!(o, Outcome::Deviates(_));
        let known = self.outcomes.iter().filter(known).count();
        let skipped = rest - known;
        let known = if known == 0 { String::new() } else { format!(", {known} known deviations") };
        format!("{}: {passed} passed, {failed} failed, {skipped} skipped{known}", self.subject)
    }
}

fn line(name: &str, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed => format!("ok    {name}\n"),
        Outcome::Skipped(reason) => format!("skip  {name}: {reason}\n"),
        Outcome::Deviates(reason) => format!("known {name}: {reason}\n"),
        Outcome::Failed(text) | Outcome::NotSetUp(text) => {
            format!("FAIL  {name}\n  {}\n", text.replace('\n', "\n  "))
        }
    }
}

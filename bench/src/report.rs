//! Rows for programs, tables for people.

use anyhow::{Context, Result};
use serde::Serialize;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// One value of one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which benchmark.
    pub bench: &'static str,
    /// `key=value` pairs joined by commas.
    pub case: String,
    /// What was measured.
    pub subject: &'static str,
    /// Which metric, of the registry's list.
    pub metric: &'static str,
    /// The value: the median of the rounds.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
}

/// All rows of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// In the order measured.
    pub rows: Vec<Row>,
}

/// The middle of `values`; 0 when there are none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// The unit of a metric.
fn unit(metric: &str) -> &'static str {
    match metric {
        "exchanges_per_second"
        | "lookups_per_second"
        | "frames_per_second"
        | "messages_per_second" => "1/s",
        "goodput_bps" => "bit/s",
        "latency_mean_s" | "latency_p50_s" | "latency_p99_s" | "latency_p999_s"
        | "latency_max_s" | "cpu_s" => "s",
        "rss_bytes" | "octets_per_entry" => "B",
        _ => "1",
    }
}

impl Report {
    /// Adds a value.
    pub fn add(
        &mut self,
        bench: &'static str,
        case: &str,
        subject: &'static str,
        metric: &'static str,
        value: f64,
    ) {
        let (case, unit) = (case.to_owned(), unit(metric));
        self.rows.push(Row { bench, case, subject, metric, value, unit });
    }

    /// The value of a row.
    #[must_use]
    pub fn value(&self, bench: &str, case: &str, subject: &str, metric: &str) -> Option<f64> {
        let same = |r: &&Row| {
            r.bench == bench && r.case == case && r.subject == subject && r.metric == metric
        };
        self.rows.iter().rev().find(same).map(|r| r.value)
    }

    /// Puts the rows into `path`, in place of those of the same benchmarks from earlier runs.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let fresh = |bench: &str| self.rows.iter().any(|r| r.bench == bench);
        let mut all: Vec<serde_json::Value> = match fs::read(path) {
            Ok(old) => serde_json::from_slice(&old).unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        all.retain(|row| !row["bench"].as_str().is_some_and(fresh));
        for row in &self.rows {
            all.push(serde_json::to_value(row)?);
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, serde_json::to_string_pretty(&all)? + "\n")
            .with_context(|| format!("{}", path.display()))
    }

    /// Writes the rows of this run to `path` as CSV, with the members of [`Row`] as heads.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_csv(&self, path: &Path) -> Result<()> {
        let mut text = String::from("bench,case,subject,metric,value,unit\n");
        for Row { bench, case, subject, metric, value, unit } in &self.rows {
            // Cases hold commas; nothing holds quotation marks.
            let _ = writeln!(text, "{bench},\"{case}\",{subject},{metric},{value},{unit}");
        }
        fs::write(path, text).with_context(|| format!("{}", path.display()))
    }
}

/// A number for people, with a prefix of thousands.
#[must_use]
pub fn human(value: f64) -> String {
    let steps = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    for (step, letter) in steps {
        if value.abs() >= step {
            return format!("{:.2} {letter}", value / step);
        }
    }
    format!("{value:.2} ")
}

/// A time for people.
#[must_use]
pub fn human_time(seconds: f64) -> String {
    if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 1e-3 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{:.0} us", seconds * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_benchmark_replace_its_older_rows_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/bench.json");
        let mut first = Report::default();
        first.add("unix", "payload=100", "onym", "exchanges_per_second", 1.0);
        first.add("idle", "seconds=10", "onym", "cpu_s", 0.1);
        first.write(&path).unwrap();
        let mut second = Report::default();
        second.add("unix", "payload=100", "onym", "exchanges_per_second", 2.0);
        second.write(&path).unwrap();
        let rows: Vec<serde_json::Value> =
            serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!((&rows[0]["bench"], &rows[1]["value"]), (&"idle".into(), &2.0.into()));
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(human(1_234_567.0), "1.23 M");
    }
}

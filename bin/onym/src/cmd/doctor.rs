//! `onym doctor`: checks whether this machine can run a node, and how to fix what is missing.

mod keys;
mod node;
mod routing;
mod sockets;
mod system;

use super::top;
use crate::exit::{Exit, Failure};
use crate::output::Context;
use onym_node::config::Config;
use serde::Serialize;
use std::path::PathBuf;

/// Check what a node needs on this machine, and say how to fix what is missing.
///
/// Tests the node that answers, sockets, buffer limits, MTU, clock, privileges, descriptors, memory
/// and keys, and the router of the node: clocks, keys, MTU and direction of its links. What needs a
/// node is a warning when none runs, and a failure when --node or NDN_CLIENT_TRANSPORT names one.
/// With --live the traffic of the node that answers is looked at instead.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym doctor
  onym doctor --config /etc/onym/onym.toml
  onym doctor --json | jq '.checks[] | select(.result != \"ok\")'
  onym doctor --live            what slows the node down, in sentences

Each check ends as ok, warning (a node runs, but something is less good than it could be) or failed
(a node with this configuration does not start, or does not do what was asked).
Exit code 0 when nothing failed, else 1.")]
pub(crate) struct Args {
    /// Configuration file whose settings are tested; without it the defaults.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set one key, over the file; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Look at the node that answers for a second, in place of the checks, and print what slows it
    /// down, as `onym top --why` does.
    #[arg(long, conflicts_with_all = ["config", "sets"])]
    live: bool,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Grade {
    Ok,
    Warning,
    Failed,
}

impl Grade {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "FAILED",
        }
    }
}

/// One check: what was found and, unless all is well, how to mend it.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    result: Grade,
    found: String,
    mend: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, result: Grade::Ok, found: found.into(), mend: None }
    }

    fn warning(check: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { check, result: Grade::Warning, found: found.into(), mend: Some(mend.into()) }
    }

    fn failed(check: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { check, result: Grade::Failed, found: found.into(), mend: Some(mend.into()) }
    }
}

/// The report, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    /// The worst of the checks.
    result: Grade,
    checks: Vec<Finding>,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    if args.live {
        return top::why(cx);
    }
    let mut checks = Vec::new();
    let config = configuration(&args, &mut checks);
    let running = node::check(cx, &mut checks);
    sockets::check(&config, running.as_ref(), &mut checks);
    system::check(&config, running.as_ref(), &mut checks);
    keys::check(&mut checks);
    keys::check_routing(&config, &mut checks);
    if running.is_some() {
        routing::check(cx, &mut checks);
    }
    let result = checks.iter().map(|c| c.result).max().unwrap_or(Grade::Ok);
    let report = Report { version: env!("CARGO_PKG_VERSION"), result, checks };
    cx.print(&report, text)?;
    let failed = report.checks.iter().filter(|c| c.result == Grade::Failed).count();
    if failed == 0 {
        return Ok(());
    }
    Err(Failure::new(Exit::Failed, format!("{failed} of {} checks failed", report.checks.len()))
        .next("fix them from the top; each says how")
        .into())
}

/// The configuration to test: the defaults when the one that was named is wrong, so that the
/// other checks still say something.
fn configuration(args: &Args, checks: &mut Vec<Finding>) -> Config {
    const CHECK: &str = "configuration";
    match Config::load(args.config.as_deref(), &args.sets) {
        Ok(config) => {
            let from = match &args.config {
                Some(file) => file.display().to_string(),
                None => "the defaults".into(),
            };
            checks.push(Finding::ok(CHECK, format!("{from}, good")));
            config
        }
        Err(error) => {
            let mend = "docs/config.md lists every key; what follows tests the defaults";
            checks.push(Finding::failed(CHECK, error.to_string(), mend));
            Config::default()
        }
    }
}

fn text(report: &Report) -> String {
    let width = report.checks.iter().map(|c| c.check.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for c in &report.checks {
        let found = c.found.replace('\n', "\n         ");
        lines.push(format!("{:<8} {:<width$}  {found}", c.result.word(), c.check));
        if let Some(mend) = &c.mend {
            lines.push(format!("{:<8} {:<width$}  mend: {mend}", "", ""));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_configuration_fails_and_the_defaults_are_tested_instead() {
        let args = Args { config: None, sets: vec!["no.such.key=1".into()], live: false };
        let mut checks = Vec::new();
        let config = configuration(&args, &mut checks);
        assert_eq!(config, Config::default());
        assert!(checks[0].result == Grade::Failed && checks[0].found.contains("no"));
    }

    #[test]
    fn every_finding_that_is_not_ok_says_how_to_mend_it() {
        let config = Config::load(None, &["faces.udp.listen=192.0.2.1:1".into()]).unwrap();
        let mut checks = Vec::new();
        sockets::check(&config, None, &mut checks);
        system::check(&config, None, &mut checks);
        for c in &checks {
            assert_eq!(c.result == Grade::Ok, c.mend.is_none(), "{c:?}");
        }
        let udp = checks.iter().find(|c| c.check == "udp").unwrap();
        assert_eq!(udp.result, Grade::Failed, "an address of documentation: {udp:?}");
        assert!(text(&Report { version: "0", result: Grade::Failed, checks }).contains("mend: "));
    }
}

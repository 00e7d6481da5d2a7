//! `onym check-config`: validates a configuration.

use crate::exit::{Exit, Failure};
use crate::human;
use crate::output::Context;
use onym_node::config::Config;
use onym_node::mgmt::Options;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Check a configuration file without starting anything.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym check-config /etc/onym/onym.toml
  onym check-config onym.toml --set shards=2")]
pub(crate) struct Args {
    /// The file.
    file: PathBuf,
    /// Set one key, over the file; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Checked {
    file: PathBuf,
    good: bool,
    shards: usize,
    faces: usize,
    routes: usize,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Failed, "the configuration is wrong")
            .why(error)
            .next("docs/config.md lists every key with its default")
    };
    let config = Config::load(Some(&args.file), &args.sets).map_err(|e| wrong(&e))?;
    let base = args.file.parent().unwrap_or(Path::new("."));
    let origin = args.file.display().to_string();
    Options::from_config(&config, &origin, base).map_err(|e| wrong(&e))?;
    let checked = Checked {
        file: args.file,
        good: true,
        shards: config.shard_count(),
        faces: config.face.len(),
        routes: config.route.len(),
    };
    cx.print(&checked, |c| {
        format!(
            "{} is good: {}, {}, {}",
            c.file.display(),
            human::count(c.shards as u64, "shard"),
            human::count(c.faces as u64, "face"),
            human::count(c.routes as u64, "route")
        )
    })
}

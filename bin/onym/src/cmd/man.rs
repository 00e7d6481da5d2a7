//! `onym man DIR`: one page per command, made from the command tree, for packages.

use crate::output::{self, Context};
use anyhow::Context as _;
use std::path::{Path, PathBuf};

/// Write the manual pages into a directory.
#[derive(Debug, clap::Args)]
#[command(hide = true, after_help = "Example:\n  onym man target/man && man target/man/onym-get.1")]
pub(crate) struct Args {
    /// Where to write; made when absent.
    directory: PathBuf,
}

pub(crate) fn run(args: Args, _cx: &Context) -> anyhow::Result<()> {
    let directory = &args.directory;
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let mut tree = crate::cli::tree();
    tree.build();
    page(directory, &tree, "onym")?;
    pages(directory, &tree, "onym")
}

fn pages(directory: &Path, command: &clap::Command, name: &str) -> anyhow::Result<()> {
    for sub in command.get_subcommands().filter(|s| !s.is_hide_set()) {
        let name = format!("{name}-{}", sub.get_name());
        page(directory, sub, &name)?;
        pages(directory, sub, &name)?;
    }
    Ok(())
}

fn page(directory: &Path, command: &clap::Command, name: &str) -> anyhow::Result<()> {
    let path = directory.join(format!("{name}.1"));
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name).render(&mut text)?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    output::write_line(&path.display().to_string())
}

//! `onym completions SHELL`: made from the command tree, for packages.

use crate::output::Context;
use clap_complete::Shell;

/// Print a shell's completion script.
#[derive(Debug, clap::Args)]
#[command(
    hide = true,
    after_help = "Example:\n  onym completions bash > /etc/bash_completion.d/onym"
)]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: Args, _cx: &Context) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::cli::tree(), "onym", &mut script);
    crate::output::write_raw(&script)
}

//! `onym completions SHELL`: made from the command tree, for packages.

use crate::output::Context;
use clap_complete::Shell;
use std::io;

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

// The signature is the one that all commands share.
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn run(args: Args, _cx: &Context) -> anyhow::Result<()> {
    clap_complete::generate(args.shell, &mut crate::cli::tree(), "onym", &mut io::stdout());
    Ok(())
}

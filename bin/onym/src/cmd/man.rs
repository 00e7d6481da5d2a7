//! `onym man DIR`: one page per command, made from the command tree, for packages; and the same
//! tree as one page of Markdown, docs/cli.md.

use crate::output::{self, Context};
use anyhow::Context as _;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Write the manual pages into a directory.
#[derive(Debug, clap::Args)]
#[command(
    hide = true,
    after_help = "Examples:
  onym man target/man && man target/man/onym-get.1
  onym man --markdown > docs/cli.md"
)]
pub(crate) struct Args {
    /// Where to write; made when absent.
    #[arg(required_unless_present = "markdown")]
    directory: Option<PathBuf>,
    /// Print one page of Markdown with all commands instead.
    #[arg(long)]
    markdown: bool,
}

pub(crate) fn run(args: Args, _cx: &Context) -> anyhow::Result<()> {
    let mut tree = crate::cli::tree();
    tree.build();
    let Some(directory) = args.directory.filter(|_| !args.markdown) else {
        return output::write_line(&markdown(&tree));
    };
    let directory = &directory;
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    page(directory, &tree, "onym")?;
    pages(directory, &tree, "onym")
}

/// The commands below `command` that people see.
fn shown(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|s| !s.is_hide_set() && s.get_name() != "help")
}

fn pages(directory: &Path, command: &clap::Command, name: &str) -> anyhow::Result<()> {
    for sub in shown(command) {
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
    crate::target::write(&path, &text)?;
    output::write_line(&path.display().to_string())
}

/// All commands with their help.
fn markdown(tree: &clap::Command) -> String {
    let mut text = String::from(
        "# Command line\n\nWritten by `cargo run -p onym -- man --markdown > docs/cli.md`; do not edit.\n\
         Every command takes `--node URI` and `--json` too.\n",
    );
    section(&mut text, tree, "onym");
    sections(&mut text, tree, "onym");
    text
}

fn sections(text: &mut String, command: &clap::Command, name: &str) {
    for sub in shown(command) {
        let name = format!("{name} {}", sub.get_name());
        // These are said once, at the top.
        let hide = |id| move |arg: clap::Arg| if arg.get_id() == id { arg.hide(true) } else { arg };
        let brief =
            sub.clone().mut_args(hide("node")).mut_args(hide("json")).mut_args(hide("help"));
        section(text, &brief, &name);
        sections(text, sub, &name);
    }
}

fn section(text: &mut String, command: &clap::Command, name: &str) {
    let help = command.clone().render_long_help().to_string();
    let lines: Vec<_> = help.lines().map(str::trim_end).collect();
    let _ = write!(text, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim());
}

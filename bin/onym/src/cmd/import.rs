//! `onym import`: the configuration of another forwarder as ours.

use crate::exit::{Exit, Failure};
use crate::output::{self, Context};
use onym_import::{Imported, Origin};
use onym_node::config::Config;
use serde::Serialize;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Longest file, in octets.
const BYTES_MAX: u64 = 4 << 20;

/// Write the configuration of NFD or ndnd as the node's.
///
/// What has no equivalent becomes a comment with its line, and what to do instead.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym import /etc/ndn/nfd.conf
  onym import yanfd.yml -o /etc/onym/onym.toml
  onym import conf.txt --from nfd --json")]
pub(crate) struct Args {
    /// The file: nfd.conf of NFD, or yanfd.yml of ndnd.
    file: PathBuf,
    /// Program that the file belongs to; by default ndnd for .yml and .yaml, NFD for others.
    #[arg(long, value_enum)]
    from: Option<Program>,
    /// Write the configuration to this file, which must not exist yet.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Program {
    Nfd,
    Ndnd,
}

/// What was read, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Report {
    toml: String,
    notes: Vec<Note>,
}

#[derive(Debug, Serialize)]
struct Note {
    line: usize,
    text: String,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let wrong = |what: &str| Failure::new(Exit::Failed, format!("{} {what}", args.file.display()));
    let size = fs::metadata(&args.file).map_err(|e| wrong("cannot be read").why(e))?.len();
    if size > BYTES_MAX {
        let why = format!("it has {size} octets; a configuration has at most {BYTES_MAX}");
        return Err(wrong("is not read").why(why).into());
    }
    let text = fs::read_to_string(&args.file).map_err(|e| wrong("cannot be read").why(e))?;
    let from = args.from.unwrap_or_else(|| by_name(&args.file));
    let origin = match from {
        Program::Nfd => Origin::Nfd,
        Program::Ndnd => Origin::Ndnd,
    };
    let imported = onym_import::import(origin, &text).map_err(|e| {
        wrong("cannot be imported")
            .why(e)
            .next("say with `--from` which program the configuration belongs to")
    })?;
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let toml = imported.to_toml(&name)?;
    Config::parse(&toml, "as our configuration").map_err(|e| {
        let next = "correct the value, or remove the key";
        wrong("says what a node does not take").why(e).next(next)
    })?;
    match &args.output {
        Some(path) => write(path, &toml)?,
        None if !cx.json => return output::write_line(&toml),
        None => {}
    }
    cx.print(&report(toml, &imported), |report| told(report, args.output.as_deref()))
}

fn by_name(file: &Path) -> Program {
    let is_yaml = file.extension().is_some_and(|ext| ext == "yml" || ext == "yaml");
    if is_yaml { Program::Ndnd } else { Program::Nfd }
}

fn write(path: &Path, toml: &str) -> anyhow::Result<()> {
    let failed = |error| {
        Failure::new(Exit::Failed, format!("{} was not written", path.display())).why(error)
    };
    let mut file = fs::File::create_new(path).map_err(failed)?;
    Ok(file.write_all(toml.as_bytes()).map_err(failed)?)
}

fn report(toml: String, imported: &Imported) -> Report {
    let notes = imported.notes.iter().map(|n| Note { line: n.line, text: n.text.clone() });
    Report { toml, notes: notes.collect() }
}

fn told(report: &Report, output: Option<&Path>) -> String {
    let mut text = String::new();
    for note in &report.notes {
        text.push_str(&format!("line {}: {}\n", note.line, note.text));
    }
    if let Some(path) = output {
        text.push_str(&format!("{} is written; `onym daemon --config` takes it", path.display()));
    }
    text
}

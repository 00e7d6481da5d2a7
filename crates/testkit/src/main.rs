//! `onym-testkit --subject core [FILE…]`: runs packet scripts and prints one line for each.

use anyhow::{Context, Result, bail};
use onym_testkit::subject::Bench;
use onym_testkit::{core, files, index, report};
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "onym-testkit [--subject core] [--threads N] [FILE…]
onym-testkit --index

Runs packet scripts (all of spec/conformance/pull when no FILE is given), prints one line for each
and a summary; exits with 1 when one failed.

  --subject core       the forwarding core in memory, in virtual time
  --index              print spec/conformance/README.md
";

struct Args {
    subject: String,
    threads: usize,
    files: Vec<PathBuf>,
    index: bool,
}

fn args() -> Result<Option<Args>> {
    let mut args = Args { subject: "core".into(), threads: 8, files: Vec::new(), index: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} wants a value"));
        match word.as_str() {
            "--subject" => args.subject = value()?,
            "--threads" => args.threads = value()?.parse().context("--threads wants a number")?,
            "--index" => args.index = true,
            "--help" | "-h" => return Ok(None),
            flag if flag.starts_with('-') => bail!("unknown option {flag}; see --help"),
            file => args.files.push(file.into()),
        }
    }
    Ok(Some(args))
}

fn bench(subject: &str) -> Result<Box<dyn Bench>> {
    match subject {
        "core" => Ok(Box::new(core::Core)),
        other => bail!("unknown subject {other}; allowed: core"),
    }
}

fn main() -> Result<ExitCode> {
    let Some(args) = args()? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    let folder = files::conformance();
    let loaded = if args.files.is_empty() {
        files::load_all(&folder.join("pull"))
    } else {
        files::load(&args.files)
    };
    let scripts = match loaded {
        Ok(scripts) => scripts,
        Err(errors) => {
            for error in &errors {
                eprintln!("{error}");
            }
            bail!("{} scripts cannot be used", errors.len());
        }
    };
    if args.index {
        let sections = std::fs::read_to_string(folder.join("sections.txt"))?;
        print!("{}", index::index(&scripts, &index::sections(&sections)));
        return Ok(ExitCode::SUCCESS);
    }
    let report = report::run_all(bench(&args.subject)?.as_ref(), &scripts, args.threads);
    print!("{}", report.lines());
    println!("{}", report.summary());
    Ok(if report.counts().1 == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

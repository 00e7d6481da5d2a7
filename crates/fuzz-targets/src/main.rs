//! `onym-fuzz-targets seeds`: writes the inputs that follow from the specification.
//! `onym-fuzz-targets run TARGET SECONDS [SEED]`: changes inputs at random for so long.
//! `onym-fuzz-targets one TARGET FILE`: runs one input.

use onym_fuzz_targets::{TARGETS, corpus, mutate, target};
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "usage: seeds | run TARGET SECONDS [SEED] | one TARGET FILE";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["seeds"] => seeds(),
        ["run", name, seconds] => run(name, seconds, "1"),
        ["run", name, seconds, seed] => run(name, seconds, seed),
        ["one", name, file] => one(name, file),
        _ => Err(io::Error::other(USAGE)),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::from(2)
        }
    }
}

fn seeds() -> io::Result<ExitCode> {
    for target in TARGETS {
        let seeds = corpus::seeds(target.name)?;
        for seed in &seeds {
            corpus::store(&corpus::folder(target.name), "seed", seed)?;
        }
        writeln!(io::stdout(), "{}: {} seeds", target.name, seeds.len())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn known(name: &str) -> io::Result<onym_fuzz_targets::Target> {
    target(name).ok_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        io::Error::other(format!("no target {name:?}: there are {}", names.join(", ")))
    })
}

fn run(name: &str, seconds: &str, seed: &str) -> io::Result<ExitCode> {
    let target = known(name)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| io::Error::other(USAGE));
    let (seconds, seed) = (number(seconds)?, number(seed)?);
    let inputs: Vec<Vec<u8>> =
        corpus::inputs(name)?.into_iter().map(|(_, octets)| octets).collect();
    let found = mutate::campaign(target, &inputs, seed, Duration::from_secs(seconds));
    let mut out = io::stdout();
    writeln!(out, "{name}: {} inputs from seed {seed}", found.tried)?;
    let Some(failure) = found.failure else { return Ok(ExitCode::SUCCESS) };
    let path = corpus::store(&corpus::failures(name), "crash", &failure)?;
    writeln!(out, "{name}: failed; the input is {}", path.display())?;
    Ok(ExitCode::FAILURE)
}

fn one(name: &str, file: &str) -> io::Result<ExitCode> {
    (known(name)?.run)(&std::fs::read(file)?);
    Ok(ExitCode::SUCCESS)
}

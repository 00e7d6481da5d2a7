//! The workspace's tests, as many programs at once as there are processors: most of a test's time is
//! waiting, for a deadline or for another process. `cargo test` runs one program after the other.
//! Each runs its tests in as many threads again, so that there are no more than [`AT_ONCE`].

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// Programs at once, at most.
const AT_ONCE: usize = 4;

/// One program of tests, and the folder of the package that it belongs to, in which it runs.
#[derive(Debug, PartialEq)]
struct Program {
    file: PathBuf,
    package: PathBuf,
}

impl Program {
    fn name(&self) -> String {
        let stem = self.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = stem.rsplit_once('-').map_or(stem.as_str(), |(name, _)| name);
        format!("{name} ({})", self.package.file_name().unwrap_or_default().to_string_lossy())
    }

    fn run(&self) -> std::io::Result<Output> {
        Command::new(&self.file)
            .arg("--quiet")
            .current_dir(&self.package)
            .env("CARGO_MANIFEST_DIR", &self.package)
            .stdin(Stdio::null())
            .output()
    }
}

/// Runs all tests of the workspace; `arguments` go to `cargo test`. One program that fails hides no other.
///
/// # Errors
/// What did not compile, and the names of the programs that failed.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let built = Command::new(&cargo)
        .args(["test", "--quiet", "--workspace", "--no-run"])
        .arg("--message-format=json-render-diagnostics")
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()?;
    if !built.status.success() {
        bail!("the tests do not compile");
    }
    let programs = built_by(&String::from_utf8(built.stdout)?)?;
    if programs.is_empty() {
        bail!("there are no tests");
    }
    let count = programs.len();
    let failed = all(programs);
    let documents = Command::new(&cargo)
        .args(["test", "--quiet", "--workspace", "--doc", "--no-fail-fast"])
        .args(arguments)
        .status()?;
    println!("{count} programs of tests, {} failed", failed.len());
    if !failed.is_empty() {
        bail!("tests failed: {}", failed.join(", "));
    }
    if !documents.success() {
        bail!("examples in documents failed");
    }
    Ok(())
}

/// Runs each of them and prints what it says when it ends.
///
/// Returns the names of those that failed.
fn all(programs: Vec<Program>) -> Vec<String> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(AT_ONCE);
    let left = Mutex::new(programs.into_iter());
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(program) = next(&left) {
                    let begun = Instant::now();
                    let ended = program.run();
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    if !told(&program, begun, ended) {
                        failed.push(program.name());
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn next(left: &Mutex<std::vec::IntoIter<Program>>) -> Option<Program> {
    left.lock().unwrap_or_else(PoisonError::into_inner).next()
}

/// Prints how a program ended; whether it passed.
fn told(program: &Program, begun: Instant, ended: std::io::Result<Output>) -> bool {
    let took = begun.elapsed().as_secs();
    match ended {
        Ok(output) => {
            print!(
                "Running {}: {took} s{}",
                program.name(),
                String::from_utf8_lossy(&output.stdout)
            );
            print!("{}", String::from_utf8_lossy(&output.stderr));
            if !output.status.success() {
                println!("{}: {}", program.name(), output.status);
            }
            output.status.success()
        }
        Err(error) => {
            println!("{} cannot be started: {error}", program.file.display());
            false
        }
    }
}

/// The programs of tests that cargo's messages name.
fn built_by(messages: &str) -> Result<Vec<Program>> {
    let mut found = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).context("a message of cargo")?;
        let is_test = message["profile"]["test"].as_bool() == Some(true);
        let (Some(file), true) = (message["executable"].as_str(), is_test) else { continue };
        let manifest = message["manifest_path"].as_str().context("a message without a manifest")?;
        let package = Path::new(manifest).parent().context("a manifest without a folder")?;
        found.push(Program { file: file.into(), package: package.to_owned() });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(folder: &Path, name: &str, text: &str) -> Program {
        use std::os::unix::fs::PermissionsExt;
        let file = folder.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        Program { file, package: folder.to_owned() }
    }

    #[test]
    fn only_programs_of_tests_are_run_each_in_its_package() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/t/a/Cargo.toml","profile":{"test":true},"executable":"/t/target/x-1f"}
{"reason":"compiler-artifact","manifest_path":"/t/a/Cargo.toml","profile":{"test":false},"executable":"/t/target/b"}
{"reason":"compiler-artifact","manifest_path":"/t/a/Cargo.toml","profile":{"test":true},"executable":null}
{"reason":"build-finished","success":true}"#;
        let program = Program { file: "/t/target/x-1f".into(), package: "/t/a".into() };
        assert_eq!(program.name(), "x (a)");
        assert_eq!(built_by(messages).unwrap(), [program]);
        assert!(built_by("{").is_err());
    }

    #[test]
    fn every_program_is_run_and_those_that_fail_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let done = |name: &str| at.join(name).exists();
        let programs = vec![
            sh(at, "fails-1", "touch ran-1; exit 1"),
            sh(at, "passes-2", "test \"$CARGO_MANIFEST_DIR\" = \"$PWD\" && touch ran-2"),
            sh(at, "dies-3", "kill -9 $$"),
            Program { file: at.join("missing-4"), package: at.to_owned() },
            sh(at, "passes-5", "touch ran-5"),
        ];
        let mut failed = all(programs);
        failed.sort();
        let names: Vec<_> = failed.iter().filter_map(|name| name.split(' ').next()).collect();
        assert_eq!(names, ["dies", "fails", "missing"]);
        assert!(done("ran-1") && done("ran-2") && done("ran-5"));
    }
}

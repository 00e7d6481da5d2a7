//! Sides of a benchmark that run as processes. Each prints a line when it is ready, and one line of
//! JSON at its end.

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A side that runs; ended when dropped.
#[derive(Debug)]
pub struct Part {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Part {
    /// Starts `command`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let said = BufReader::new(child.stdout.take().context("its output is piped")?);
        Ok(Self { child, said })
    }

    /// Waits until it says `word`.
    ///
    /// # Errors
    /// When it says something else, or ends.
    pub fn wait_for(&mut self, word: &str) -> Result<()> {
        let line = self.line()?;
        ensure!(line.trim() == word, "a side says {line} where {word} was expected");
        Ok(())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.said.read_line(&mut line)? > 0, "a side ended early");
        Ok(line)
    }

    /// Tells it to begin.
    ///
    /// # Errors
    /// When it ended.
    pub fn go(&mut self) -> Result<()> {
        let stdin = self.child.stdin.as_mut().context("its input is piped")?;
        Ok(writeln!(stdin, "go")?)
    }

    /// What it found.
    ///
    /// # Errors
    /// When it ended before, or says something else.
    pub fn result<R: DeserializeOwned>(&mut self) -> Result<R> {
        Ok(serde_json::from_str(&self.line()?)?)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Ended already, where all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says that this side is there.
///
/// # Errors
/// When nobody listens any more.
pub fn say(word: &str) -> Result<()> {
    println!("{word}");
    Ok(std::io::stdout().flush()?)
}

/// The program of a rival (`bench/rivals`), when it is built: `rivals/release` beside the folder of
/// this program.
///
/// # Errors
/// When it is not known where this program is.
pub fn rival(name: &str) -> Result<Option<PathBuf>> {
    let own = std::env::current_exe()?;
    let program = own.ancestors().nth(2).map(|t| t.join("rivals/release").join(name));
    Ok(program.filter(|program| program.exists()))
}

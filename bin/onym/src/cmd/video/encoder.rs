//! The program that writes the folder.

use crate::exit::{Exit, Failure};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long it may take to end what it has begun, once it is told to.
const PATIENCE: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(10);

/// A running program; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Encoder {
    name: String,
    child: Child,
}

impl Encoder {
    /// Starts `program` in `folder`. What it prints goes to standard error: standard output has the
    /// events of this command.
    pub(super) fn start(
        program: &OsStr,
        arguments: &[OsString],
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let name = program.to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdout(Stdio::from(io::stderr()));
        let child = command.spawn().map_err(|error| {
            Failure::new(Exit::Failed, format!("cannot start {name}"))
                .why(error)
                .next("is it installed? ffmpeg is a package of its own")
        })?;
        Ok(Self { name, child })
    }

    /// What to say once it has ended well.
    ///
    /// # Errors
    /// It ended otherwise.
    pub(super) fn has_ended(&mut self) -> anyhow::Result<Option<String>> {
        match self.child.try_wait()? {
            None => Ok(None),
            Some(status) if status.success() => Ok(Some(format!("{} has ended", self.name))),
            Some(status) => {
                let failed = format!("{} failed: {status}", self.name);
                Err(Failure::new(Exit::Failed, failed).next("what it said is above").into())
            }
        }
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // It may already have had the signal that ended this program.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let until = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= until {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(STEP);
        }
    }
}

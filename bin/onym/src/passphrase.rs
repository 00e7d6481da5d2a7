//! Where the passphrase of an exported key comes from.

use crate::exit::{Exit, Failure};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::PathBuf;

/// Options of commands that need a passphrase.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File whose first line is the passphrase; without it the variable ONYM_PASSPHRASE, else a
    /// question on the terminal.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl Args {
    /// The passphrase. An empty one is refused.
    pub(crate) fn read(&self, question: &str) -> anyhow::Result<String> {
        self.secret(|| ask(question))
    }

    /// A new passphrase: a terminal is asked for it twice. An empty one is refused.
    pub(crate) fn read_new(&self, question: &str) -> anyhow::Result<String> {
        self.secret(|| {
            let secret = ask(question)?;
            if ask_once("Once more: ")? != secret {
                return Err(Failure::new(Exit::Usage, "the two passphrases differ").into());
            }
            Ok(secret)
        })
    }

    fn secret(&self, ask: impl Fn() -> anyhow::Result<String>) -> anyhow::Result<String> {
        let secret = if let Some(path) = &self.passphrase_file {
            let text = crate::key_files::read_text(path)?;
            text.lines().next().unwrap_or_default().to_owned()
        } else if let Ok(secret) = std::env::var("ONYM_PASSPHRASE") {
            secret
        } else {
            ask()?
        };
        if secret.is_empty() {
            return Err(Failure::new(Exit::Usage, "the passphrase is empty").into());
        }
        Ok(secret)
    }
}

/// The answer to a question on the terminal, which does not show it.
pub(crate) fn ask(question: &str) -> anyhow::Result<String> {
    if !io::stdin().is_terminal() {
        let failure = Failure::new(Exit::Usage, "no passphrase, and no terminal to ask on");
        return Err(failure.next("use --passphrase-file FILE, or set ONYM_PASSPHRASE").into());
    }
    ask_once(question)
}

/// Gives the terminal back as it was.
struct Restore(Termios);

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
        crate::output::tell("");
    }
}

fn ask_once(question: &str) -> anyhow::Result<String> {
    crate::output::ask(question)?;
    let before = tcgetattr(io::stdin())?;
    let mut silent = before.clone();
    silent.local_modes -= LocalModes::ECHO;
    let _restore = Restore(before);
    tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

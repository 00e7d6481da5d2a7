//! `nfdc`: the management tool of NFD, its words, its output and its exit codes, for scripts that
//! have them. A link of that name to this program is it; `onym nfdc` is the same.

mod act;
mod ended;
pub(crate) mod text;
mod words;
mod xml;

use crate::output::{self, Context};
use crate::plain;
use crate::session;
use ended::{Done, Ended};
use onym_client::blocking::Client;
use onym_client::mgmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;
use words::FORMS;

/// Longest line of a batch, in octets.
const LINE_MAX: u64 = 64 << 10;

/// Run a command of NFD's `nfdc`, with its words and its output.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym nfdc status report xml
  onym nfdc face create udp://router.example
  ln -s $(command -v onym) /usr/local/bin/nfdc && nfdc route list")]
pub(crate) struct Args {
    /// The command as `nfdc` takes it; without one they are listed.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// How lists are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A table for people.
    Table,
    /// The lines of NFD's `nfdc`, for scripts that read them.
    Nfdc,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    match main(&args.words, cx.node.clone()) {
        0 => Ok(()),
        // What happened was said already; the code is part of what scripts know.
        code => std::process::exit(code.into()),
    }
}

/// The program under the name `nfdc`.
pub(crate) fn program(words: &[String]) -> u8 {
    main(words, None)
}

fn main(words: &[String], node: Option<String>) -> u8 {
    let cx = Context { node, json: false };
    let done = match words.first().map(String::as_str) {
        None => say(&help(None)),
        Some("help" | "-h" | "--help") => say(&help(words.get(1).map(String::as_str))),
        Some("-V" | "--version") => say(concat!("onym ", env!("CARGO_PKG_VERSION"))),
        Some("-f" | "--batch") => match words.get(1) {
            Some(file) => batch(&cx, Path::new(file)),
            None => Err(Ended(2, "-f: the file is missing".to_owned())),
        },
        Some(_) => open(&cx).and_then(|mut client| one(&mut client, words)),
    };
    match done {
        Ok(()) => 0,
        Err(Ended(code, text)) => {
            output::tell(text);
            code
        }
    }
}

fn help(noun: Option<&str>) -> String {
    let mut text =
        String::from("nfdc [-h|--help] [-V|--version] [-f|--batch FILE] <command> [<args>]\n\n");
    for form in FORMS.iter().filter(|f| noun.is_none_or(|noun| noun == f.noun)) {
        text.push_str(&format!("  {:<18}{}\n", format!("{} {}", form.noun, form.verb), form.about));
    }
    text
}

fn say(text: &str) -> Done<()> {
    output::write_line(text).map_err(|e| Ended(1, e.to_string()))
}

fn open(cx: &Context) -> Done<Client> {
    session::open(cx).map_err(|e| Ended(1, format!("ERROR: {e}")))
}

/// Line by line, over one connection; the first that fails ends it, with 2.
fn batch(cx: &Context, file: &Path) -> Done<()> {
    let cannot =
        |e: io::Error| Ended(2, format!("Failed to open batch file '{}': {e}", file.display()));
    let mut from: Box<dyn BufRead> = match file.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(BufReader::new(File::open(file).map_err(cannot)?)),
    };
    let mut client = open(cx)?;
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        let read = (&mut from).take(LINE_MAX).read_line(&mut line).map_err(cannot)?;
        if read == 0 {
            break;
        }
        let at = |text: String| Ended(2, format!("ERROR: line {number}: {text}"));
        if read as u64 == LINE_MAX {
            return Err(at("too long".to_owned()));
        }
        let words = words::split(&line).map_err(at)?;
        if !words.is_empty() {
            one(&mut client, &words).map_err(|Ended(_, text)| at(text))?;
        }
    }
    Ok(())
}

fn one(client: &mut Client, typed: &[String]) -> Done<()> {
    let (form, given) = words::parse(typed).map_err(|e| Ended(2, format!("{e}\nsee nfdc help")))?;
    let text = match (form.noun, form.verb) {
        ("status", "report") => act::report(client, &given)?,
        ("status", _) => text::general(&act::failed(mgmt::status(client))?),
        ("face", "list") => act::faces(client, &given)?,
        ("face", "show") => text::face_lines(&act::find(client, &given["id"])?),
        ("face", "create") => act::create(client, &given)?,
        ("face", _) => act::destroy(client, &given)?,
        ("channel", _) => {
            act::channels(client)?.iter().map(|uri| plain::line(uri)).collect::<Vec<_>>().join("\n")
        }
        ("strategy", verb) => act::strategy(client, verb, &given)?,
        ("fib", _) => text::fib_list(&act::failed(mgmt::fib(client))?),
        ("route", "add") => act::add(client, &given)?,
        ("route", "remove") => act::remove(client, &given)?,
        ("route", _) => act::routes(client, &given)?,
        ("cs", "config") => act::config(client, &given)?,
        ("cs", "erase") => act::erase(client, &given)?,
        _ => text::cs(&act::failed(mgmt::cs_info(client))?),
    };
    say(&text)
}

//! `onym top`: a node, live, in the terminal.

mod model;
mod question;
mod source;
mod view;
mod why;

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::plain;
use crate::stop;
use anyhow::Context as _;
use model::{App, Reaction, Snapshot};
use question::{Order, Question};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use serde::Serialize;
use source::Source;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// Show a node live: faces, prefixes, tables, drops, the push half.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym top
  onym top --order rtt
  onym top --once --json | jq '.faces[0]'
  onym top --filter udp4
  onym top --why                what slows this node down, in sentences

Keys: 1 faces, 2 prefixes, 3 tables and drops, 4 push, w why; arrows, PgUp and PgDn move, Enter shows a
face alone, s changes the order, / filters, p pauses, ? explains the columns, q ends.
Rates of prefixes and round trips are estimates from samples; the rest is counted. Prefixes are shown to
operators only. NFD and ndnd are shown as far as their datasets go.")]
pub(crate) struct Args {
    /// Print one second and end.
    #[arg(long)]
    once: bool,
    /// Print what slows the node down, and end.
    #[arg(long)]
    why: bool,
    /// Order of faces.
    #[arg(long, value_name = "ORDER", default_value = "packets")]
    order: Order,
    /// Faces to ask for, the first ones in this order.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u16).range(1..=500),
        conflicts_with = "why"
    )]
    faces: u16,
    /// Only faces with this in a URI or as their number, and prefixes with it.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        conflicts_with = "why"
    )]
    filter: String,
    /// Components of the prefixes.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=8))]
    depth: u8,
    /// Milliseconds between two questions.
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(200..=60_000))]
    every: u64,
}

/// How often keys are looked for.
const KEYS_EVERY: Duration = Duration::from_millis(50);

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let every = Duration::from_millis(args.every);
    if args.why {
        return print_why(cx, every);
    }
    let Args { order, faces, depth, filter: text, .. } = args;
    let question = Question { order, faces, depth, text, ..Question::default() };
    let mut source = Source::open(cx)?;
    if args.once {
        let [_, snapshot] = two(&mut source, &question, every)?;
        return cx.print(&snapshot, view::text);
    }
    if !std::io::stdout().is_terminal() {
        return Err(Failure::new(Exit::Usage, "this is no terminal")
            .next("use `onym top --once`, with --json for programs")
            .into());
    }
    live(source, question, every)
}

/// What slows the node down, as `onym top --why` prints it.
pub(crate) fn why(cx: &Context) -> anyhow::Result<()> {
    print_why(cx, Duration::from_secs(1))
}

fn print_why(cx: &Context, every: Duration) -> anyhow::Result<()> {
    let [before, now] = two(&mut Source::open(cx)?, &Question::why(), every)?;
    cx.print(&why::since(&now, Some(&before)), |found| why::text(found))
}

/// What a viewer that stays is told: what goes on since it asked last, and what slows the node down.
pub(crate) struct Viewer {
    source: Source,
    before: Option<Snapshot>,
}

/// As `--json` prints both.
#[derive(Debug, Serialize)]
struct Seen<'a> {
    now: &'a Snapshot,
    why: Vec<why::Reason>,
}

impl Viewer {
    pub(crate) fn open(cx: &Context) -> anyhow::Result<Self> {
        Ok(Self { source: Source::open(cx)?, before: None })
    }

    pub(crate) fn json(&mut self) -> anyhow::Result<String> {
        let now = self.source.ask(&Question { is_why: true, ..Question::default() })?;
        let why = why::since(&now, self.before.as_ref());
        let json = serde_json::to_string(&Seen { now: &now, why })?;
        self.before = Some(now);
        Ok(json)
    }
}

/// What goes on within `every`: the answers before and after it.
fn two(source: &mut Source, question: &Question, every: Duration) -> anyhow::Result<[Snapshot; 2]> {
    let before = source.ask(question)?;
    let until = Instant::now() + every;
    source.wait(until)?;
    Ok([before, source.ask(question)?])
}

/// What the thread that asks tells.
type Told = Result<Snapshot, String>;

/// What the thread that asks is told.
#[derive(Debug)]
struct Asking {
    question: Mutex<Question>,
    is_over: AtomicBool,
}

fn live(mut source: Source, question: Question, every: Duration) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let asking = Arc::new(Asking { question: Mutex::new(question.clone()), is_over: false.into() });
    let (tell, told) = mpsc::sync_channel::<Told>(2);
    let shared = Arc::clone(&asking);
    let asker = std::thread::Builder::new().name("onym-top".into()).spawn(move || {
        while !shared.is_over.load(Ordering::Relaxed) {
            let next = Instant::now() + every;
            let question = shared.question.lock().map(|q| q.clone()).unwrap_or_default();
            let answer =
                source.ask(&question).map_err(|e| plain::line(&format!("{e:#}")).into_owned());
            if tell.send(answer).is_err() {
                return;
            }
            // The node may come back: the client connects again.
            let _ = source.wait_while(next, &|| !shared.is_over.load(Ordering::Relaxed));
        }
    });
    let asker = asker.context("cannot start a thread")?;
    let mut terminal = ratatui::try_init().context("cannot use this terminal")?;
    let mut app = App::new(question);
    let shown = (|| -> anyhow::Result<()> {
        let mut is_new = true;
        while !stop.is_set() {
            while let Ok(answer) = told.try_recv() {
                is_new |= app.take(answer);
            }
            if is_new {
                terminal.draw(|frame| view::draw(frame, &mut app)).context("cannot draw")?;
            }
            is_new = event::poll(KEYS_EVERY).context("cannot read keys")?;
            if is_new && let Event::Key(key) = event::read().context("cannot read keys")? {
                match if key.kind == KeyEventKind::Release {
                    Reaction::Nothing
                } else {
                    app.key(key)
                } {
                    Reaction::End => break,
                    Reaction::Ask => {
                        if let Ok(mut question) = asking.question.lock() {
                            question.clone_from(&app.question);
                        }
                    }
                    Reaction::Nothing => {}
                }
            }
        }
        Ok(())
    })();
    ratatui::restore();
    asking.is_over.store(true, Ordering::Relaxed);
    drop(told);
    let _ = asker.join();
    shown
}

#[cfg(test)]
mod tests;

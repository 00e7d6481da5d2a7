//! `onym strategy`: which strategy forwards which prefix.

use crate::cmd::nfdc::{self, Format};
use crate::human;
use crate::output::{Context, write_line};
use crate::session;
use clap::Subcommand;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_wire::Name;
use onym_wire::mgmt::{ControlParameters, StrategyChoice};
use serde::Serialize;

/// Show and choose forwarding strategies.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym strategy list
  onym strategy set /example multicast
  onym strategy set / asf/v=5/probing-interval~30000
  onym strategy show /example/film
  onym strategy unset /example

Strategies: best-route, multicast, asf, access, random, self-learning; parameters follow the version
as components `name~value`.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List prefixes with a strategy of their own.
    #[command(after_help = "Example:\n  onym strategy list --json")]
    List {
        /// How they are printed, without --json.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// Show which strategy forwards a name.
    #[command(after_help = "Example:\n  onym strategy show /example/film")]
    Show {
        /// Name.
        name: Name,
    },
    /// Choose the strategy of a prefix.
    #[command(after_help = "Example:\n  onym strategy set /example multicast")]
    Set {
        /// Prefix.
        prefix: Name,
        /// Strategy: a word, a word with version and parameters, or a whole name.
        strategy: String,
    },
    /// Reset a prefix to the strategy of the next shorter one.
    #[command(after_help = "Example:\n  onym strategy unset /example")]
    Unset {
        /// Prefix, but not /.
        prefix: Name,
    },
}

#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    prefix: String,
    strategy: String,
}

impl Shown {
    pub(crate) fn of(choice: &StrategyChoice) -> Self {
        Self { prefix: choice.name.to_string(), strategy: choice.strategy.to_string() }
    }
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let shown = match args.command.unwrap_or(Command::List { format: Format::Table }) {
        Command::List { format } => {
            let mut client = session::open(cx)?;
            let list = mgmt::strategies(&mut client).map_err(session::failure)?;
            if format == Format::Nfdc && !cx.json {
                let lines: Vec<_> = list.iter().map(nfdc::text::strategy).collect();
                return write_line(&lines.join("\n"));
            }
            let list: Vec<_> = list.iter().map(Shown::of).collect();
            return cx.print(&list, |list| list_text(list));
        }
        Command::Show { name } => {
            let mut client = session::open(cx)?;
            let list = mgmt::strategies(&mut client).map_err(session::failure)?;
            let above = list.iter().filter(|c| c.name.as_ref().is_prefix_of(name.as_ref()));
            let longest = above.max_by_key(|c| c.name.len()).map(Shown::of);
            return cx.print(&longest, |found| match found {
                Some(found) => format!("{} (chosen for {})", found.strategy, found.prefix),
                None => "none".into(),
            });
        }
        Command::Set { prefix, strategy } => {
            let strategy = strategy_name(&strategy)?;
            choose(&mut session::open(cx)?, prefix, Some(strategy))?
        }
        Command::Unset { prefix } => choose(&mut session::open(cx)?, prefix, None)?,
    };
    cx.print(&shown, |s| match s.strategy.as_str() {
        "" => format!("{} has no strategy of its own any more", s.prefix),
        strategy => format!("{} is forwarded by {strategy}", s.prefix),
    })
}

/// Chooses the strategy of a prefix; without one it has none of its own any more.
pub(crate) fn choose(
    client: &mut Client,
    prefix: Name,
    strategy: Option<Name>,
) -> anyhow::Result<Shown> {
    let verb = if strategy.is_some() { "set" } else { "unset" };
    let wanted = ControlParameters { name: Some(prefix), strategy, ..ControlParameters::default() };
    let done = client.command(["strategy-choice", verb], &wanted).map_err(session::failure)?;
    Ok(Shown {
        prefix: done.name.map(|n| n.to_string()).unwrap_or_default(),
        strategy: done.strategy.map(|n| n.to_string()).unwrap_or_default(),
    })
}

/// The name of a strategy that users write as a word or a name.
pub(crate) fn strategy_name(text: &str) -> anyhow::Result<Name> {
    let whole = if text.starts_with('/') {
        text.to_owned()
    } else {
        format!("/localhost/nfd/strategy/{text}")
    };
    whole.parse().map_err(|error| {
        crate::exit::Failure::new(crate::exit::Exit::Usage, format!("`{text}` is not a strategy"))
            .why(error)
            .next(
                "write a word such as multicast, or a name such as /localhost/nfd/strategy/asf/v=5",
            )
            .into()
    })
}

pub(crate) fn list_text(list: &[Shown]) -> String {
    let rows: Vec<_> = list.iter().map(|s| vec![s.prefix.clone(), s.strategy.clone()]).collect();
    human::table(&["PREFIX", "STRATEGY"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_words_or_names() {
        let name = |text| strategy_name(text).unwrap().to_string();
        assert_eq!(name("multicast"), "/localhost/nfd/strategy/multicast");
        assert_eq!(name("asf/v=5/a~1"), "/localhost/nfd/strategy/asf/v=5/a~1");
        assert_eq!(name("/x/y"), "/x/y");
    }
}

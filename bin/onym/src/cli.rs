//! The command tree: global options, groups, dispatch.

use crate::cmd;
use crate::output::Context;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::fmt::Write as _;

/// A node for named data, and the tools around it.
#[derive(Debug, Parser)]
#[command(name = "onym", version = env!("ONYM_VERSION"), max_term_width = 100)]
pub(crate) struct Cli {
    /// Node to talk to, such as unix:///run/nfd/nfd.sock or udp4://192.0.2.1:6363.
    #[arg(
        long,
        value_name = "URI",
        global = true,
        long_help = "Node to talk to: unix:///path, tcp://host[:port], udp://host[:port], ws://host:port/path, \
                     shm:///path or kernel://. Without it: the variable NDN_CLIENT_TRANSPORT, `transport=` in \
                     client.conf, then the usual sockets."
    )]
    node: Option<String>,
    /// Print results as JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

/// Declares the commands: `Variant(module) in "group",`. The module is `cmd/module.rs`; it has a
/// `#[derive(clap::Args)] pub(crate) struct Args` whose doc comment is the help, and a
/// `pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()>`.
macro_rules! commands {
    ($( $variant:ident($module:ident) in $group:literal, )*) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $( $variant(cmd::$module::Args), )*
        }

        /// Which group of `onym --help` a command is in; the empty group is not shown.
        const GROUP_OF: &[(&str, &str)] = &[ $( (stringify!($module), $group), )* ];

        /// Runs the command that was typed.
        pub(crate) fn run(cli: Cli) -> anyhow::Result<()> {
            let cx = Context { node: cli.node, json: cli.json };
            match cli.command {
                $( Command::$variant(args) => cmd::$module::run(args, &cx), )*
            }
        }
    };
}

// To add a command: its line here, and `pub(crate) mod name;` in cmd/mod.rs.
commands! {
    Daemon(daemon) in "Node",
    Status(status) in "Node",
    Face(face) in "Node",
    Route(route) in "Node",
    Hub(hub) in "Node",
    Fib(fib) in "Node",
    Cs(cs) in "Node",
    Pit(pit) in "Node",
    Strategy(strategy) in "Node",
    Log(log) in "Node",
    Explain(explain) in "Node",
    Trace(trace) in "Node",
    CheckConfig(check_config) in "Node",
    Import(import) in "Node",
    Backup(backup) in "Node",
    Restore(restore) in "Node",
    Nfdc(nfdc) in "Node",
    Doctor(doctor) in "Node",
    Top(top) in "Node",
    Console(console) in "Node",
    Dump(dump) in "Node",
    Dissect(dissect) in "Node",
    Put(put) in "Content",
    Get(get) in "Content",
    Peek(peek) in "Content",
    Poke(poke) in "Content",
    Ping(ping) in "Content",
    PingServer(ping_server) in "Content",
    Chat(chat) in "Content",
    Repo(repo) in "Content",
    Serve(serve) in "Content",
    Video(video) in "Content",
    Ls(ls) in "Content",
    Cp(cp) in "Content",
    Sync(sync) in "Content",
    Mount(mount) in "Content",
    Gateway(gateway) in "Content",
    Scope(scope) in "Push",
    Publish(publish) in "Push",
    Subscribe(subscribe) in "Push",
    Call(call) in "Push",
    Answer(answer) in "Push",
    Rendezvous(rendezvous) in "Push",
    Topology(topology) in "Push",
    Key(key) in "Trust",
    Cert(cert) in "Trust",
    Trust(trust) in "Trust",
    Access(access) in "Trust",
    Network(network) in "Trust",
    Service(service) in "Functions",
    Manager(manager) in "Functions",
    Net(net) in "Functions",
    Bench(bench) in "Measuring",
    Load(load) in "Measuring",
    Sim(sim) in "Measuring",
    Completions(completions) in "",
    Man(man) in "",
}

/// The groups in the order of `onym --help`.
const GROUPS: &[&str] = &["Node", "Content", "Push", "Trust", "Functions", "Measuring"];

const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}\n{after-help}";

const AFTER: &str = "\nExit codes: 0 done, 1 failed otherwise, 2 usage, 3 no node, 4 refused, 5 not found or timed out.\n\
                     `onym COMMAND --help` explains a command and shows examples.";

/// The whole tree, with the help by groups. Also what completions and man pages are made from.
pub(crate) fn tree() -> clap::Command {
    let bare = Cli::command();
    let mut help = String::new();
    for group in GROUPS {
        let rows = group_rows(&bare, group);
        if !rows.is_empty() {
            let _ = writeln!(help, "{group}:\n{rows}");
        }
    }
    bare.help_template(TEMPLATE).before_help(help).after_help(AFTER)
}

/// The lines of one group: name and first sentence of each command.
fn group_rows(tree: &clap::Command, group: &str) -> String {
    let mut rows = String::new();
    for (module, of) in GROUP_OF.iter().filter(|(_, of)| *of == group) {
        debug_assert!(GROUPS.contains(of), "group of {module}");
        let name = module.replace('_', "-");
        let about = tree.find_subcommand(&name).and_then(clap::Command::get_about);
        let about = about.map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(rows, "  {name:<14}{about}");
    }
    rows
}

/// Words for what commands call otherwise.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("create", "new"),
    ("generate", "new"),
    ("make", "new"),
    ("new", "create"),
    ("add", "create"),
    ("create", "add"),
    ("remove", "delete"),
    ("delete", "remove"),
    ("delete", "destroy"),
    ("remove", "destroy"),
    ("fetch", "get"),
    ("cat", "get"),
    ("list", "ls"),
    ("copy", "cp"),
    ("mirror", "sync"),
    ("start", "daemon"),
    ("info", "status"),
];

/// Adds the word that a command has for what was typed.
fn suggest(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand).cloned()
    else {
        return error;
    };
    let words: Vec<String> = std::env::args().skip(1).take_while(|word| *word != typed).collect();
    let tree = tree();
    let parent = words.iter().fold(&tree, |at, word| at.find_subcommand(word).unwrap_or(at));
    let fits: Vec<String> = OTHER_WORDS
        .iter()
        .filter(|(other, ours)| *other == typed && parent.find_subcommand(ours).is_some())
        .map(|(_, ours)| (*ours).to_owned())
        .collect();
    if !fits.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(fits));
    }
    error
}

/// Parses the command line.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let matches = tree().try_get_matches().map_err(suggest)?;
    Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut tree()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_consistent() {
        tree().debug_assert();
    }

    #[test]
    fn every_shown_command_has_an_example_and_a_group_of_the_help() {
        let tree = tree();
        for (module, group) in GROUP_OF.iter().filter(|(_, g)| !g.is_empty()) {
            assert!(GROUPS.contains(group), "{module}: unknown group {group}");
            let command = tree.find_subcommand(module.replace('_', "-")).unwrap();
            let help = command.clone().render_long_help().to_string();
            assert!(help.contains("onym "), "{module}: no example in its help");
            assert!(command.get_about().is_some(), "{module}: no sentence about it");
        }
    }
}

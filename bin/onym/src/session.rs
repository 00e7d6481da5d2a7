//! Connects a command to its node, and explains failures.

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::plain;
use crate::stop::Stop;
use anyhow::Context as _;
use onym_client::blocking::{Client, Happened};
use onym_client::{ClientOptions, Error, FetchError, NotRegistered, Notice, Unanswered, mgmt};
use onym_crypto::signer::Signer;
use onym_crypto::store::KeyStore;
use onym_wire::{NackReason, Name};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// Connects to the node of the command line.
pub(crate) fn open(cx: &Context) -> anyhow::Result<Client> {
    let options = ClientOptions { node: cx.node.clone(), ..ClientOptions::default() };
    Client::open(options).map_err(failure)
}

/// Connects to the node of the command line and, when it goes away, waits for it without end.
pub(crate) fn open_forever(cx: &Context) -> anyhow::Result<Client> {
    Client::open(forever(cx)).map_err(failure)
}

/// How a program connects that waits for its node without end.
pub(crate) fn forever(cx: &Context) -> ClientOptions {
    let reconnect_for = Duration::MAX;
    ClientOptions { node: cx.node.clone(), reconnect_for, ..ClientOptions::default() }
}

/// What an Onym node says of itself beyond the management protocol (`/localhost/onym/status/node`).
pub(crate) fn node_status(client: &mut Client) -> anyhow::Result<serde_json::Value> {
    let name = "/localhost/onym/status/node".parse()?;
    let content = mgmt::fetch_dataset(client, name).map_err(failure)?;
    Ok(serde_json::from_slice(&content)?)
}

/// Answers until `stop` is set, and tells on standard error what becomes of the connection.
pub(crate) fn serve_until(client: &mut Client, stop: &Stop) -> anyhow::Result<()> {
    serve_for(client, stop, Duration::MAX)
}

/// As [`serve_until`], for `time` at most.
pub(crate) fn serve_for(client: &mut Client, stop: &Stop, time: Duration) -> anyhow::Result<()> {
    let mut tell = |happened| {
        if let Happened::Notice(notice) = happened {
            crate::output::tell(format_args!("onym: {}", notice_text(&notice)));
        }
    };
    let start = Instant::now();
    let mut over = || stop.is_set() || start.elapsed() >= time;
    client.run(Duration::from_millis(500).min(time), &mut over, &mut tell).map_err(failure)
}

/// The signer that `--key` names: identity, key or certificate of the key store; a digest without.
pub(crate) fn signer(key: Option<&Name>) -> anyhow::Result<Signer> {
    let Some(key) = key else { return Ok(Signer::digest()) };
    let store = KeyStore::of_user().context("cannot open the key store")?;
    store.signer(Some(key.as_ref())).map_err(|error| {
        Failure::new(Exit::Failed, format!("cannot sign with {key}"))
            .why(error)
            .next("see `onym key list`, or make a key with `onym key new IDENTITY`")
            .into()
    })
}

/// What to tell about the connection while a command goes on.
pub(crate) fn notice_text(notice: &Notice) -> String {
    match notice {
        Notice::Lost(why) => format!("the connection to the node is lost ({why}); trying again"),
        Notice::Back => "connected to the node again".into(),
        Notice::GivenUp(why) => format!("the node did not come back ({why})"),
    }
}

/// The client's error as three sentences and an exit code.
pub(crate) fn failure(error: Error) -> anyhow::Error {
    let error = match error {
        // The reader went away: `exit::report` knows that.
        Error::Sink(why) if why.kind() == ErrorKind::BrokenPipe => return why.into(),
        error => error,
    };
    // A sentence of the node is a part of ours.
    let what = plain::line(&error.to_string()).into_owned();
    let (exit, next) = match &error {
        Error::Search(search) => {
            let failure = Failure::new(Exit::Usage, what).why(&search.source);
            return failure.next("use a URI such as unix:///run/nfd/nfd.sock").into();
        }
        Error::NoNode(_) => (
            Exit::NoNode,
            "start one with `onym daemon`, or name another with `--node URI` or NDN_CLIENT_TRANSPORT",
        ),
        Error::Disconnected(_) => (Exit::NoNode, "look at the node's log; start it again"),
        error if is_full(error) => (Exit::Refused, FULL),
        Error::Unanswered { name, why: Unanswered::Nack(_) } if is_localhop(name) => {
            (Exit::Refused, NOT_OUTSIDE)
        }
        Error::NoAnswer { why: Unanswered::Nack(_), .. } => (Exit::Refused, NOT_OUTSIDE),
        Error::Unanswered { why, .. } | Error::NoAnswer { why, .. } => unanswered(*why),
        Error::Refused { command, code, .. } => (Exit::Refused, refused(command, *code)),
        Error::NotRegistered { why, .. } => not_registered(why),
        Error::Fetch(fetch) => fetch_failed(fetch),
        Error::Stopped => (Exit::Stopped, "nothing was written; the same command begins again"),
        _ => (Exit::Failed, ""),
    };
    let failure = Failure::new(exit, what);
    if next.is_empty() { failure.into() } else { failure.next(next).into() }
}

fn unanswered(why: Unanswered) -> (Exit, &'static str) {
    match why {
        Unanswered::Nack(NackReason::NO_ROUTE) => (
            Exit::NotFound,
            "the node has no route to the name: see `onym route list` and `onym explain NAME`",
        ),
        Unanswered::Nack(NackReason::NONE) => (
            Exit::NotFound,
            "a producer is there, but has nothing of exactly this name: `onym peek -P NAME` takes what is below it",
        ),
        Unanswered::Nack(NackReason::CONGESTION) => (Exit::Refused, CONGESTED),
        Unanswered::Nack(_) => (Exit::Refused, "try again later, or ask the producer"),
        Unanswered::Disconnected => (Exit::NoNode, "look at the node's log; start it again"),
        _ => (
            Exit::NotFound,
            "is the producer running and its prefix routed here? see `onym explain NAME`",
        ),
    }
}

/// What to do when the node takes no more Interests, not even for management.
const FULL: &str = "the node holds as many pending Interests as it may (`pit_full`), or as many of this \
                    face (`pit_share`): try again when some have ended, stop who asks for what nobody \
                    answers, or raise `pit.entries_max` and `pit.bytes_max`";

/// The same of a node that may be another one.
const CONGESTED: &str = "a node has no room for more Interests (`pit_full`, `pit_share`), or its link for \
                         more packets (`congestion`): try again later; `onym top --why` there says which";

/// Whether the node itself answered a question to management by a Nack Congestion.
fn is_full(error: &Error) -> bool {
    let (is_management, why) = match error {
        Error::Unanswered { name, why } => (is_of_management(name), *why),
        Error::Fetch(FetchError::NotFound { name, why }) => (is_of_management(name), *why),
        Error::Fetch(FetchError::Refused { name, reason, .. }) => {
            (is_of_management(name), Unanswered::Nack(*reason))
        }
        Error::NoAnswer { why, .. } => (true, *why),
        Error::NotRegistered { why: NotRegistered::Unanswered(why), .. } => (true, *why),
        _ => return false,
    };
    is_management && why == Unanswered::Nack(NackReason::CONGESTION)
}

fn is_of_management(name: &Name) -> bool {
    is_first(name, b"localhost") || is_localhop(name)
}

/// What to do when a node on another machine does not answer management.
const NOT_OUTSIDE: &str = "this node is managed from its own machine only: name its Unix socket, such as \
                           `--node unix:///run/nfd/nfd.sock`";

fn is_localhop(name: &Name) -> bool {
    is_first(name, b"localhop")
}

fn is_first(name: &Name, word: &[u8]) -> bool {
    name.as_ref().get(0).is_some_and(|c| c.is_generic() && c.value == word)
}

fn refused(command: &str, code: u64) -> &'static str {
    match code {
        401 | 403 => {
            "who may is said by `management.group`, `management.open` and `authorize` of the node: join \
             the group and log in again, or have an operator do it"
        }
        404 if command.starts_with("strategy") => "`onym strategy --help` lists the strategies",
        404 | 410 => "see `onym face list`",
        501 => "this node does not have the command",
        504 => "is a node listening there? see `onym doctor` on that machine",
        507 => "the table's limit is in the node's configuration: see docs/config.md",
        _ => "",
    }
}

fn not_registered(why: &NotRegistered) -> (Exit, &'static str) {
    match why {
        NotRegistered::Unanswered(Unanswered::Nack(_)) => (
            Exit::Refused,
            "this node takes no registrations over this face: use its Unix socket, or set `rib.localhop`",
        ),
        NotRegistered::Unanswered(why) => unanswered(*why),
        NotRegistered::Refused { code, .. } => (Exit::Refused, refused("rib", *code)),
        _ => (Exit::Failed, ""),
    }
}

fn fetch_failed(error: &FetchError) -> (Exit, &'static str) {
    match error {
        FetchError::NotFound { name, why: Unanswered::Nack(_) } if is_localhop(name) => {
            (Exit::Refused, NOT_OUTSIDE)
        }
        FetchError::NotFound { why, .. } => unanswered(*why),
        FetchError::Refused { reason, .. } => unanswered(Unanswered::Nack(*reason)),
        FetchError::Exhausted { .. } => unanswered(Unanswered::Timeout),
        // The node itself: only the log is kept from somebody.
        FetchError::ProducerNack { name } if is_first(name, b"localhost") => {
            (Exit::Refused, refused("log", 403))
        }
        FetchError::ProducerNack { .. } => (Exit::NotFound, "ask the producer for the right name"),
        FetchError::TooLarge { .. } => {
            (Exit::Refused, "--size-max allows more, such as --size-max 100G, or none for any size")
        }
        FetchError::EndUnsettled { .. } => (
            Exit::Refused,
            "its producer does not say where it ends: ask for another version, or the producer",
        ),
        FetchError::Redirected { .. } => (
            Exit::Refused,
            "--follow follows it; --verify or --anchor follow it when the metadata is signed by whom you trust",
        ),
        FetchError::Disconnected => (Exit::NoNode, "look at the node's log; start it again"),
        FetchError::NotOpened { .. } => (
            Exit::Refused,
            "--anchor, --trust or --verify say who must have signed it; --encrypted takes it as it is",
        ),
        FetchError::NotVerified { .. } => (
            Exit::Failed,
            "somebody else may have published under this name; see whom with `onym peek NAME --verbose`",
        ),
        _ => (Exit::Failed, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: a Nack Congestion is told as want of room, and never as want of a right; another Nack keeps
    /// its advice.
    #[test]
    fn a_full_node_is_not_told_as_one_that_refuses() {
        let name = |text: &str| text.parse::<Name>().expect("a name");
        let errors = |reason| {
            let why = Unanswered::Nack(reason);
            let prefix = name("/a");
            let not_registered = NotRegistered::Unanswered(why);
            let management = name("/localhost/onym/top");
            [
                Error::NoAnswer { command: "faces/create".into(), why },
                Error::Unanswered { name: name("/localhop/nfd/rib"), why },
                Error::NotRegistered { prefix, why: not_registered },
                FetchError::NotFound { name: management.clone(), why }.into(),
                FetchError::Refused { name: management, segment: 1, reason }.into(),
            ]
        };
        let told = |error: Error| {
            let report = failure(error);
            let failure = report.downcast_ref::<Failure>().expect("it is one");
            format!("{failure:?}")
        };
        for error in errors(NackReason::CONGESTION) {
            let told = told(error);
            assert!(told.contains("Congestion") && told.contains("pit_full"), "{told}");
            assert!(!told.contains("managed") && !told.contains("rib.localhop"), "{told}");
        }
        for error in errors(NackReason::NO_ROUTE) {
            let told = told(error);
            assert!(!told.contains("pit_full"), "{told}");
        }
        let why = Unanswered::Nack(NackReason::CONGESTION);
        let told = told(FetchError::NotFound { name: name("/videos/one"), why }.into());
        assert!(told.contains("a node has no room"), "{told}");
    }
}

//! Commands to a repository over the network, by the protocol of ndn-python-repo 0.4.

use crate::exit::{Exit, Failure};
use crate::human;
use crate::output::Context;
use crate::{session, stop};
use onym_client::blocking::Client;
use onym_repo::Act;
use onym_repo::client::{command, wait};
use onym_repo::command::{DONE, NO_ROOM, ObjectParam, ObjectResult, REFUSED, UNKNOWN};
use onym_wire::Name;
use serde::Serialize;

/// Ask a repository to fetch and keep an object.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: onym repo insert /example/repo /alice/film/v=7 --start 0 --register /alice

Without --start and --end the one packet of exactly this name. With --start only: until the last segment."
)]
pub(crate) struct Insert {
    #[command(flatten)]
    what: What,
    /// Prefix for the repository to serve.
    #[arg(long, value_name = "PREFIX")]
    register: Option<Name>,
    /// Forwarding hint for the object; may be repeated.
    #[arg(long, value_name = "NAME")]
    hint: Vec<Name>,
}

/// Ask a repository to delete an object.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onym repo delete /example/repo /alice/film/v=7 --start 0")]
pub(crate) struct Delete {
    #[command(flatten)]
    what: What,
}

/// Which object, of which repository, asked by whom.
#[derive(Debug, clap::Args)]
struct What {
    /// The repository.
    repo: Name,
    /// The object, with its version.
    object: Name,
    /// First segment.
    #[arg(long, value_name = "N")]
    start: Option<u64>,
    /// Last segment.
    #[arg(long, value_name = "N")]
    end: Option<u64>,
    /// Identity, key or certificate of the key store that signs the command.
    #[arg(long, value_name = "NAME")]
    key: Option<Name>,
    /// Prefix of this command, from which the repository fetches its parameters; without it a
    /// generated one.
    #[arg(long, value_name = "PREFIX")]
    publisher: Option<Name>,
}

/// How a command ended.
#[derive(Debug, Serialize)]
struct Ended {
    status: u64,
    inserted: u64,
    deleted: u64,
}

pub(crate) fn insert(args: Insert, cx: &Context) -> anyhow::Result<()> {
    let object = ObjectParam {
        name: args.what.object.clone(),
        hint: args.hint,
        start: args.what.start,
        end: args.what.end,
        register: args.register,
    };
    ask(&args.what, Act::Insert, object, cx)
}

pub(crate) fn delete(args: Delete, cx: &Context) -> anyhow::Result<()> {
    let object = ObjectParam {
        name: args.what.object.clone(),
        start: args.what.start,
        end: args.what.end,
        ..ObjectParam::default()
    };
    ask(&args.what, Act::Delete, object, cx)
}

fn ask(what: &What, act: Act, object: ObjectParam, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let mut client = session::open(cx)?;
    client.stop_when(stop.flag());
    let ended = give(&mut client, what, act, object)?;
    cx.print(&ended, |e| {
        let (n, done) =
            if act == Act::Insert { (e.inserted, "inserted") } else { (e.deleted, "deleted") };
        format!("{} {done}", human::count(n, "packet"))
    })
}

/// Asks `repo` to keep `object`, serving it meanwhile; packets that it keeps now.
pub(crate) fn keep(
    client: &mut Client,
    repo: &Name,
    object: ObjectParam,
    key: Option<&Name>,
) -> anyhow::Result<u64> {
    let what = What {
        repo: repo.clone(),
        object: object.name.clone(),
        start: object.start,
        end: object.end,
        key: key.cloned(),
        publisher: None,
    };
    Ok(give(client, &what, Act::Insert, object)?.inserted)
}

fn give(client: &mut Client, what: &What, act: Act, object: ObjectParam) -> anyhow::Result<Ended> {
    let signer = session::signer(what.key.as_ref())?;
    let publisher = what.publisher.clone().unwrap_or_else(|| {
        let mut name = Name::new();
        name.append_generic("onym-repo-client");
        name.append_generic(format!("{:016x}", onym_crypto::edge::random_u64()));
        name
    });
    let commanded = command(client, &what.repo, act, &[object], publisher, &signer);
    let commanded = commanded.map_err(session::failure)?;
    let (status, objects) = wait(client, &commanded, &mut |_, _| true).map_err(session::failure)?;
    let sum = |of: fn(&ObjectResult) -> Option<u64>| objects.iter().filter_map(of).sum();
    let ended = Ended { status, inserted: sum(|o| o.inserted), deleted: sum(|o| o.deleted) };
    match status {
        DONE => Ok(ended),
        REFUSED => Err(Failure::new(Exit::Refused, "the repository refused the command")
            .next("sign with a key that it admits (--key), and choose a name outside of the repository's own")
            .into()),
        UNKNOWN => Err(Failure::new(Exit::Failed, "the repository does not know the command")
            .next("ask again")
            .into()),
        NO_ROOM => Err(Failure::new(Exit::Failed, "the repository keeps no more of it")
            .why("it is full, its owner has what one may have, or its disk cannot be written")
            .next("ask who runs it: `onym repo stats` and its log say which")
            .into()),
        _ => Err(Failure::new(
            Exit::NotFound,
            format!("the object ended early after {}", human::count(ended.inserted, "segment")),
        )
        .next("check that its producer answers, and try again: segments in the repository are not fetched twice")
        .into()),
    }
}

//! Sync groups in which the repository takes part, as ndnd's: it keeps what members publish, tells
//! newcomers what there is when the members have gone, and fetches what they ask it to keep.
//!
//! One thread drives all groups; each has a participant without a name of its own (SVS version 3).

mod object;

use crate::ndnd::{self, Command, Join};
use onym_client::aio::{Believe, Client};
use onym_client::metadata::Metadata;
use onym_client::{ClientOptions, Error, Request, Verify};
use onym_crypto::Signer;
use onym_store::{Change, OwnerId, Store};
use onym_sync::alo::{AloConfig, AloEvent, Snapshots, read_index};
use onym_sync::svs::{InnerName, StateVector};
use onym_wire::data::Data;
use onym_wire::name::Name;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Groups at the same time.
pub(crate) const GROUPS_MAX: usize = 64;
/// Orders that wait for the thread.
const ORDERS_MAX: usize = 64;
/// Objects of a group that are fetched beside its publications at the same time; further ones wait.
const FETCHES_MAX: usize = 8;
/// Objects that wait, of a group; further ones are left out.
const WAITING_MAX: usize = 1024;
/// Segments of an object.
const SEGMENTS_MAX: u64 = 1 << 17;
/// Octets of an index of bundles.
const INDEX_OCTETS_MAX: usize = 1 << 20;
/// How often an object is tried, and the pause between two tries.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_secs(2);

enum Order {
    Join(Join, OwnerId),
    Leave(Name),
}

/// The thread of the groups.
#[derive(Debug)]
pub(crate) struct Groups {
    orders: mpsc::Sender<Order>,
}

impl Groups {
    /// Starts the thread; it has its own connection to the node, made when the first group is joined.
    ///
    /// # Errors
    /// Those of the operating system.
    pub(crate) fn start(options: ClientOptions, store: Arc<Store>) -> io::Result<Self> {
        let (orders, asked) = mpsc::channel(ORDERS_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let run = move || runtime.block_on(drive(options, store, asked));
        std::thread::Builder::new().name("onym-groups".into()).spawn(run)?;
        Ok(Self { orders })
    }

    /// Takes part in a group, for `owner`; `false` when the thread does not keep up.
    pub(crate) fn join(&self, join: Join, owner: OwnerId) -> bool {
        self.orders.try_send(Order::Join(join, owner)).is_ok()
    }

    /// Takes part no longer; as above.
    pub(crate) fn leave(&self, group: Name) -> bool {
        self.orders.try_send(Order::Leave(group)).is_ok()
    }
}

async fn drive(options: ClientOptions, store: Arc<Store>, mut orders: mpsc::Receiver<Order>) {
    let mut client = None;
    let mut parts: BTreeMap<Name, AbortHandle> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    while let Some(order) = orders.recv().await {
        let (join, owner) = match order {
            Order::Join(join, owner) => (join, owner),
            Order::Leave(group) => {
                parts.remove(&group).inspect(|part| part.abort());
                continue;
            }
        };
        if parts.get(&join.group).is_some_and(|part| !part.is_finished()) {
            continue;
        }
        let opened = match client.take() {
            Some(client) => Ok(client),
            None => Client::open(options.clone()),
        };
        match opened {
            Ok(opened) => {
                let (group, store) = (join.group.clone(), Arc::clone(&store));
                let keeper = Keeper { group: group.clone(), owner, store };
                parts.insert(group, tasks.spawn(take_part(opened.clone(), keeper, join)));
                client = Some(opened);
            }
            Err(error) => tracing::warn!(group = %join.group, %error, "repo-group-not-joined"),
        }
        while tasks.try_join_next().is_some() {}
    }
}

/// Puts into the store what is of a group.
#[derive(Debug, Clone)]
struct Keeper {
    group: Name,
    owner: OwnerId,
    store: Arc<Store>,
}

impl Keeper {
    /// Whether a Data is undamaged, and, where it is of a version of something in the group, on its
    /// way into the store. One that finds no room is fetched again.
    fn takes(&self, data: &Data<'_>) -> bool {
        if Verify::Integrity.check(data).is_err() {
            return false;
        }
        if !self.is_of_group(data) {
            return true;
        }
        let insert = self.insert(data.wire.to_vec());
        let asked = self.store.try_apply(vec![insert], |answers| {
            for why in answers.into_iter().filter_map(Result::err) {
                tracing::warn!(%why, "repo-publication-not-kept");
            }
        });
        asked.is_ok()
    }

    /// Whether a Data is of a version of something in the group.
    fn is_of_group(&self, data: &Data<'_>) -> bool {
        let before_last = data.name.len().checked_sub(2).and_then(|at| data.name.get(at));
        let is_versioned = before_last.is_some_and(|component| component.as_version().is_some());
        is_versioned && self.group.as_ref().is_prefix_of(data.name)
    }

    fn insert(&self, packet: Vec<u8>) -> Change {
        Change::Insert { packet, owner: self.owner, expires_ms: 0, arrived_ms: 0 }
    }
}

/// Names that are looked at together.
const LOOKS: usize = 4096;

/// How far each member is of whom publications are kept: what newcomers are told when it has gone.
fn kept(keeper: &Keeper) -> StateVector {
    let (mut known, mut after) = (StateVector::default(), None::<Name>);
    let (mut reader, group) = (keeper.store.reader(), keeper.group.as_ref());
    loop {
        let listed = reader.names(group, after.as_ref().map(Name::as_ref), LOOKS);
        let listed = listed.unwrap_or_default();
        for one in &listed {
            let Some(rest) = one.name.as_ref().strip_prefix(group) else { continue };
            // `/<node>/t=<boot>/seq=<n>/v=0/seg=<k>`
            let Some(at) = rest.len().checked_sub(4) else { continue };
            let boot = rest.get(at).and_then(|component| component.as_timestamp());
            let seq = rest.get(at + 1).and_then(|component| component.as_sequence_num());
            if let (Some(boot), Some(seq)) = (boot, seq) {
                known.raise(&rest.prefix(at).to_name(), boot, seq);
            }
        }
        match listed.last() {
            Some(last) if listed.len() == LOOKS => after = Some(last.name.clone()),
            _ => return known,
        }
    }
}

/// What is fetched beside publications.
#[derive(Debug, Clone)]
enum Wanted {
    /// All segments of a name with a version.
    Object(Name),
    /// The bundles of a member's publications behind `after`, found by the index under `base`.
    History { base: Name, after: u64 },
}

async fn take_part(client: Client, keeper: Keeper, join: Join) {
    if let Err(error) = follow(&client, &keeper, &join).await {
        tracing::warn!(group = %join.group, %error, "repo-group-left");
    }
}

async fn follow(client: &Client, keeper: &Keeper, join: &Join) -> Result<(), Error> {
    let snapshots = Snapshots::None { last: u64::MAX };
    let group = join.group.clone();
    let mut config = AloConfig::new(group, Name::new(), 0, Signer::digest(), snapshots);
    config.svs.node = None;
    config.svs.inner = InnerName::Group;
    config.known = kept(keeper);
    if let Some(multicast) = &join.multicast {
        config.svs.group = multicast.clone().join(config.svs.group.as_ref());
    }
    let believes = keeper.clone();
    let believe = Believe::Those(Box::new(move |data| believes.takes(data)));
    let mut group = client.join(config, believe).await?;
    group.subscribe(Name::new()).await?;
    tracing::info!(group = %join.group, "repo-group-joined");
    let mut fetches = JoinSet::new();
    let mut waiting: Vec<Wanted> = Vec::new();
    let mut bundled: BTreeMap<(Name, u64), u64> = BTreeMap::new();
    loop {
        while fetches.len() < FETCHES_MAX
            && let Some(wanted) = waiting.pop()
        {
            fetches.spawn(fetch(client.clone(), keeper.clone(), wanted));
        }
        let event = tokio::select! {
            event = group.next() => event,
            Some(_) = fetches.join_next() => continue,
        };
        let Some(event) = event else { return Ok(()) };
        let wanted = match event {
            AloEvent::Publisher { node, boot, seq } => bundles(join, &mut bundled, node, boot, seq),
            AloEvent::Publication { content, .. } => asked_to_keep(keeper, &content),
            _ => None,
        };
        if let Some(wanted) = wanted {
            if waiting.len() < WAITING_MAX {
                waiting.push(wanted);
            } else {
                tracing::warn!(group = %join.group, "repo-group-behind");
            }
        }
    }
}

/// The bundles that a member should have made by its publication `seq`: one with its first
/// publication, then one each time that the threshold is reached.
fn bundles(
    join: &Join,
    bundled: &mut BTreeMap<(Name, u64), u64>,
    node: Name,
    boot: u64,
    seq: u64,
) -> Option<Wanted> {
    let threshold = join.history?;
    let mut base = join.group.clone().join(node.as_ref());
    base.append_timestamp(boot);
    let member = (node, boot);
    let after = bundled.get(&member).copied();
    if after.is_some_and(|after| seq < after + threshold) {
        return None;
    }
    bundled.insert(member, seq);
    // The last one may have been made since.
    Some(Wanted::History { base, after: after.unwrap_or(0).saturating_sub(threshold) })
}

/// What a publication asks the repository for, if it is for it.
fn asked_to_keep(keeper: &Keeper, content: &[u8]) -> Option<Wanted> {
    match ndnd::parse(content) {
        Ok(Command::Fetch(name)) if keeper.group.as_ref().is_prefix_of(name.as_ref()) => {
            Some(Wanted::Object(name))
        }
        Ok(Command::Keep(packets)) => {
            for packet in packets {
                let Ok(data) = Data::parse(&packet) else { continue };
                if !keeper.takes(&data) {
                    tracing::warn!(name = %data.name, "repo-publication-not-kept");
                }
            }
            None
        }
        _ => None,
    }
}

async fn fetch(client: Client, keeper: Keeper, mut wanted: Wanted) {
    let mut first = 0;
    for _ in 0..TRIES {
        let done = match &mut wanted {
            Wanted::Object(name) => object(&client, &keeper, name, &mut first).await.is_some(),
            Wanted::History { base, after } => {
                history(&client, &keeper, base, *after).await.is_some()
            }
        };
        if done {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
    tracing::warn!(group = %keeper.group, ?wanted, "repo-object-not-fetched");
}

/// Fetches and keeps an object from segment `first` on. A name without a version gets the newest one,
/// with which a further try goes on.
async fn object(client: &Client, keeper: &Keeper, name: &mut Name, first: &mut u64) -> Option<()> {
    if !is_versioned(name) {
        *name = newest(client, name).await?;
    }
    keeper.object(client, name, first, 0).await.map(drop)
}

fn is_versioned(name: &Name) -> bool {
    name.as_ref().last().is_some_and(|last| last.as_version().is_some())
}

/// The newest version of `name`, as its metadata says.
async fn newest(client: &Client, name: &Name) -> Option<Name> {
    let mut metadata = name.clone();
    metadata.append_keyword("metadata");
    let request = Request { can_be_prefix: true, must_be_fresh: true, ..Request::new(metadata) };
    let packet = client.request(request).await.ok()?;
    let newest = Metadata::parse(packet.data().content).ok()?.name;
    (name.as_ref().is_prefix_of(newest.as_ref()) && is_versioned(&newest)).then_some(newest)
}

/// Fetches and keeps an index of bundles, and the bundles behind `after`.
async fn history(client: &Client, keeper: &Keeper, base: &Name, after: u64) -> Option<()> {
    let mut index = base.clone();
    index.append_keyword("HIDX");
    let index = newest(client, &index).await?;
    let content = keeper.object(client, &index, &mut 0, INDEX_OCTETS_MAX).await?;
    for seq in read_index(&content).ok()?.into_iter().filter(|seq| *seq > after) {
        let mut bundle = base.clone();
        bundle.append_keyword("HIST").append_version(seq);
        keeper.object(client, &bundle, &mut 0, 0).await?;
    }
    Some(())
}

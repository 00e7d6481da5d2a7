//! `onym access serve`: the keys of groups for whoever asks for them by name.

use super::absent;
use crate::exit::{Exit, Failure};
use crate::key_files::failure;
use crate::output::Context;
use crate::secrecy::{self, refused, signed};
use crate::{session, stop};
use onym_access::Group;
use onym_access::names::Ask;
use onym_client::{Answer, Incoming, RouteOptions};
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::{Kept, KeyStore};
use onym_crypto::{Signer, SystemEntropy};
use onym_frame::Buf;
use onym_wire::{Name, types};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A group is read again so often at most.
const READ_EVERY: Duration = Duration::from_secs(1);
/// And so often when somebody asks for what it does not have: it may have changed a moment ago.
const READ_SOON: Duration = Duration::from_millis(20);
/// How long caches take the group's public key as fresh: so late producers know of a new one.
const KEK_FRESHNESS_MS: u64 = 10_000;
/// The same for a member's copy of a private key, which does not change.
const KDK_FRESHNESS_MS: u64 = 3_600_000;
/// Answers that are kept, at most: the first by name gives way.
const KEPT_MAX: usize = 4096;

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { groups: Vec<String> },
    Stopped { answered: u64, refused: u64 },
}

fn text(line: &Line) -> String {
    match line {
        Line::Ready { groups } => format!("ready: {}", groups.join(" ")),
        Line::Stopped { answered, refused } => {
            format!("stopped: {answered} keys sent, {refused} Interests not answered")
        }
    }
}

#[derive(Debug, Default)]
struct Counters {
    answered: AtomicU64,
    refused: AtomicU64,
}

/// What answers for one group.
struct Door {
    store: KeyStore,
    name: Name,
    group: Group,
    signer: Signer,
    read_at: Instant,
    /// By name: making one costs a signature and, for RSA, a passphrase's derivation.
    made: BTreeMap<Name, Buf>,
    counters: Arc<Counters>,
}

impl Door {
    fn open(store: &KeyStore, name: &Name, counters: &Arc<Counters>) -> anyhow::Result<Self> {
        let group = secrecy::group(store, name.as_ref())?.ok_or_else(|| absent(name))?;
        let signer = store.signer(Some(group.owner())).map_err(failure)?;
        let (store, name) = (store.clone(), name.clone());
        let counters = Arc::clone(counters);
        Ok(Self {
            store,
            name,
            group,
            signer,
            read_at: Instant::now(),
            made: BTreeMap::new(),
            counters,
        })
    }

    /// Takes what changed in the store.
    fn read_again(&mut self, every: Duration) {
        if self.read_at.elapsed() < every {
            return;
        }
        self.read_at = Instant::now();
        match secrecy::group(&self.store, self.name.as_ref()) {
            Ok(Some(group)) => {
                let same = group.number() == self.group.number()
                    && group.members().eq(self.group.members());
                if !same {
                    self.made.clear();
                    self.group = group;
                }
            }
            Ok(None) => tracing::warn!(group = %self.name, "the group is gone from the key store"),
            Err(error) => tracing::warn!(group = %self.name, %error, "the group cannot be read"),
        }
        match self.store.signer(Some(self.group.owner())) {
            // A renewed certificate: what is kept names the old one, which stays valid for a while.
            Ok(signer) => self.signer = signer,
            Err(error) => tracing::warn!(group = %self.name, %error, "no key signs for the group"),
        }
    }

    fn answer(&mut self, incoming: &Incoming) -> Answer {
        self.read_again(READ_EVERY);
        let interest = incoming.interest();
        let ask = Ask { name: interest.name.to_name(), can_be_prefix: interest.can_be_prefix };
        let mut found = self.data(&ask);
        if matches!(found, Ok(None)) {
            self.read_again(READ_SOON);
            found = self.data(&ask);
        }
        match found {
            Ok(Some(data)) => {
                self.counters.answered.fetch_add(1, Ordering::Relaxed);
                Answer::Shared(data)
            }
            Ok(None) => {
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                Answer::Nack(onym_wire::NackReason::NONE)
            }
            Err(error) => {
                tracing::warn!(name = %interest.name, %error, "no answer");
                Answer::Nothing
            }
        }
    }

    fn data(&mut self, ask: &Ask) -> anyhow::Result<Option<Buf>> {
        if let Some(made) = self.made.get(&ask.name) {
            return Ok(Some(made.clone()));
        }
        let entropy = &mut SystemEntropy;
        let answer = self.group.answer(ask, unix_now_ms(), entropy);
        let Some((own, content)) = answer.map_err(refused)? else { return Ok(None) };
        let (kek, _) = self.group.kek();
        let (freshness, content_type) = match own == kek {
            true => (KEK_FRESHNESS_MS, types::CONTENT_KEY),
            false => (KDK_FRESHNESS_MS, 0),
        };
        let wire = signed(own.as_ref(), &content, freshness, content_type, &self.signer)?;
        let made = Buf::copy_from(&wire);
        if own != kek {
            if self.made.len() >= KEPT_MAX {
                self.made.pop_first();
            }
            self.made.insert(own, made.clone());
        }
        Ok(Some(made))
    }
}

pub(super) fn run(store: &KeyStore, groups: Vec<Name>, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let mut names = groups;
    if names.is_empty() {
        for file in store.all_kept(Kept::Group).map_err(failure)? {
            names.push(Group::read(&file).map_err(refused)?.name().to_name());
        }
    }
    if names.is_empty() {
        return Err(Failure::new(Exit::NotFound, "the key store has no groups")
            .next("`onym access grant` makes one")
            .into());
    }
    let counters = Arc::new(Counters::default());
    let mut client = session::open_forever(cx)?;
    for name in &names {
        let mut door = Door::open(store, name, &counters)?;
        let respond = move |incoming: &Incoming, _: &mut Vec<u8>| door.answer(incoming);
        client.respond(name.clone(), Box::new(respond)).map_err(|e| session::failure(e.into()))?;
        client.register(name.clone(), RouteOptions::default()).map_err(session::failure)?;
    }
    let ready = Line::Ready { groups: names.iter().map(ToString::to_string).collect() };
    cx.event(&ready, text)?;
    session::serve_until(&mut client, &stop)?;
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (answered, refused) = (count(&counters.answered), count(&counters.refused));
    cx.event(&Line::Stopped { answered, refused }, text)
}

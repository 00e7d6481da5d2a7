//! The state of this node for others who may see it (`management.shown_to`).
//!
//! A thread beside the node, an application of it like any other: what strangers send costs its face
//! and its time, and neither management nor the node's own page.

use super::routing::way_to;
use crate::exit::{Exit, Failure};
use crate::node_shown::{Shown, place, router_view};
use onym_client::blocking::Client;
use onym_client::{Answer, ClientOptions, Incoming, Respond, RouteOptions};
use onym_crypto::Certificate;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::replay::{ReplayGuard, ReplayPolicy};
use onym_crypto::signer::write_digest_data;
use onym_crypto::verify::Signed;
use onym_node::NodeHandle;
use onym_node::config::Config;
use onym_node::mgmt::policy::certificate;
use onym_node::self_name;
use onym_wire::data::DataBuilder;
use onym_wire::mgmt::ORIGIN_CLIENT;
use onym_wire::name::Name;
use onym_wire::signature::KeyLocator;
use onym_wire::{Interest, NackReason};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it is looked whether the node ends.
const LOOK: Duration = Duration::from_millis(200);
/// The node is looked at once in this time, however many ask.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Signatures that are checked in a second; further questions are refused unseen.
const CHECKED_MAX: u32 = 50;
/// How long caches take an answer as fresh.
const FRESHNESS_MS: u64 = 1000;

/// What the configuration means; nothing where nobody is shown anything.
pub(super) struct Settings {
    node: Name,
    to: Vec<Certificate>,
    has_router: bool,
}

pub(super) fn settings(config: &Config, base: &Path) -> anyhow::Result<Option<Settings>> {
    let list = &config.management.shown_to;
    if list.is_empty() {
        return Ok(None);
    }
    let wrong = |why: String| {
        Failure::new(Exit::Usage, "the configuration is wrong")
            .why(format!("key `management.shown_to`: {why}"))
    };
    let node = self_name(config);
    if node.as_ref().get(0).is_none_or(|first| first.value == b"localhost") {
        return Err(wrong("the node has no name that others reach".into())
            .next("set `trace.name`, or `routing.network`")
            .into());
    }
    let read = |text: &String| {
        certificate(text, base)
            .map_err(|why| wrong(why).next("allowed are paths of certificate files and key:/NAME"))
    };
    let to = list.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
    Ok(Some(Settings { node, to, has_router: !config.routing.network.is_empty() }))
}

/// The thread; it ends when this is dropped.
pub(super) struct Handle {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Begins to answer, once the node is ready.
pub(super) fn start(
    settings: Option<Settings>,
    node: &NodeHandle,
) -> anyhow::Result<Option<Handle>> {
    let Some(Settings { node: name, to, has_router }) = settings else { return Ok(None) };
    let failed = |why: String| {
        Failure::new(Exit::Failed, "the node's state cannot be shown")
            .why(why)
            .next("look at management.shown_to")
    };
    let uri = way_to(node)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let open = || -> anyhow::Result<Client> {
        let options = ClientOptions { node: Some(uri.clone()), ..ClientOptions::default() };
        let mut client = Client::open(options).map_err(|e| failed(e.to_string()))?;
        client.stop_when(Arc::clone(&is_over));
        Ok(client)
    };
    let (mut client, asks) = (open()?, open()?);
    let prefix = place(&name);
    let door = Door::new(prefix.clone(), to);
    let showing = Showing { door, state: State { client: asks, name, has_router, last: None } };
    client.respond(prefix.clone(), Box::new(showing)).map_err(|e| failed(e.to_string()))?;
    // The router of the node announces it, so that the node is reached by its name.
    let route = RouteOptions { origin: Some(ORIGIN_CLIENT), ..RouteOptions::default() };
    client.register(prefix.clone(), route).map_err(|e| failed(e.to_string()))?;
    tracing::info!(name = %prefix, "the node's state is shown to those of management.shown_to");
    let ends = Arc::clone(&is_over);
    let run = move || {
        let mut over = || ends.load(Ordering::Relaxed);
        if let Err(error) = client.run(LOOK, &mut over, &mut |_| {})
            && !over()
        {
            tracing::error!(%error, "the node's state is shown no more");
        }
    };
    let thread = std::thread::Builder::new().name("onym-shown".into());
    let thread = thread.spawn(run).map_err(|e| failed(e.to_string()))?;
    Ok(Some(Handle { is_over, thread: Some(thread) }))
}

/// Answers questions.
struct Showing {
    door: Door,
    state: State,
}

impl Respond for Showing {
    fn respond(&mut self, incoming: &Incoming, out: &mut Vec<u8>) -> Answer {
        let interest = incoming.interest();
        if !self.door.admits(&interest, unix_now_ms(), Instant::now()) {
            return Answer::Nack(NackReason::NONE);
        }
        let Some(content) = self.state.content() else { return Answer::Nack(NackReason::NONE) };
        let data =
            DataBuilder { freshness_ms: FRESHNESS_MS, ..DataBuilder::new(interest.name, content) };
        write_digest_data(&data, out);
        Answer::Written
    }
}

/// Who may ask.
struct Door {
    prefix: Name,
    to: Vec<Certificate>,
    replay: ReplayGuard,
    /// Since when signatures are counted, and how many were checked.
    checked: (Instant, u32),
}

impl Door {
    fn new(prefix: Name, to: Vec<Certificate>) -> Self {
        let replay = ReplayGuard::new(ReplayPolicy::default());
        Self { prefix, to, replay, checked: (Instant::now(), 0) }
    }

    /// Whether it is a question that one of those signed who may ask, and the first time that it
    /// comes.
    fn admits(&mut self, interest: &Interest<'_>, now_ms: u64, now: Instant) -> bool {
        let is_here = interest.name.len() == self.prefix.len() + 1
            && self.prefix.as_ref().is_prefix_of(interest.name)
            && interest.app_parameters.is_some();
        let Some(signed) = is_here.then(|| Signed::interest(interest).ok()).flatten() else {
            return false;
        };
        let Some(certificate) = self.to.iter().find(|one| is_by(&signed, one)) else {
            return false;
        };
        let signer = certificate.key_name().value().to_vec();
        // What costs little goes first.
        if signed.replay.time_ms.is_none()
            || self.replay.check(&signer, signed.replay, now_ms).is_err()
            || certificate.check_valid_at(now_ms).is_err()
        {
            return false;
        }
        let (since, count) = &mut self.checked;
        if now.duration_since(*since) >= Duration::from_secs(1) {
            (*since, *count) = (now, 0);
        }
        if *count >= CHECKED_MAX {
            return false;
        }
        *count += 1;
        let is_good = signed.verify_key(certificate.public_key()).is_ok();
        if is_good {
            self.replay.record(&signer, signed.replay, now_ms);
        }
        is_good
    }
}

/// Whether the key locator means the key of `certificate`.
fn is_by(signed: &Signed<'_>, certificate: &Certificate) -> bool {
    match signed.key_locator {
        Some(KeyLocator::Name(name)) => certificate.key_name().is_prefix_of(name),
        Some(KeyLocator::Digest(digest)) => digest == certificate.public_key().key_digest(),
        _ => false,
    }
}

/// The state as it was told last.
struct State {
    client: Client,
    name: Name,
    has_router: bool,
    last: Option<(Instant, Vec<u8>)>,
}

impl State {
    fn content(&mut self) -> Option<&[u8]> {
        let is_old = self.last.as_ref().is_none_or(|(at, _)| at.elapsed() >= LOOK_EVERY);
        if is_old {
            let view = match self.has_router {
                true => router_view(&mut self.client),
                false => Value::Null,
            };
            let shown = Shown::of(&mut self.client, &self.name, &view);
            let shown = shown.inspect_err(|error| tracing::warn!("no state to show: {error}"));
            self.last = Some((Instant::now(), shown.ok()?.into_content()));
        }
        self.last.as_ref().map(|(_, content)| content.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_crypto::{Freshness, KeyType, PrivateKey, Signer};
    use onym_wire::InterestBuilder;

    const NOW_MS: u64 = 1_700_000_000_000;

    struct Holder {
        signer: Signer,
        certificate: Certificate,
    }

    fn holder(key_name: &str) -> Holder {
        let name: Name = key_name.parse().unwrap();
        let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
        let certificate = Certificate::self_signed(name.as_ref(), &key, NOW_MS).unwrap();
        Holder { signer: Signer::key(key, certificate.name().to_name()), certificate }
    }

    fn question(name: &str, signer: &Signer, time_ms: Option<u64>, nonce: u64) -> Vec<u8> {
        let name: Name = name.parse().unwrap();
        let freshness = Freshness { nonce: Some(nonce.to_be_bytes()), time_ms, seq: None };
        let mut wire = Vec::new();
        let interest = InterestBuilder::new(name.as_ref());
        signer.sign_interest(&interest, &[], freshness, &mut wire).unwrap();
        wire
    }

    struct World {
        door: Door,
        now: Instant,
    }

    impl World {
        fn admits(&mut self, wire: &[u8]) -> bool {
            self.door.admits(&Interest::parse(wire).unwrap(), NOW_MS, self.now)
        }
    }

    /// Laws: who is not named is refused, whatever it signs with and whatever it calls its key; what
    /// was asked once is not answered again; nothing else under the name is.
    #[test]
    fn only_those_who_are_named_are_shown_anything() {
        let (friend, stranger) = (holder("/friend/KEY/1"), holder("/stranger/KEY/1"));
        // A key of the same name as the friend's, made by somebody else.
        let forger = holder("/friend/KEY/1");
        let place = "/net/a/32=status";
        let door = Door::new(place.parse().unwrap(), vec![friend.certificate.clone()]);
        let mut world = World { door, now: Instant::now() };
        for signer in [&stranger.signer, &forger.signer, &Signer::digest()] {
            assert!(!world.admits(&question(place, signer, Some(NOW_MS), 1)));
        }
        let good = question(place, &friend.signer, Some(NOW_MS), 2);
        let mut damaged = good.clone();
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        assert!(!world.admits(&damaged));
        for (name, time_ms) in [
            (place, None),
            (place, Some(NOW_MS - 600_000)),
            ("/net/a/32=status/more", Some(NOW_MS + 1)),
            ("/net/a", Some(NOW_MS + 1)),
            ("/net/b/32=status", Some(NOW_MS + 1)),
        ] {
            assert!(!world.admits(&question(name, &friend.signer, time_ms, 3)), "{name}");
        }
        let mut bare = Vec::new();
        InterestBuilder::new(place.parse::<Name>().unwrap().as_ref()).write(&mut bare);
        assert!(!world.admits(&bare), "unsigned");
        assert!(world.admits(&good));
        assert!(!world.admits(&good), "again");
        assert!(!world.admits(&question(place, &friend.signer, Some(NOW_MS), 4)), "the same time");
        assert!(world.admits(&question(place, &friend.signer, Some(NOW_MS + 1), 5)));
    }

    /// Law: a flood of forgeries costs so many checks a second, and ends with them.
    #[test]
    fn forgeries_cost_a_bounded_number_of_checks() {
        let (friend, forger) = (holder("/friend/KEY/1"), holder("/friend/KEY/1"));
        let place = "/net/a/32=status";
        let door = Door::new(place.parse().unwrap(), vec![friend.certificate.clone()]);
        let mut world = World { door, now: Instant::now() };
        for i in 0..200 {
            assert!(!world.admits(&question(place, &forger.signer, Some(NOW_MS), i)));
        }
        assert_eq!(world.door.checked.1, CHECKED_MAX);
        let good = question(place, &friend.signer, Some(NOW_MS), 1000);
        assert!(!world.admits(&good), "unseen");
        world.now += Duration::from_secs(1);
        assert!(world.admits(&good));
    }
}

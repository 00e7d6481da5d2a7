//! What others than a router of ours are told of the routes of applications: the routing program on
//! this machine that takes commands under `/localhost/nlsr`, and the hub to which `/localhop/nfd`
//! leads (automatic prefix propagation).

mod spread;
#[cfg(test)]
mod tests;

use onym_client::ClientOptions;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_crypto::Signer;
use onym_tables::Tick;
use onym_wire::Name;
use onym_wire::mgmt::{ControlParameters, ORIGIN_CLIENT, RibEntry};
use spread::{Outcome, Place, Spread, Timing, Told, Verb};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two looks at the routes.
const EVERY: Duration = Duration::from_millis(500);
/// Commands between two looks, at most: what ends is seen meanwhile.
const AT_ONCE: usize = 64;
/// What a prefix costs at the hub.
const HUB_COST: u64 = 15;

/// What is told, and of which node.
#[derive(Debug, Clone)]
pub struct Readvertise {
    /// The node: `unix:///path` or `tcp://host:port`.
    pub node: String,
    /// To `/localhost/nlsr`.
    pub nlsr: bool,
    /// To the hub, under these identities, each signing for itself; none: nothing is told there.
    pub hub: Vec<(Name, Signer)>,
}

/// A thread that tells; dropping it ends it.
#[derive(Debug)]
pub struct Telling {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts telling.
///
/// # Errors
/// No thread.
pub fn tell(what: Readvertise) -> std::io::Result<Telling> {
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let thread = std::thread::Builder::new().name("readvertise".into());
    let thread = thread.spawn(move || run(&what, &over))?;
    Ok(Telling { is_over, thread: Some(thread) })
}

fn run(what: &Readvertise, is_over: &Arc<AtomicBool>) {
    let begun = Instant::now();
    let now = || Tick(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let (mut nlsr, mut hub) = (Spread::new(Timing::NLSR), Spread::new(Timing::HUB));
    while !is_over.load(Ordering::Relaxed) {
        let options = ClientOptions { node: Some(what.node.clone()), ..ClientOptions::default() };
        if let Ok(mut client) = Client::open(options) {
            client.stop_when(Arc::clone(is_over));
            while let Ok(rib) = mgmt::rib(&mut client) {
                let at = now();
                if what.nlsr {
                    nlsr.look(at, place(&rib, &["localhost", "nlsr"]), for_nlsr(&rib));
                }
                if !what.hub.is_empty() {
                    hub.look(at, place(&rib, &["localhop", "nfd"]), for_hub(&rib, &what.hub));
                }
                for _ in 0..AT_ONCE {
                    let some = say_nlsr(&mut nlsr, &mut client, now())
                        | say_hub(what, &mut hub, &mut client, now());
                    if !some || is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(EVERY);
            }
        }
        std::thread::sleep(EVERY);
    }
}

fn words(of: &[&str]) -> Name {
    let mut name = Name::new();
    for word in of {
        name.append_generic(word);
    }
    name
}

/// Whether a route leads to who takes commands under this name.
fn place(rib: &[RibEntry], to: &[&str]) -> Place {
    let to = words(to);
    let beginning = |name: &Name| !name.is_empty() && name.as_ref().is_prefix_of(to.as_ref());
    let leads = rib.iter().any(|entry| beginning(&entry.name) && !entry.routes.is_empty());
    if leads { Place::There } else { Place::Away }
}

/// Prefixes of origin client with their least cost.
fn for_nlsr(rib: &[RibEntry]) -> BTreeMap<Name, u64> {
    let own = |entry: &RibEntry| {
        let costs = entry.routes.iter().filter(|r| r.origin == ORIGIN_CLIENT).map(|r| r.cost);
        Some((entry.name.clone(), costs.min()?))
    };
    rib.iter().filter(|entry| is_public(&entry.name)).filter_map(own).collect()
}

/// The identities that cover such prefixes.
fn for_hub(rib: &[RibEntry], identities: &[(Name, Signer)]) -> BTreeMap<Name, u64> {
    let covers = |name: &Name| {
        let covering = identities.iter().map(|(identity, _)| announced(identity));
        let covering = covering.filter(|identity| identity.as_ref().is_prefix_of(name.as_ref()));
        covering.min_by_key(Name::len)
    };
    for_nlsr(rib).keys().filter_map(covers).map(|name| (name, HUB_COST)).collect()
}

/// What an identity stands for: without the `nrd` of an old daemon's key.
fn announced(identity: &Name) -> Name {
    let last = identity.as_ref().last();
    let is_daemon = last.is_some_and(|c| c.is_generic() && c.value == b"nrd");
    if is_daemon { identity.as_ref().drop_last(1).to_name() } else { identity.clone() }
}

fn is_public(name: &Name) -> bool {
    let first = name.as_ref().get(0).filter(|c| c.is_generic()).map(|c| c.value);
    !matches!(first, None | Some(b"localhost" | b"localhop"))
}

fn say_nlsr(spread: &mut Spread, client: &mut Client, now: Tick) -> bool {
    let Some(told) = spread.next(now) else { return false };
    say(spread, client, now, &words(&["localhost", "nlsr"]), &told, &Signer::digest());
    true
}

fn say_hub(what: &Readvertise, spread: &mut Spread, client: &mut Client, now: Tick) -> bool {
    let Some(told) = spread.next(now) else { return false };
    let mut identities = what.hub.iter();
    let Some((_, signer)) = identities.find(|(identity, _)| announced(identity) == told.prefix)
    else {
        return false;
    };
    say(spread, client, now, &words(&["localhop", "nfd"]), &told, signer);
    true
}

fn say(
    spread: &mut Spread,
    client: &mut Client,
    now: Tick,
    to: &Name,
    told: &Told,
    signer: &Signer,
) {
    let (verb, cost) = match told.verb {
        Verb::Register(cost) => ("register", Some(cost)),
        Verb::Unregister => ("unregister", None),
    };
    let parameters = ControlParameters {
        name: Some(told.prefix.clone()),
        origin: Some(ORIGIN_CLIENT),
        cost,
        ..ControlParameters::default()
    };
    let answer = client.command_to(to, ["rib", verb], &parameters, signer);
    // NLSR says 204 when it is so already.
    let is_done = answer.as_ref().is_ok_and(|answer| answer.code < 400);
    let prefix = &told.prefix;
    match &answer {
        Ok(answer) if is_done => {
            tracing::info!(target: "onym::readvertise", %prefix, code = answer.code, "{verb} at {to}");
        }
        Ok(answer) => {
            let (code, text) = (answer.code, &answer.text);
            tracing::warn!(target: "onym::readvertise", %prefix, code, "{to} refuses to {verb}: {text}");
        }
        Err(error) => {
            tracing::warn!(target: "onym::readvertise", %prefix, "{to} does not answer {verb}: {error}");
        }
    }
    spread.answered(now, told, if is_done { Outcome::Done } else { Outcome::Failed });
}

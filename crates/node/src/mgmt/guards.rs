//! The trust of a node: guards by name, what they ask for, and the fetches under way.

use super::Output;
use onym_crypto::Certificate;
use onym_crypto::Entropy;
use onym_guard::Guard;
use onym_tables::{FaceId, Tick};
use onym_trust::Hierarchy;
use onym_trust::chain::{Context, Event, Failure, Limits, Refusal};
use onym_wire::data::Data;
use onym_wire::interest::InterestBuilder;
use onym_wire::name::{Name, NameRef};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long a certificate is waited for before it is asked for again, in milliseconds: who sent the
/// command hears within the usual lifetime of an Interest, 4 s, that it did not come.
const PATIENCE_MS: u64 = 1500;
/// How often a certificate is asked for.
const TRIES_MAX: u32 = 2;
/// Most certificates that one guard asks for at once.
const FETCHES_MAX: usize = 64;

/// Guards by the name that the configuration gives them. Names with a dot are the node's own: the
/// key whose anchors they start from.
#[derive(Debug, Default)]
pub struct Guards(pub(super) BTreeMap<String, Guard>);

/// Two are the same when they were opened alike.
impl PartialEq for Guards {
    fn eq(&self, other: &Self) -> bool {
        let settings = |guards: &Self| -> Vec<_> {
            guards.0.iter().map(|(name, guard)| (name.clone(), guard.settings().clone())).collect()
        };
        settings(self) == settings(other)
    }
}

impl Eq for Guards {}

/// The judgement of a packet that waited.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) ticket: u64,
    pub(super) result: Result<(), Refusal>,
}

/// A certificate that is asked for.
#[derive(Debug)]
struct Open {
    guard: String,
    id: u64,
    name: Name,
    face: FaceId,
    due: Tick,
    tries: u32,
}

impl Open {
    /// The Interest for it: by the name of the key any certificate of it will do.
    fn interest(&self, entropy: &mut (dyn Entropy + Send)) -> Output {
        let mut nonce = [0; 4];
        entropy.fill(&mut nonce);
        let mut wire = Vec::new();
        InterestBuilder {
            can_be_prefix: true,
            must_be_fresh: true,
            nonce: Some(nonce),
            lifetime_ms: Some(PATIENCE_MS),
            ..InterestBuilder::new(self.name.as_ref())
        }
        .write(&mut wire);
        Output::Interest { wire, next_hop: self.face }
    }
}

/// The guards at work: what they ask for is sent where the packet came from, whose sender can serve
/// its certificates.
#[derive(Debug, Default)]
pub(super) struct Fetcher {
    guards: BTreeMap<String, Guard>,
    open: Vec<Open>,
    look_at: Option<Tick>,
}

impl Fetcher {
    pub(super) fn new(guards: Guards) -> Self {
        Self { guards: guards.0, ..Self::default() }
    }

    /// Takes other guards; those that are opened as before stay, with what they learned. The names
    /// of the guards that changed.
    pub(super) fn set(&mut self, guards: Guards) -> Vec<String> {
        let mut old = std::mem::take(&mut self.guards);
        let mut changed = Vec::new();
        for (name, guard) in guards.0 {
            match old.remove(&name) {
                Some(same) if same.settings() == guard.settings() && !is_own(&name) => {
                    self.guards.insert(name, same);
                }
                other => {
                    changed.extend(other.map(|_| name.clone()));
                    self.guards.insert(name, guard);
                }
            }
        }
        changed.extend(old.into_keys());
        self.open.retain(|open| !changed.contains(&open.guard));
        self.look_at = None;
        changed
    }

    pub(super) fn guards(&self) -> impl Iterator<Item = (&str, &Guard)> {
        self.guards.iter().map(|(name, guard)| (name.as_str(), guard))
    }

    pub(super) fn get(&mut self, name: &str) -> Option<&mut Guard> {
        self.guards.get_mut(name)
    }

    /// Judges a Data, such as an announcement, by the rules about `subject`; `None` says that it
    /// waits under `ticket`.
    pub(super) fn data(
        &mut self,
        guard: &str,
        data: &Data<'_>,
        subject: NameRef<'_>,
        ticket: u64,
        context: &Context,
    ) -> Option<Result<(), Refusal>> {
        let judged = self.get(guard)?.validator_mut().data_about(data, subject, ticket, context);
        judged.map(|result| result.map(|_| ()))
    }

    /// When [`Fetcher::handle_timeout`] is called next.
    pub(super) fn next_timeout(&self) -> Option<Tick> {
        let due = self.open.iter().map(|open| open.due);
        due.chain(self.look_at).min()
    }

    /// Asks again for what did not come, gives up what was asked for often enough, and looks at the
    /// files when it is time to.
    pub(super) fn handle_timeout(
        &mut self,
        now: Tick,
        unix_ms: u64,
        entropy: &mut (dyn Entropy + Send),
        out: &mut Vec<Output>,
    ) {
        let due: Vec<Open> = self.open.extract_if(.., |open| open.due <= now).collect();
        for mut open in due {
            if open.tries < TRIES_MAX {
                open.tries += 1;
                open.due = now.plus_ms(PATIENCE_MS);
                out.push(open.interest(entropy));
                self.open.push(open);
            } else if let Some(guard) = self.guards.get_mut(&open.guard) {
                guard.validator_mut().failed(open.id, Failure::TimedOut, unix_ms);
            }
        }
        if self.look_at.is_some_and(|at| at <= now) {
            self.look(unix_ms);
            self.look_at = None;
        }
    }

    fn look(&mut self, unix_ms: u64) {
        for (name, guard) in &mut self.guards {
            for notice in guard.look(unix_ms) {
                match notice.is_bad {
                    true => tracing::warn!(trust = %name, "{notice}"),
                    false => tracing::info!(trust = %name, "{notice}"),
                }
            }
        }
    }

    /// Hands a Data that came from `face` to whoever asks for it there. Data of unknown origin goes
    /// to all of them.
    pub(super) fn take(&mut self, data: &Data<'_>, face: FaceId, unix_ms: u64) {
        let is_for = |open: &mut Open| {
            open.name.as_ref().is_prefix_of(data.name)
                && (open.face == FaceId::INVALID || face == FaceId::INVALID || open.face == face)
        };
        let answered: Vec<Open> = self.open.extract_if(.., is_for).collect();
        for open in answered {
            let Some(guard) = self.guards.get_mut(&open.guard) else { continue };
            let context = Context { now_ms: unix_ms, ..Context::default() };
            guard.validator_mut().certificate(open.id, data.wire, &context);
        }
    }

    /// What guards want asked and what they judged, after any of the above. `asked` has the names
    /// that a neighbour is asked for itself: what is cached of them is no answer of his.
    pub(super) fn work(
        &mut self,
        now: Tick,
        entropy: &mut (dyn Entropy + Send),
        out: &mut Vec<Output>,
        asked: &mut Vec<Name>,
    ) -> Vec<Judged> {
        let mut judged = Vec::new();
        for (name, guard) in &mut self.guards {
            while let Some(event) = guard.validator_mut().poll() {
                match event {
                    Event::Judged { ticket, result } => {
                        judged.push(Judged { ticket, result: result.map(|_| ()) });
                    }
                    Event::Fetch(fetch) => {
                        let via = fetch.via.and_then(|face| u32::try_from(face).ok());
                        let open = Open {
                            guard: name.clone(),
                            id: fetch.id,
                            name: fetch.name,
                            face: FaceId(via.unwrap_or(FaceId::INVALID.0)),
                            due: now.plus_ms(PATIENCE_MS),
                            tries: 1,
                        };
                        out.push(open.interest(entropy));
                        if via.is_some() {
                            asked.push(open.name.clone());
                        }
                        self.open.push(open);
                    }
                }
            }
        }
        if self.look_at.is_none() {
            let every = self.guards.values().map(|g| g.settings().refresh_s).filter(|s| *s > 0);
            self.look_at = every.min().map(|s| now.plus_ms(s.saturating_mul(1000)));
        }
        judged
    }
}

/// Whether a guard is made from anchors of the configuration and has no entry of its own.
fn is_own(name: &str) -> bool {
    name.contains('.')
}

/// A guard for the anchors of a key: whoever they vouch for speaks for what is under its identity.
pub(super) fn by_hierarchy(anchors: Vec<Certificate>) -> Guard {
    let limits = Limits { fetches: FETCHES_MAX, packets: 4 * FETCHES_MAX, ..Limits::default() };
    Guard::fixed(Arc::new(Hierarchy), anchors, limits)
        .expect("invariant: this policy takes every anchor, and there are at most 1024")
}

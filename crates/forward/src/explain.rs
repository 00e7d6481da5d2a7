//! Explains what the forwarder would do with an Interest and which table decides. Read-only.

use crate::choice::Choice;
use crate::path::is_localhost;
use crate::stage::{Target, query};
use crate::strategy::{Action, Ctx, Entry, Refusal};
use crate::{Forwarder, Verdict};
use onym_tables::fib::NextHop;
use onym_tables::hash::NameHashes;
use onym_tables::measurements::Measurements;
use onym_tables::pit::{InRecord, Key, Token};
use onym_tables::{FaceId, Tick};
use onym_wire::interest::{Interest, InterestBuilder};
use onym_wire::mgmt::Scope;
use onym_wire::name::{Name, NameRef};

/// An Interest that did not come.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Its name.
    pub name: NameRef<'a>,
    /// CanBePrefix.
    pub can_be_prefix: bool,
    /// MustBeFresh.
    pub must_be_fresh: bool,
    /// Forwarding hint, preferred first.
    pub forwarding_hint: &'a [NameRef<'a>],
    /// HopLimit.
    pub hop_limit: Option<u8>,
    /// Where it would come from. The null face stands for an application on this host.
    pub ingress: FaceId,
}

impl<'a> Question<'a> {
    /// An Interest for exactly `name` from an application on this host.
    #[must_use]
    pub fn new(name: NameRef<'a>) -> Self {
        Self {
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            forwarding_hint: &[],
            hop_limit: None,
            ingress: FaceId::NULL,
        }
    }
}

/// One next hop of the FIB entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// Face and cost.
    pub hop: NextHop,
    /// Why the Interest may not take it; `None` when it may.
    pub barred: Option<&'static str>,
}

/// What the tables say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// How the Interest would end, as far as the tables tell.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub because: String,
    /// Whether the content store would answer.
    pub cs_hit: bool,
    /// Downstreams that wait for the same already; `None` when it is not pending.
    pub pending: Option<Vec<FaceId>>,
    /// Upstreams that were asked already.
    pub asked: Vec<FaceId>,
    /// Whether the forwarding hint names a region of this node, so that it is left out.
    pub region_reached: bool,
    /// The delegation that leads, when the hint does.
    pub delegation: Option<Name>,
    /// The longest FIB prefix.
    pub fib_prefix: Option<Name>,
    /// Its next hops, lowest cost first.
    pub next_hops: Vec<Hop>,
    /// The prefix whose strategy decides.
    pub strategy_prefix: Name,
    /// That strategy, with version and parameters.
    pub strategy: Name,
    /// Where the strategy would send it.
    pub chosen: Vec<FaceId>,
}

impl Forwarder {
    /// What would be done at `now` with the Interest that `question` describes. `None` when there
    /// is no such Interest: its name is empty.
    #[must_use]
    pub fn explain(&mut self, now: Tick, question: &Question<'_>) -> Option<Explanation> {
        let mut wire = Vec::new();
        InterestBuilder {
            can_be_prefix: question.can_be_prefix,
            must_be_fresh: question.must_be_fresh,
            forwarding_hint: question.forwarding_hint,
            nonce: Some([0; 4]),
            hop_limit: question.hop_limit,
            ..InterestBuilder::new(question.name)
        }
        .write(&mut wire);
        match Interest::parse(&wire) {
            Ok(interest) => Some(self.explain_interest(now, question, &interest)),
            Err(_) => self.explain_signed(now, question),
        }
    }

    /// As for the name without its parameters digest, which only an Interest with parameters has.
    fn explain_signed(&mut self, now: Tick, question: &Question<'_>) -> Option<Explanation> {
        let shorter: Name =
            question.name.components().filter(|c| !c.is_parameters_digest()).collect();
        if shorter.len() == question.name.len() {
            return None;
        }
        self.explain(now, &Question { name: shorter.as_ref(), ..*question })
    }

    fn explain_interest(
        &mut self,
        now: Tick,
        question: &Question<'_>,
        interest: &Interest<'_>,
    ) -> Explanation {
        let name = interest.name.value();
        let lengths = self.routes.fib.lengths() | self.strategies.choices.lengths();
        let hashes = NameHashes::new(&self.pending.key, name, lengths);
        let hint = &interest.forwarding_hint;
        let hint_hash = self.pending.hint_of(interest);
        let key = Key {
            can_be_prefix: interest.can_be_prefix,
            must_be_fresh: interest.must_be_fresh,
            hint: hint_hash,
            ..Key::new(name, &hashes)
        };
        let slot = self.pending.pit.look(&key).found;
        let target = Target { interest, hashes: &hashes, by_hint: hint_hash != 0 };
        let (prefix, hops) = self.routes.find(&self.pending.key, &target);
        let (choice_prefix, Choice { instance, .. }) =
            self.strategies.choices.effective(&hashes, name);
        let named = |bytes: &[u8]| NameRef::parse_value(bytes).map(NameRef::to_name).ok();
        let mut explanation = Explanation {
            verdict: Verdict::Forwarded,
            because: String::new(),
            cs_hit: false,
            pending: slot.map(|s| self.pending.pit.entry(s).ins.iter().map(|r| r.face).collect()),
            asked: slot.map_or_else(Vec::new, |s| {
                self.pending.pit.entry(s).outs.iter().map(|r| r.face).collect()
            }),
            region_reached: !hint.is_empty() && hint_hash == 0,
            delegation: (hint_hash != 0 && !hops.is_empty())
                .then(|| hint.iter().find(|d| d.value().starts_with(prefix.bytes)))
                .flatten()
                .map(NameRef::to_name),
            fib_prefix: if hops.is_empty() { None } else { named(prefix.bytes) },
            next_hops: Vec::new(),
            strategy_prefix: named(choice_prefix.bytes).unwrap_or_default(),
            strategy: instance.clone(),
            chosen: Vec::new(),
        };
        explanation.cs_hit = self.cache.store.would_find(now, &query(interest, &hashes));
        let decided = self.try_strategy(now, question, &target, slot);
        (explanation.next_hops, explanation.chosen) = (decided.hops, decided.chosen);
        (explanation.verdict, explanation.because) =
            self.judge(question, name, &explanation, decided.refusal, decided.suppressed);
        explanation
    }

    /// Lets the strategy decide about a copy of the entry and of what it has measured.
    fn try_strategy(
        &mut self,
        now: Tick,
        question: &Question<'_>,
        target: &Target<'_>,
        slot: Option<u32>,
    ) -> Decided {
        let interest = target.interest;
        let name = interest.name.value();
        let mut entry = slot.map_or_else(Entry::default, |s| self.pending.pit.entry(s).clone());
        let repeats = entry.in_record(question.ingress).is_some();
        entry.ins.retain(|r| r.face != question.ingress);
        entry.ins.push(InRecord {
            face: question.ingress,
            nonce: 0,
            expiry: now.plus_ms(interest.lifetime_or_default()),
            token: Token::new(),
            non_discovery: false,
            repeats,
        });
        let (fib_prefix, next_hops) = self.routes.find(&self.pending.key, target);
        let (_, choice) = self.strategies.choices.effective(target.hashes, name);
        let mut measurements: Measurements<_> =
            self.strategies.measurements.copy_for(&self.pending.key, name);
        let mut actions = Vec::new();
        let mut ctx = Ctx {
            now,
            name,
            entry: &mut entry,
            next_hops,
            fib_prefix,
            faces: &self.pending.faces,
            measurements: &mut measurements,
            key: &self.pending.key,
            rng: &mut self.pending.rng.clone(),
            actions: &mut actions,
        };
        let hops = next_hops
            .iter()
            .map(|&hop| Hop { hop, barred: barred(&ctx, question, hop.face) })
            .collect();
        choice.strategy.after_receive_interest(&mut ctx, question.ingress);
        Decided::new(hops, &actions)
    }

    fn judge(
        &self,
        question: &Question<'_>,
        name: &[u8],
        e: &Explanation,
        refusal: Option<Refusal>,
        suppressed: bool,
    ) -> (Verdict, String) {
        let is_local =
            self.pending.faces.get(question.ingress).is_none_or(|f| f.info.scope == Scope::Local);
        if !is_local && is_localhost(name) {
            return (Verdict::Scope, "names under /localhost come from this host only".into());
        }
        if question.hop_limit == Some(0) {
            return (Verdict::HopLimitZero, "its HopLimit is used up".into());
        }
        let asked_for = e.pending.as_ref().is_some_and(|faces| !faces.is_empty());
        if e.cs_hit && !asked_for {
            return (Verdict::CsHit, "the content store has matching Data".into());
        }
        let to_management = e.chosen.iter().all(|face| *face == FaceId::INTERNAL);
        match (e.chosen.is_empty(), refusal) {
            (false, _) if to_management => {
                (Verdict::Delivered, "the management of this node serves it".into())
            }
            (false, _) => (Verdict::Forwarded, format!("{} sends it on", e.strategy)),
            (true, Some(Refusal::NoRoute)) => (
                Verdict::NoRoute,
                "no FIB entry covers the name; add a route or register it".into(),
            ),
            (true, Some(Refusal::NoEligibleNextHop)) => (
                Verdict::NoEligibleNextHop,
                "the FIB entry has next hops, but the Interest may take none of them".into(),
            ),
            (true, Some(Refusal::Rejected)) => {
                (Verdict::StrategyRejected, format!("{} refuses it", e.strategy))
            }
            (true, None) if suppressed => (
                Verdict::Suppressed,
                "the same Interest was sent a moment ago; it waits with the others".into(),
            ),
            (true, None) => (
                Verdict::Aggregated,
                "the same Interest is pending; it waits with the others".into(),
            ),
        }
    }
}

/// What a strategy said.
struct Decided {
    hops: Vec<Hop>,
    chosen: Vec<FaceId>,
    refusal: Option<Refusal>,
    suppressed: bool,
}

impl Decided {
    fn new(hops: Vec<Hop>, actions: &[Action]) -> Self {
        let mut decided = Self { hops, chosen: Vec::new(), refusal: None, suppressed: false };
        for action in actions {
            match action {
                Action::Forward(face) | Action::Probe(face) | Action::ForwardNonDiscovery(face) => {
                    decided.chosen.push(*face);
                }
                Action::Reject(refusal) | Action::Hold(refusal) => decided.refusal = Some(*refusal),
                Action::Suppress => decided.suppressed = true,
                _ => {}
            }
        }
        decided
    }
}

fn barred(ctx: &Ctx<'_>, question: &Question<'_>, face: FaceId) -> Option<&'static str> {
    let Some(to) = ctx.faces.get(face) else { return Some("the face is closed") };
    if face == question.ingress && !ctx.is_eligible(question.ingress, face) {
        return Some("it is where the Interest comes from");
    }
    if !ctx.is_eligible(question.ingress, face) {
        return Some("the scope of the name ends at this host");
    }
    (question.hop_limit == Some(1) && !to.is_local()).then_some("the HopLimit ends at this host")
}

//! Commands: which verb a name means, its parameters, and which fields a verb takes.

use onym_crypto::verify::{Signed, check_parameters_digest};
use onym_tables::FaceId;
use onym_wire::cert::PrefixAnnouncement;
use onym_wire::data::Data;
use onym_wire::interest::Interest;
use onym_wire::mgmt::{ControlParameters, ControlResponse, parameters_of};
use onym_wire::name::{Component, Name, NameRef};

/// Modules whose commands can be granted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Module {
    Cs,
    Faces,
    Fib,
    Log,
    Rib,
    StrategyChoice,
}

/// All verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    CsConfig,
    CsErase,
    FacesCreate,
    FacesDestroy,
    FacesUpdate,
    FibAddNexthop,
    FibRemoveNexthop,
    LogSet,
    RibAnnounce,
    RibRegister,
    RibUnregister,
    StrategySet,
    StrategyUnset,
}

/// Sets of fields of ControlParameters, a bit for each.
mod fields {
    pub(super) const NAME: u16 = 1;
    pub(super) const FACE_ID: u16 = 1 << 1;
    pub(super) const URI: u16 = 1 << 2;
    pub(super) const LOCAL_URI: u16 = 1 << 3;
    pub(super) const ORIGIN: u16 = 1 << 4;
    pub(super) const COST: u16 = 1 << 5;
    pub(super) const CAPACITY: u16 = 1 << 6;
    pub(super) const COUNT: u16 = 1 << 7;
    pub(super) const FLAGS: u16 = 1 << 8;
    pub(super) const MASK: u16 = 1 << 9;
    pub(super) const STRATEGY: u16 = 1 << 10;
    pub(super) const EXPIRATION: u16 = 1 << 11;
    pub(super) const PERSISTENCY: u16 = 1 << 12;
    pub(super) const INTERVAL: u16 = 1 << 13;
    pub(super) const THRESHOLD: u16 = 1 << 14;
    pub(super) const MTU: u16 = 1 << 15;
    /// The properties of a face that can be chosen.
    pub(super) const PROPS: u16 = FLAGS | MASK | PERSISTENCY | INTERVAL | THRESHOLD | MTU;
    /// In the order of the bits.
    pub(super) const WORDS: [&str; 16] = [
        "Name",
        "FaceId",
        "Uri",
        "LocalUri",
        "Origin",
        "Cost",
        "Capacity",
        "Count",
        "Flags",
        "Mask",
        "Strategy",
        "ExpirationPeriod",
        "FacePersistency",
        "BaseCongestionMarkingInterval",
        "DefaultCongestionThreshold",
        "Mtu",
    ];
}
use fields::{
    CAPACITY, COST, COUNT, EXPIRATION, FACE_ID, FLAGS, LOCAL_URI, MASK, NAME, ORIGIN, PROPS,
    STRATEGY, URI, WORDS,
};

/// Module, verb, required and optional fields. Any other field is refused.
#[rustfmt::skip]
const VERBS: &[(Module, &str, &str, Verb, u16, u16)] = &[
    (Module::Cs, "cs", "config", Verb::CsConfig, 0, CAPACITY | FLAGS | MASK),
    (Module::Cs, "cs", "erase", Verb::CsErase, NAME, COUNT),
    (Module::Faces, "faces", "create", Verb::FacesCreate, URI, LOCAL_URI | PROPS),
    (Module::Faces, "faces", "destroy", Verb::FacesDestroy, FACE_ID, 0),
    (Module::Faces, "faces", "update", Verb::FacesUpdate, 0, FACE_ID | PROPS),
    (Module::Fib, "fib", "add-nexthop", Verb::FibAddNexthop, NAME, FACE_ID | COST),
    (Module::Fib, "fib", "remove-nexthop", Verb::FibRemoveNexthop, NAME, FACE_ID),
    (Module::Log, "log", "set", Verb::LogSet, URI, 0),
    (Module::Rib, "rib", "announce", Verb::RibAnnounce, 0, 0),
    (Module::Rib, "rib", "register", Verb::RibRegister, NAME, FACE_ID | ORIGIN | COST | FLAGS | EXPIRATION),
    (Module::Rib, "rib", "unregister", Verb::RibUnregister, NAME, FACE_ID | ORIGIN),
    (Module::StrategyChoice, "strategy-choice", "set", Verb::StrategySet, NAME | STRATEGY, 0),
    (Module::StrategyChoice, "strategy-choice", "unset", Verb::StrategyUnset, NAME, 0),
];

/// All that management can be told to do, as `module/verb`.
pub fn verbs() -> impl Iterator<Item = String> {
    VERBS.iter().map(|(_, module, verb, ..)| format!("{module}/{verb}"))
}

/// Whether `name` is that of a command in our own namespace: `/localhost/onym/log/set`.
pub(super) fn is_ours(name: NameRef<'_>) -> bool {
    let words = [&b"localhost"[..], b"onym", b"log", b"set"];
    words.iter().enumerate().all(|(i, word)| name.get(i).is_some_and(|c| c.value == *word))
}

/// A command as its Interest carries it.
#[derive(Debug)]
pub(super) struct Command<'a> {
    /// The whole Interest.
    pub(super) wire: &'a [u8],
    /// The whole name: that of the answer.
    pub(super) name: NameRef<'a>,
    pub(super) module: Module,
    pub(super) verb: Verb,
    /// Empty for rib/announce.
    pub(super) parameters: ControlParameters,
    /// The announcement of rib/announce.
    pub(super) announcement: Option<(Data<'a>, PrefixAnnouncement<'a>)>,
    /// The signature, or why there is none that counts.
    pub(super) signed: Result<Signed<'a>, onym_crypto::Error>,
    required: u16,
    optional: u16,
}

/// A refusal: its code and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: u64,
    pub(super) text: String,
}

impl Refusal {
    pub(super) fn new(code: u64, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

impl From<Refusal> for ControlResponse {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code, refusal.text)
    }
}

/// Why an Interest is not carried out as a command.
#[derive(Debug)]
pub(super) enum NotCommand {
    /// It gets no answer.
    Silent,
    /// It gets this one.
    Refused(Refusal),
}

impl<'a> Command<'a> {
    /// Whether it is about `face`, the one that it came from.
    pub(super) fn is_about(&self, face: FaceId) -> bool {
        self.parameters.face_id.is_none_or(|id| id == 0 || id == u64::from(face.0))
    }

    /// The command in an Interest under `/localhost/nfd` or `/localhop/nfd`.
    pub(super) fn parse(interest: &Interest<'a>) -> Result<Self, NotCommand> {
        let name = interest.name;
        let mut parts = name.suffix(2).components();
        let (Some(module), Some(verb)) = (parts.next(), parts.next()) else {
            return Err(NotCommand::Silent);
        };
        let is = |c: Component<'_>, word: &str| c.is_generic() && c.value == word.as_bytes();
        let ours = is_ours(name);
        let row = VERBS
            .iter()
            .find(|row| is(module, row.1) && is(verb, row.2) && (row.0 == Module::Log) == ours);
        let Some(&(module, _, _, verb, required, optional)) = row else {
            return Err(NotCommand::Refused(unknown(module, verb)));
        };
        let mut command = Self {
            wire: interest.wire,
            name,
            module,
            verb,
            parameters: ControlParameters::default(),
            announcement: None,
            signed: Signed::interest(interest),
            required,
            optional,
        };
        if verb == Verb::RibAnnounce {
            command.announcement = Some(announcement(interest)?);
        } else {
            command.parameters = parameters(parts.next())?;
        }
        Ok(command)
    }

    /// Checks that exactly the fields are there that the verb takes.
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        let present = present(&self.parameters);
        let refuse = |text: String| Err(bad_parameters(&text));
        if let Some(word) = first(self.required & !present) {
            return refuse(format!("{word} is missing"));
        }
        if let Some(word) = first(present & !(self.required | self.optional)) {
            return refuse(format!("{word} must not be given"));
        }
        let with_mask = self.optional & MASK != 0;
        if with_mask && self.parameters.flags.is_some() != self.parameters.mask.is_some() {
            return refuse("Flags and Mask go together".into());
        }
        if self.parameters.origin.is_some_and(|origin| origin > 65_535) {
            return refuse("Origin is above 65535".into());
        }
        Ok(())
    }

    /// The prefix that the command is about, when it is about one.
    pub(super) fn subject(&self) -> Option<NameRef<'_>> {
        match &self.announcement {
            Some((_, announcement)) => Some(announcement.prefix),
            None => self.parameters.name.as_ref().map(|n| n.as_ref()),
        }
    }

    /// The command as rules of LightVerSec see it: without parameters, then the prefix that it is
    /// about, when it is about one.
    pub(super) fn spoken(&self) -> Name {
        let mut name = self.name.prefix(4).to_name();
        if let Some(prefix) = self.subject() {
            name.append(prefix);
        }
        name
    }

    /// The answer to one who may not.
    pub(super) fn denial(&self, why: &str) -> Refusal {
        if self.verb == Verb::RibAnnounce {
            // 1 is the number of "validation failure" in the field's list of reasons.
            return Refusal::new(403, format!("Prefix announcement rejected: 1 ({why})"));
        }
        Refusal::new(403, format!("authorization rejected: {why}"))
    }
}

fn parameters(component: Option<Component<'_>>) -> Result<ControlParameters, NotCommand> {
    let refuse = |text: &str| NotCommand::Refused(bad_parameters(text));
    let component = component.ok_or_else(|| refuse("there are no ControlParameters"))?;
    parameters_of(component).map_err(|e| refuse(&format!("ControlParameters: {e}")))
}

fn announcement<'a>(
    interest: &Interest<'a>,
) -> Result<(Data<'a>, PrefixAnnouncement<'a>), NotCommand> {
    let refuse = |text: String| NotCommand::Refused(bad_parameters(&text));
    let wire = interest.app_parameters.ok_or_else(|| {
        refuse("the announcement belongs into ApplicationParameters, which are absent".into())
    })?;
    check_parameters_digest(interest).map_err(|e| refuse(e.to_string()))?;
    let data = Data::parse(wire).map_err(|e| refuse(format!("the announcement: {e}")))?;
    let parsed = PrefixAnnouncement::parse(&data);
    let announcement = parsed.map_err(|e| refuse(format!("the announcement: {e}")))?;
    Ok((data, announcement))
}

/// 400 with what is wrong about the parameters.
pub(super) fn bad_parameters(why: &str) -> Refusal {
    Refusal::new(400, format!("failed in validating parameters: {why}"))
}

fn unknown(module: Component<'_>, verb: Component<'_>) -> Refusal {
    let text = |c: Component<'_>| {
        let mut text = c.to_string();
        text.truncate(text.char_indices().nth(40).map_or(text.len(), |(at, _)| at));
        text
    };
    let known = VERBS.iter().any(|row| module.is_generic() && module.value == row.1.as_bytes());
    let module = text(module);
    let sentence = if known {
        let verbs = VERBS.iter().filter(|row| row.1 == module).map(|row| row.2);
        let verbs: Vec<&str> = verbs.collect();
        format!("{module} has no verb {}; it has {}", text(verb), verbs.join(", "))
    } else {
        format!(
            "there is no module {module}; there are cs, faces, fib, rib, strategy-choice and status"
        )
    };
    Refusal::new(501, sentence)
}

fn present(p: &ControlParameters) -> u16 {
    let is = [
        p.name.is_some(),
        p.face_id.is_some(),
        p.uri.is_some(),
        p.local_uri.is_some(),
        p.origin.is_some(),
        p.cost.is_some(),
        p.capacity.is_some(),
        p.count.is_some(),
        p.flags.is_some(),
        p.mask.is_some(),
        p.strategy.is_some(),
        p.expiration_period_ms.is_some(),
        p.face_persistency.is_some(),
        p.base_congestion_marking_interval_ns.is_some(),
        p.default_congestion_threshold.is_some(),
        p.mtu.is_some(),
    ];
    is.iter().enumerate().map(|(bit, is)| u16::from(*is) << bit).sum()
}

/// The first field of a set, by its name.
fn first(set: u16) -> Option<&'static str> {
    WORDS.get(set.trailing_zeros() as usize).copied()
}

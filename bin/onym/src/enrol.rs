//! Certificates by NDNCERT: the client's side over a node.

use crate::exit::{Exit, Failure};
use crate::session;
use onym_client::blocking::Client;
use onym_client::request::Packet;
use onym_client::{Event, Request, Unanswered};
use onym_crypto::edge::unix_now_ms;
use onym_crypto::{Certificate, PrivateKey, SystemEntropy, digest};
use onym_ndncert::client::{self, Enrolment, Progress, Redirects};
use onym_ndncert::message::{ChallengeReply, Parameter, Profile};
use onym_ndncert::{Error, Secret, names, number};
use onym_wire::cert::{CertTime, ValidityPeriod};
use onym_wire::{Interest, Name, NameRef};
use std::time::{Duration, Instant};

/// How often an Interest is sent, 4 s apart.
const TRIES: u32 = 4;
/// Steps of one challenge, at most.
const STEPS_MAX: u32 = 16;

/// Has a record put into a zone.
pub(crate) type AskRecord<'a> = dyn FnMut(&str, &Record) -> anyhow::Result<()> + 'a;

/// A record that the authority wants to see.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// How an applicant shows a right to a name.
pub(crate) enum Proof<'a> {
    /// By a code: `ask` is told what the authority says, and gives it.
    Code { address: Option<&'a str>, ask: &'a mut dyn FnMut(&str) -> anyhow::Result<Secret> },
    /// By a certificate that is still valid.
    Possession { certificate: &'a Certificate, key: &'a PrivateKey },
    /// By a record: `ask` is told what the authority says, and the record, and comes back when it is
    /// there.
    Record { domain: &'a str, record: Record, ask: &'a mut AskRecord<'a> },
}

impl Proof<'_> {
    fn word(&self) -> &'static str {
        match self {
            Self::Code { address: None, .. } => number::PIN,
            Self::Code { .. } => number::EMAIL,
            Self::Possession { .. } => number::POSSESSION,
            Self::Record { .. } => number::DNS,
        }
    }

    /// What the challenge is begun with.
    fn first(&self) -> Vec<Parameter> {
        match self {
            Self::Code { address: None, .. } => Vec::new(),
            Self::Code { address: Some(address), .. } => {
                vec![Parameter::new("email", address.as_bytes())]
            }
            Self::Possession { certificate, .. } => {
                vec![Parameter::new("issued-cert", certificate.wire())]
            }
            Self::Record { domain, .. } => vec![Parameter::new("domain", domain.as_bytes())],
        }
    }

    /// What answers `reply`.
    fn next(&mut self, reply: &ChallengeReply) -> anyhow::Result<Vec<Parameter>> {
        match self {
            Self::Code { ask, .. } => {
                let status = reply.challenge_status.as_deref().unwrap_or_default();
                let code = ask(status)?;
                Ok(vec![Parameter::new("code", code.reveal().trim().as_bytes())])
            }
            Self::Possession { key, .. } => client::proof(reply, key).map_err(failure),
            Self::Record { record, ask, .. } => {
                // Said once: after a try that failed it is the same one.
                for (key, to) in
                    [("record-name", &mut record.name), ("expected-value", &mut record.value)]
                {
                    if let Some(said) = reply.get(key) {
                        *to = String::from_utf8_lossy(said).into_owned();
                    }
                }
                ask(reply.challenge_status.as_deref().unwrap_or_default(), record)?;
                Ok(vec![Parameter::new("confirmation", b"ready")])
            }
        }
    }
}

/// A failure of the protocol as exit code and sentences.
pub(crate) fn failure(error: Error) -> anyhow::Error {
    let (exit, next) = match &error {
        Error::Refused { .. } => (Exit::Refused, "ask the authority's operator"),
        Error::Crypto(onym_crypto::Error::BadSignature) => {
            (Exit::Refused, "somebody else answers: is the authority's certificate the right one?")
        }
        _ => (Exit::Failed, ""),
    };
    let failure = Failure::new(exit, "no certificate was found").why(error);
    if next.is_empty() { failure.into() } else { failure.next(next).into() }
}

/// Sends `interest` until it is answered, the same octets each time.
fn ask(client: &mut Client, interest: &[u8]) -> anyhow::Result<Packet> {
    let name = Interest::parse(interest)?.name.to_name();
    for _ in 0..TRIES {
        let now = client.now();
        let sent = client.endpoint().request_encoded(now, interest.to_vec());
        let id = sent.map_err(|e| session::failure(e.into()))?;
        loop {
            let until = Instant::now() + Duration::from_millis(500);
            match client.step(until).map_err(session::failure)? {
                Some(Event::Answered(of, Ok(packet))) if of == id => return Ok(packet),
                Some(Event::Answered(of, Err(Unanswered::Timeout))) if of == id => break,
                Some(Event::Answered(of, Err(why))) if of == id => {
                    let name = name.prefix_of_step();
                    return Err(session::failure(onym_client::Error::Unanswered { name, why }));
                }
                _ => {}
            }
        }
    }
    let why = Unanswered::Timeout;
    Err(session::failure(onym_client::Error::Unanswered { name: name.prefix_of_step(), why }))
}

trait StepName {
    fn prefix_of_step(&self) -> Name;
}

impl StepName for Name {
    /// Without the digest of the parameters, which tells people nothing.
    fn prefix_of_step(&self) -> Name {
        self.as_ref().drop_last(1).to_name()
    }
}

/// What the authority says about itself.
pub(crate) fn profile(client: &mut Client, authority: &Certificate) -> anyhow::Result<Profile> {
    let mut name = names::step_name(authority.identity(), "INFO");
    name.append_keyword("metadata");
    let request =
        Request { can_be_prefix: true, must_be_fresh: true, retries: TRIES, ..Request::new(name) };
    let metadata = client.request(&request).map_err(session::failure)?;
    let mut name =
        NameRef::parse(metadata.data().content).map_err(|e| failure(e.into()))?.to_name();
    name.append_segment(0);
    let request = Request { retries: TRIES, ..Request::new(name) };
    let packet = client.request(&request).map_err(session::failure)?;
    client::profile(packet.bytes(), authority).map_err(failure)
}

/// From now for `days`, if the authority grants so much, else for what it grants.
pub(crate) fn validity(profile: &Profile, days: Option<u32>) -> ValidityPeriod {
    let longest = i64::try_from(profile.max_validity_s).unwrap_or(i64::MAX);
    let wanted = days.map_or(longest, |days| i64::from(days) * 86_400).min(longest);
    let now_s = i64::try_from(unix_now_ms() / 1000).unwrap_or(i64::MAX);
    ValidityPeriod {
        not_before: CertTime(now_s - 1),
        not_after: CertTime((now_s - 1).saturating_add(wanted)),
    }
}

/// The name that the authority gives to `parameters`, and the authority to ask for it, which may be
/// another one.
pub(crate) fn probe(
    client: &mut Client,
    authority: &Certificate,
    parameters: &[Parameter],
) -> anyhow::Result<(Certificate, Name)> {
    let mut redirects = Redirects::default();
    let mut authority = authority.clone();
    loop {
        let interest = client::probe(&authority, parameters);
        let asked = Interest::parse(&interest)?.name.to_name();
        let packet = ask(client, &interest)?;
        let reply = client::probed(asked.as_ref(), packet.bytes(), &authority).map_err(failure)?;
        if let Some((name, _)) = reply.names.into_iter().next() {
            return Ok((authority, name));
        }
        let Some(to) = reply.redirects.into_iter().next() else {
            return Err(failure(Error::Order("the authority has no name to give")));
        };
        redirects.follow(&to).map_err(failure)?;
        let request = Request { retries: TRIES, ..Request::new(to.clone()) };
        let packet = client.request(&request).map_err(session::failure)?;
        let same = to.as_ref().last().map(|c| c.value.to_vec())
            == Some(digest::implicit_digest(packet.bytes()).to_vec());
        if !same {
            return Err(failure(Error::Redirect("another certificate came")));
        }
        authority = Certificate::parse(packet.bytes()).map_err(|e| failure(e.into()))?;
    }
}

/// What a certificate is wanted for.
pub(crate) struct Wanted<'a> {
    pub(crate) key_name: NameRef<'a>,
    pub(crate) key: PrivateKey,
    pub(crate) validity: ValidityPeriod,
}

/// A certificate of `authority`.
pub(crate) fn enrol(
    client: &mut Client,
    authority: &Certificate,
    wanted: Wanted<'_>,
    mut proof: Proof<'_>,
) -> anyhow::Result<Certificate> {
    let entropy = &mut SystemEntropy;
    let Wanted { key_name, key, validity } = wanted;
    let enrolment = Enrolment::new(authority.clone(), key, key_name, validity, unix_now_ms());
    let mut enrolment = enrolment.map_err(failure)?;
    let new = enrolment.begin(unix_now_ms(), entropy).map_err(failure)?;
    let packet = ask(client, &new)?;
    let offered = enrolment.began(packet.bytes(), entropy).map_err(failure)?;
    let word = proof.word();
    if !offered.iter().any(|challenge| challenge == word) {
        let why = format!("it offers {}", offered.join(", "));
        let what = format!("the authority does not offer the challenge {word}");
        return Err(Failure::new(Exit::Refused, what).why(why).next("choose one of these").into());
    }
    let mut parameters = proof.first();
    for _ in 0..STEPS_MAX {
        let step =
            enrolment.challenge(word, parameters, unix_now_ms(), entropy).map_err(failure)?;
        let packet = ask(client, &step)?;
        parameters = match enrolment.challenged(packet.bytes()).map_err(failure)? {
            Progress::Asked(reply) => proof.next(&reply)?,
            Progress::Issued { name, hints } => return fetch(client, &enrolment, name, hints),
        };
    }
    Err(failure(Error::TooMany))
}

fn fetch(
    client: &mut Client,
    enrolment: &Enrolment,
    name: Name,
    hints: Vec<Name>,
) -> anyhow::Result<Certificate> {
    let request = Request { forwarding_hint: hints, retries: TRIES, ..Request::new(name.clone()) };
    let packet = client.request(&request).map_err(session::failure)?;
    enrolment.accept(name.as_ref(), packet.bytes(), unix_now_ms()).map_err(failure)
}

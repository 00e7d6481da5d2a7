//! The client: one request for one certificate.
//!
//! Each step gives an Interest, which is to be sent again as it is when it is lost, and takes its
//! Data. What an authority says counts when its key signed it.

use crate::message::{
    ChallengeReply, ChallengeRequest, NewReply, NewRequest, Parameter, ProbeReply, Profile, Sealed,
    check_error, write_probe,
};
use crate::{Error, KeyExchange, Session, names, number as n};
use onym_crypto::cert::identity_of_key;
use onym_crypto::signer::{Freshness, write_parameters};
use onym_crypto::{Certificate, Entropy, PrivateKey, Signer, digest, verify};
use onym_wire::cert::ValidityPeriod;
use onym_wire::interest::InterestBuilder;
use onym_wire::{Data, Name, NameRef};

/// Lifetime of the Interests, in milliseconds.
const LIFETIME_MS: u64 = 4000;
/// Redirects that are followed, at most.
pub const REDIRECTS_MAX: usize = 4;

/// Which authorities sent us on.
#[derive(Debug, Default, Clone)]
pub struct Redirects(Vec<Name>);

impl Redirects {
    /// Takes one more: the full name of an authority's certificate.
    ///
    /// # Errors
    /// [`Error::Redirect`] when it has no digest, was visited before, or is the fifth.
    pub fn follow(&mut self, to: &Name) -> Result<(), Error> {
        if !to.as_ref().last().is_some_and(|c| c.is_implicit_digest()) {
            return Err(Error::Redirect("it does not say which certificate, by its digest"));
        }
        if self.0.contains(to) {
            return Err(Error::Redirect("it leads in a circle"));
        }
        if self.0.len() >= REDIRECTS_MAX {
            return Err(Error::Redirect("there were four already"));
        }
        self.0.push(to.clone());
        Ok(())
    }
}

/// Checks that `data` answers the Interest of this name and that `authority` signed it, and that it
/// is no error.
fn answer<'a>(
    data: &'a [u8],
    name: NameRef<'_>,
    authority: &Certificate,
) -> Result<&'a [u8], Error> {
    let data = Data::parse(data)?;
    if data.name != name {
        return Err(Error::WrongAnswer);
    }
    verify::data(&data, authority.public_key())?;
    check_error(data.content)?;
    Ok(data.content)
}

/// The profile that `data` is, which the authority signed.
///
/// # Errors
/// [`Error`]; also when it is about another authority.
pub fn profile(data: &[u8], authority: &Certificate) -> Result<Profile, Error> {
    let parsed = Data::parse(data)?;
    verify::data(&parsed, authority.public_key())?;
    let profile = Profile::read(parsed.content)?;
    let same = profile.certificate.public_key().spki() == authority.public_key().spki();
    if same && authority.identity() == profile.prefix {
        Ok(profile)
    } else {
        Err(Error::WrongAnswer)
    }
}

/// An Interest that asks which names there are, and its name.
#[must_use]
pub fn probe(authority: &Certificate, parameters: &[Parameter]) -> Vec<u8> {
    let name = names::step_name(authority.identity(), "PROBE");
    let builder = InterestBuilder {
        must_be_fresh: true,
        nonce: Some([0; 4]),
        lifetime_ms: Some(LIFETIME_MS),
        ..InterestBuilder::new(name.as_ref())
    };
    let mut wire = Vec::new();
    write_parameters(&builder, &write_probe(parameters), &mut wire);
    wire
}

/// What a probe was answered.
///
/// # Errors
/// [`Error`].
pub fn probed(
    interest: NameRef<'_>,
    data: &[u8],
    authority: &Certificate,
) -> Result<ProbeReply, Error> {
    ProbeReply::read(answer(data, interest, authority)?)
}

/// What a step of a challenge came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The challenge wants more.
    Asked(ChallengeReply),
    /// The certificate is issued: its full name, and where it can be fetched.
    Issued {
        /// Its name.
        name: Name,
        /// Where to send Interests for it.
        hints: Vec<Name>,
    },
}

#[derive(Debug)]
struct Opened {
    id: crate::RequestId,
    session: Session,
}

/// One request for one certificate.
#[derive(Debug)]
pub struct Enrolment {
    authority: Certificate,
    signer: Signer,
    request: Certificate,
    exchange: KeyExchange,
    opened: Option<Opened>,
    /// Name of the Interest that waits for its answer.
    asked: Option<Name>,
}

impl Enrolment {
    /// A request to `authority` for the key `key`, named `key_name`.
    ///
    /// # Errors
    /// [`Error::Crypto`] when that is no name of a key; [`Error::Library`].
    pub fn new(
        authority: Certificate,
        key: PrivateKey,
        key_name: NameRef<'_>,
        validity: ValidityPeriod,
        now_ms: u64,
    ) -> Result<Self, Error> {
        identity_of_key(key_name)?;
        let request = Certificate::self_signed_for(key_name, &key, now_ms, validity)?;
        let signer = Signer::key(key, key_name.to_name());
        let exchange = KeyExchange::generate()?;
        Ok(Self { authority, signer, request, exchange, opened: None, asked: None })
    }

    /// The Interest that begins the request.
    ///
    /// # Errors
    /// [`Error::Crypto`].
    pub fn begin(&mut self, now_ms: u64, entropy: &mut dyn Entropy) -> Result<Vec<u8>, Error> {
        let name = names::step_name(self.authority.identity(), "NEW");
        let parameters = NewRequest {
            point: self.exchange.public().to_vec(),
            certificate: self.request.clone(),
        };
        self.sign(&name, &parameters.write(), now_ms, entropy)
    }

    fn sign(
        &mut self,
        name: &Name,
        parameters: &[u8],
        now_ms: u64,
        entropy: &mut dyn Entropy,
    ) -> Result<Vec<u8>, Error> {
        let mut nonce = [0; 8];
        entropy.fill(&mut nonce);
        // Some authorities want both; ours needs neither.
        let fresh = Freshness { nonce: Some(nonce), time_ms: Some(now_ms), seq: None };
        let builder = InterestBuilder {
            must_be_fresh: true,
            nonce: Some([0; 4]),
            lifetime_ms: Some(LIFETIME_MS),
            ..InterestBuilder::new(name.as_ref())
        };
        let mut wire = Vec::new();
        self.signer.sign_interest(&builder, parameters, fresh, &mut wire)?;
        self.asked = Some(onym_wire::Interest::parse(&wire)?.name.to_name());
        Ok(wire)
    }

    fn answered<'a>(&mut self, data: &'a [u8]) -> Result<&'a [u8], Error> {
        let asked = self.asked.as_ref().ok_or(Error::Order("nothing was asked"))?;
        let content = answer(data, asked.as_ref(), &self.authority);
        // What somebody else sent leaves the question open.
        if matches!(content, Ok(_) | Err(Error::Refused { .. })) {
            self.asked = None;
        }
        content
    }

    /// Takes the answer to [`begin`](Self::begin): the challenges to choose from.
    ///
    /// # Errors
    /// [`Error::Refused`] and others.
    pub fn began(&mut self, data: &[u8], entropy: &mut dyn Entropy) -> Result<Vec<String>, Error> {
        let reply = NewReply::read(self.answered(data)?)?;
        let session = self.exchange.session(&reply.point, &reply.salt, reply.id, entropy)?;
        self.opened = Some(Opened { id: reply.id, session });
        Ok(reply.challenges)
    }

    /// The Interest of a step of the challenge `selected`.
    ///
    /// # Errors
    /// [`Error::Order`] before [`began`](Self::began); [`Error::Crypto`].
    pub fn challenge(
        &mut self,
        selected: &str,
        parameters: Vec<Parameter>,
        now_ms: u64,
        entropy: &mut dyn Entropy,
    ) -> Result<Vec<u8>, Error> {
        let opened = self.opened.as_mut().ok_or(Error::Order("the request was not begun"))?;
        let step = ChallengeRequest { selected: selected.to_owned(), parameters };
        let sealed = opened.session.seal(&step.write())?;
        let name = names::challenge_name(self.authority.identity(), opened.id);
        self.sign(&name, &sealed.write(), now_ms, entropy)
    }

    /// Takes the answer to [`challenge`](Self::challenge).
    ///
    /// # Errors
    /// [`Error::Refused`] and others.
    pub fn challenged(&mut self, data: &[u8]) -> Result<Progress, Error> {
        let sealed = Sealed::read(self.answered(data)?)?;
        let opened = self.opened.as_mut().ok_or(Error::Order("the request was not begun"))?;
        let reply = ChallengeReply::read(&opened.session.open(&sealed)?)?;
        match (reply.status, &reply.issued) {
            (n::STATUS_SUCCESS, Some(name)) => {
                let (name, hints) = (name.clone(), reply.hints);
                Ok(Progress::Issued { name, hints })
            }
            (n::STATUS_BEFORE | n::STATUS_CHALLENGE | n::STATUS_PENDING, _) => {
                Ok(Progress::Asked(reply))
            }
            _ => Err(Error::Order("the request failed at the authority")),
        }
    }

    /// The certificate that was fetched, when it is the one that was issued: for the key and
    /// identity that were asked for, signed by the authority, valid now.
    ///
    /// # Errors
    /// [`Error::WrongCertificate`] and others.
    pub fn accept(
        &self,
        issued: NameRef<'_>,
        wire: &[u8],
        now_ms: u64,
    ) -> Result<Certificate, Error> {
        let certificate = Certificate::parse(wire)?;
        let wrong = |what: &str| Err(Error::WrongCertificate(what.to_owned()));
        let plain = match issued.last() {
            Some(last) if last.is_implicit_digest() => {
                if last.value != digest::implicit_digest(wire) {
                    return wrong("its digest is another one");
                }
                issued.drop_last(1)
            }
            _ => issued,
        };
        if certificate.name() != plain {
            return wrong("its name is another one");
        }
        if certificate.key_name() != self.request.key_name() {
            return wrong("it is for another key name");
        }
        if certificate.public_key().spki() != self.request.public_key().spki() {
            return wrong("it is for another key");
        }
        certificate.verify(self.authority.public_key())?;
        certificate.check_valid_at(now_ms)?;
        Ok(certificate)
    }

    /// The request as it was sent.
    #[must_use]
    pub fn request(&self) -> &Certificate {
        &self.request
    }
}

/// The proof that whoever has `key` answers to a challenge of possession.
///
/// # Errors
/// [`Error::Crypto`]; [`Error::Order`] when the reply has no nonce of 16 octets.
pub fn proof(reply: &ChallengeReply, key: &PrivateKey) -> Result<Vec<Parameter>, Error> {
    let nonce = reply.get("nonce").filter(|nonce| nonce.len() == 16);
    let nonce = nonce.ok_or(Error::Order("the authority sent no nonce of 16 octets"))?;
    let mut signature = Vec::new();
    key.sign(&[nonce], &mut signature)?;
    Ok(vec![Parameter::new("proof", signature)])
}

//! Both recorded runs: every message is read, every signature verified, every key derived again, every
//! ciphertext opened, and what NDNts wrote is written again octet for octet.

#![allow(clippy::unwrap_used)]

mod support;

use onym_crypto::verify::Signed;
use onym_crypto::{Certificate, Entropy, digest, verify};
use onym_ndncert::message::{
    ChallengeReply, ChallengeRequest, NewReply, NewRequest, ProbeReply, Profile, Sealed,
    read_probe, write_probe,
};
use onym_ndncert::names::{self, Step};
use onym_ndncert::{KeyExchange, Session};
use onym_wire::{Data, Interest, Name};
use std::collections::HashMap;

const PIN: &str = include_str!("../../../spec/vectors/trust/ndncert-pin.txt");
const PIN_DECODED: &str = include_str!("../../../spec/vectors/trust/ndncert-pin-decoded.txt");
const POSSESSION: &str = include_str!("../../../spec/vectors/trust/ndncert-possession.txt");
const POSSESSION_DECODED: &str =
    include_str!("../../../spec/vectors/trust/ndncert-possession-decoded.txt");

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// Lines by their first word, split at blanks.
fn lines<'a>(text: &'a str, word: &str) -> Vec<Vec<&'a str>> {
    let split = |line: &'a str| line.split(' ').skip(1).collect();
    text.lines().filter(|line| line.split(' ').next() == Some(word)).map(split).collect()
}

/// The random part that a vector began with.
struct Given([u8; 8]);

impl Entropy for Given {
    fn fill(&mut self, out: &mut [u8]) {
        out.copy_from_slice(&self.0);
    }
}

/// What each encrypted message holds, by its vector.
fn plains(decoded: &str) -> HashMap<Vec<u8>, Vec<u8>> {
    let vectors = lines(decoded, "IV").into_iter().map(|line| unhex(line[0]));
    vectors.zip(lines(decoded, "PLAIN").into_iter().map(|line| unhex(line[0]))).collect()
}

struct Run {
    interests: Vec<Vec<u8>>,
    data: Vec<Vec<u8>>,
    authority: Certificate,
    plains: HashMap<Vec<u8>, Vec<u8>>,
    key: Vec<u8>,
    scalar: Vec<u8>,
}

fn run(text: &str, decoded: &str) -> Run {
    let wires = |word| lines(text, word).into_iter().map(|line| unhex(line[1])).collect();
    Run {
        interests: wires("I"),
        data: wires("D"),
        authority: Certificate::parse(&unhex(lines(text, "CACERT")[0][1])).unwrap(),
        plains: plains(decoded),
        key: unhex(lines(text, "AESKEY")[0][0]),
        scalar: unhex(lines(text, "ECDH-PRIV").last().unwrap()[0]),
    }
}

/// Goes through a run; returns both sides' messages in the clear.
fn replay(run: &Run) -> Vec<Vec<u8>> {
    let authority = run.authority.public_key();
    let (mut client, mut shared, mut opened) = (None, None::<[Session; 2]>, Vec::new());
    for wire in &run.interests {
        let interest = Interest::parse(wire).unwrap();
        let parameters = interest.app_parameters.unwrap_or_default();
        match names::step(run.authority.identity(), interest.name) {
            Step::Probe => {
                let read = read_probe(parameters).unwrap();
                assert_eq!(write_probe(&read), parameters);
                Signed::interest(&interest).unwrap().verify_digest().unwrap();
            }
            Step::New => {
                let read = NewRequest::read(parameters).unwrap();
                assert_eq!(read.write(), parameters);
                let key = read.certificate.public_key();
                read.certificate.verify(key).unwrap();
                Signed::interest(&interest).unwrap().verify_key(key).unwrap();
                client = Some(read);
            }
            Step::Challenge(id) => {
                let key = client.as_ref().unwrap().certificate.public_key();
                Signed::interest(&interest).unwrap().verify_key(key).unwrap();
                let sealed = Sealed::read(parameters).unwrap();
                assert_eq!(sealed.write(), parameters);
                let [session, _] = shared.get_or_insert_with(|| sessions(run, &client, id));
                let plain = session.open(&sealed).unwrap();
                assert_eq!(Some(&plain.to_vec()), run.plains.get(sealed.iv.as_slice()));
                let read = ChallengeRequest::read(&plain).unwrap();
                assert_eq!(read.write().as_slice(), plain.as_slice());
                assert!(session.open(&sealed).is_err(), "the same vector twice");
                opened.push(plain.to_vec());
                opened.push(reply(run, interest.name.to_name(), shared.as_mut().unwrap()));
            }
            Step::Metadata | Step::Info | Step::Other => {}
        }
    }
    for wire in &run.data {
        verify::data(&Data::parse(wire).unwrap(), authority).unwrap();
    }
    opened
}

fn answer_to<'a>(run: &'a Run, name: &Name) -> Data<'a> {
    let parsed = run.data.iter().map(|wire| Data::parse(wire).unwrap());
    parsed.into_iter().find(|data| data.name == *name).unwrap()
}

/// The session as the authority had it, and as the client had it.
fn sessions(run: &Run, client: &Option<NewRequest>, id: onym_ndncert::RequestId) -> [Session; 2] {
    let new = run
        .interests
        .iter()
        .map(|wire| Interest::parse(wire).unwrap())
        .find(|interest| names::step(run.authority.identity(), interest.name) == Step::New);
    let reply = NewReply::read(answer_to(run, &new.unwrap().name.to_name()).content).unwrap();
    assert_eq!(reply.id, id);
    assert_eq!(reply.challenges, ["pin", "possession"]);
    let exchange = KeyExchange::from_scalar(&run.scalar).unwrap();
    assert_eq!(exchange.public().as_slice(), reply.point);
    let peer = &client.as_ref().unwrap().point;
    // The derived key is the recorded one: a session made of either opens what the other seals.
    let mut derived = exchange.session(peer, &reply.salt, id, &mut Given([1; 8])).unwrap();
    let recorded = run.key.as_slice().try_into().unwrap();
    let mut of_record = Session::new(recorded, id, [2; 8]).unwrap();
    of_record.open(&derived.seal(b"the same key").unwrap()).unwrap();
    // The client does not send these eight octets.
    [Session::new(recorded, id, [3; 8]).unwrap(), of_record]
}

fn reply(run: &Run, name: Name, [_, client]: &mut [Session; 2]) -> Vec<u8> {
    let data = answer_to(run, &name);
    let sealed = Sealed::read(data.content).unwrap();
    assert_eq!(sealed.write(), data.content);
    let plain = client.open(&sealed).unwrap();
    assert_eq!(Some(&plain.to_vec()), run.plains.get(sealed.iv.as_slice()));
    let read = ChallengeReply::read(&plain).unwrap();
    if let Some(issued) = &read.issued {
        let certificate = run.data.last().unwrap();
        let last = issued.as_ref().last().unwrap();
        assert_eq!(last.value, digest::implicit_digest(certificate));
        Certificate::parse(certificate).unwrap().verify(run.authority.public_key()).unwrap();
    }
    assert_eq!(read.write(), plain.as_slice());
    plain.to_vec()
}

/// NDNts' messages in the order sent by one side, sealed again from the same random part.
fn written_again(run: &Run, plains: &[&Vec<u8>], wires: &[&[u8]], id: onym_ndncert::RequestId) {
    let first = Sealed::read(wires[0]).unwrap();
    let random = first.iv[..8].try_into().unwrap();
    let key = run.key.as_slice().try_into().unwrap();
    let mut session = Session::new(key, id, random).unwrap();
    for (plain, wire) in plains.iter().zip(wires) {
        assert_eq!(session.seal(plain).unwrap().write(), *wire);
    }
}

fn challenges(run: &Run) -> (onym_ndncert::RequestId, Vec<&[u8]>, Vec<&[u8]>) {
    let (mut id, mut asked, mut answered) = (None, Vec::new(), Vec::new());
    for wire in &run.interests {
        let interest = Interest::parse(wire).unwrap();
        if let Step::Challenge(of) = names::step(run.authority.identity(), interest.name) {
            id = Some(of);
            asked.push(interest.app_parameters.unwrap());
            answered.push(answer_to(run, &interest.name.to_name()).content);
        }
    }
    (id.unwrap(), asked, answered)
}

#[test]
fn the_run_with_a_pin_of_ndnd_and_ndnts_is_read_and_its_replies_written_again() {
    let run = run(PIN, PIN_DECODED);
    let opened = replay(&run);
    assert_eq!(opened.len(), 6, "three steps and their replies");
    assert!(opened[2].ends_with(b"000000") && opened[4].ends_with(b"424957"));
    let (id, _, answered) = challenges(&run);
    let replies: Vec<_> = opened.iter().skip(1).step_by(2).collect();
    written_again(&run, &replies, &answered, id);
    let wrong = ChallengeReply::read(&opened[3]).unwrap();
    assert_eq!(wrong.challenge_status.as_deref(), Some("wrong-code"));
    assert_eq!((wrong.tries, wrong.time_s), (Some(2), Some(3599)));
}

#[test]
fn the_run_with_possession_of_ndnts_is_read_and_written_again_on_both_sides() {
    let run = run(POSSESSION, POSSESSION_DECODED);
    let opened = replay(&run);
    let (id, asked, answered) = challenges(&run);
    let side = |skip| opened.iter().skip(skip).step_by(2).collect::<Vec<_>>();
    written_again(&run, &side(0), &asked, id);
    written_again(&run, &side(1), &answered, id);
    // The proof is a signature of the certificate's key over the nonce.
    let shown = ChallengeRequest::read(&opened[0]).unwrap();
    let certificate = Certificate::parse(shown.get("issued-cert").unwrap()).unwrap();
    let asked = ChallengeReply::read(&opened[1]).unwrap();
    let proof = ChallengeRequest::read(&opened[2]).unwrap();
    let nonce = asked.get("nonce").unwrap();
    certificate.public_key().verify(3, &[nonce], proof.get("proof").unwrap()).unwrap();
}

#[test]
fn the_profile_and_the_probe_of_ndnts_are_read_and_written_again() {
    let run = run(PIN, PIN_DECODED);
    let profile =
        run.data.iter().find_map(|wire| Profile::read(Data::parse(wire).unwrap().content).ok());
    let profile = profile.unwrap();
    assert_eq!(profile.info, "test CA");
    assert_eq!(profile.probe_keys, ["email"]);
    assert_eq!(profile.max_validity_s, 86_400);
    assert_eq!(profile.certificate, run.authority);
    let written = profile.write();
    assert!(run.data.iter().any(|wire| Data::parse(wire).unwrap().content == written));
    let probe = run
        .data
        .iter()
        .map(|wire| Data::parse(wire).unwrap())
        .find(|data| names::step(run.authority.identity(), data.name) == Step::Probe);
    let content = probe.unwrap().content;
    let reply = ProbeReply::read(content).unwrap();
    assert_eq!(reply.names, [("/ca/alice".parse().unwrap(), Some(2))]);
    assert!(reply.redirects.is_empty());
    assert_eq!(reply.write(), content);
}

#[test]
fn the_key_of_the_digest_is_derived_from_its_numbers() {
    let exchange = KeyExchange::from_scalar(&unhex(
        "f332af87aef242c19576fde907fe482d37b6d21bb609d0287a966917fca592e3",
    ));
    let point = unhex(
        "047af7a524db320f7857758fb5ed4316af6ac274d9b2c08959221296079213be157ccdce0488d65eca08ac0a634c205ecbf2f34e0621bfc03a10df38b30d48cc1a",
    );
    let salt = unhex("3343d9796a9b68a317ac705a033fcabce02eaaaa12aa9cd090ccbf887708a057");
    let id = onym_ndncert::RequestId::read(&unhex("d2864a38a5a5857b")).unwrap();
    let random = unhex("56bc8cb209dcc6a8").try_into().unwrap();
    let salt = salt.try_into().unwrap();
    let mut session = exchange.unwrap().session(&point, &salt, id, &mut Given(random)).unwrap();
    let sealed = session.seal(&unhex("9b0101a3096e6565642d636f6465a50103a7020e10")).unwrap();
    assert_eq!(sealed.tag.to_vec(), unhex("ced85b5968be98677e9bb8a2d7d5cc0b"));
    assert_eq!(sealed.payload, unhex("24801044745e9025284a5b32b43b08e63f34d35f82"));
}

#[test]
fn a_message_of_another_request_or_without_its_identifier_is_not_opened() {
    use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
    use onym_ndncert::{Error, RequestId};
    // Negative 37: associated data that is missing, or of another request.
    let key = [7; 16];
    let session = |id: u8, random: u8| Session::new(&key, RequestId([id; 8]), [random; 8]).unwrap();
    let sealed = session(1, 1).seal(b"status").unwrap();
    assert_eq!(session(1, 2).open(&sealed).unwrap().as_slice(), b"status");
    assert!(matches!(session(2, 2).open(&sealed), Err(Error::NotAuthentic)));
    let mut payload = b"status".to_vec();
    let bare = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).unwrap());
    let nonce = Nonce::assume_unique_for_key(sealed.iv);
    let tag = bare.seal_in_place_separate_tag(nonce, Aad::empty(), &mut payload).unwrap();
    let tag = tag.as_ref().try_into().unwrap();
    let without = Sealed { iv: sealed.iv, tag, payload };
    assert!(matches!(session(1, 2).open(&without), Err(Error::NotAuthentic)));
}

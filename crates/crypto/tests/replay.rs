//! Negative tests 29 to 35 of the trust digest: commands that come again, too late or damaged.

#![allow(clippy::unwrap_used)]

use onym_crypto::replay::{ReplayGuard, ReplayPolicy, Replayed};
use onym_crypto::signer::Freshness;
use onym_crypto::verify::Signed;
use onym_crypto::{Error, KeyType, PrivateKey, PublicKey, Signer, sha256};
use onym_wire::interest::{Interest, InterestBuilder};
use onym_wire::{Name, SignatureInfo};

const NOW: u64 = 1_700_000_000_000;

struct Commander {
    signer: Signer,
    key: PublicKey,
    guard: ReplayGuard,
}

/// What becomes of a command.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Taken,
    Replayed(Replayed),
    Refused,
}

impl Commander {
    fn new() -> Self {
        let key = PrivateKey::generate(KeyType::Ecdsa).unwrap();
        let public = key.public_key().unwrap();
        let signer = Signer::key(key, "/op/KEY/1".parse().unwrap());
        Self { signer, key: public, guard: ReplayGuard::new(ReplayPolicy::default()) }
    }

    fn command(&self, fresh: Freshness) -> Vec<u8> {
        let name: Name = "/localhost/nfd/rib/register/x".parse().unwrap();
        let mut wire = Vec::new();
        let builder = InterestBuilder::new(name.as_ref());
        self.signer.sign_interest(&builder, &[], fresh, &mut wire).unwrap();
        wire
    }

    fn at(&self, time_ms: u64, nonce: u64) -> Vec<u8> {
        let (nonce, time_ms) = (Some(nonce.to_be_bytes()), Some(time_ms));
        self.command(Freshness { nonce, time_ms, seq: None })
    }

    /// Signature first, then replay; what was taken is remembered, and nothing else is.
    fn take(&mut self, wire: &[u8]) -> Verdict {
        let interest = Interest::parse(wire).unwrap();
        let Ok(signed) = Signed::interest(&interest) else { return Verdict::Refused };
        if signed.verify_key(&self.key).is_err() {
            return Verdict::Refused;
        }
        let signer = self.key.key_digest();
        match self.guard.check(&signer, signed.replay, NOW) {
            Err(replayed) => Verdict::Replayed(replayed),
            Ok(()) => {
                self.guard.record(&signer, signed.replay, NOW);
                Verdict::Taken
            }
        }
    }
}

#[test]
fn the_same_command_counts_once() {
    let mut commander = Commander::new();
    let command = commander.at(NOW, 1);
    assert_eq!(commander.take(&command), Verdict::Taken);
    assert_eq!(commander.take(&command), Verdict::Replayed(Replayed::OldTime));
}

#[test]
fn a_command_121_seconds_off_is_refused_on_both_sides_and_120_are_not() {
    for off_ms in [121_000, 120_001] {
        for time_ms in [NOW - off_ms, NOW + off_ms] {
            let mut commander = Commander::new();
            let command = commander.at(time_ms, 1);
            let outside = Replayed::OutsideGrace { off_ms, grace_ms: 120_000 };
            assert_eq!(commander.take(&command), Verdict::Replayed(outside));
        }
    }
    for time_ms in [NOW - 120_000, NOW + 120_000] {
        let mut commander = Commander::new();
        assert_eq!(commander.take(&commander.at(time_ms, 1)), Verdict::Taken);
    }
}

#[test]
fn an_equal_time_with_another_nonce_is_refused() {
    let mut commander = Commander::new();
    let [first, second] = [1, 2].map(|nonce| commander.at(NOW, nonce));
    assert_eq!(commander.take(&first), Verdict::Taken);
    assert_eq!(commander.take(&second), Verdict::Replayed(Replayed::OldTime));
}

#[test]
fn nonces_of_any_length_are_told_apart_and_none_needs_a_time() {
    let name: Name = "/localhost/nfd/rib/register/x".parse().unwrap();
    let with = |commander: &Commander, nonce: Option<&[u8]>, time: Option<u64>| {
        let info = SignatureInfo { nonce, time, ..commander.signer.info() };
        let builder = InterestBuilder::new(name.as_ref());
        let mut wire = Vec::new();
        let sign = |parts: &[&[u8]]| commander.signer.sign(parts);
        builder.write_signed(&mut wire, &[], &info, sign, |range| sha256(&[range])).unwrap();
        wire
    };
    for nonce in [&[][..], &[1, 2, 3], &[7; 64]] {
        let mut commander = Commander::new();
        let wire = with(&commander, Some(nonce), None);
        let first = match Interest::parse(&wire) {
            // A reader may refuse such a nonce; it must not take it twice.
            Err(_) => continue,
            Ok(_) => commander.take(&wire),
        };
        assert_eq!(first, Verdict::Taken, "{} octets", nonce.len());
        assert_eq!(commander.take(&wire), Verdict::Replayed(Replayed::OldNonce));
    }
    let mut commander = Commander::new();
    let neither = with(&commander, None, None);
    assert_eq!(commander.take(&neither), Verdict::Replayed(Replayed::Unprotected));
    let time_only = with(&commander, None, Some(NOW));
    assert_eq!(commander.take(&time_only), Verdict::Taken);
    assert_eq!(commander.take(&time_only), Verdict::Replayed(Replayed::OldTime));
}

#[test]
fn what_is_not_signed_right_changes_nothing() {
    let mut commander = Commander::new();
    let stranger = Commander::new();
    // The newest time there is, by somebody else: it must not lock the operator out.
    assert_eq!(commander.take(&stranger.at(NOW + 100_000, 1)), Verdict::Refused);
    let mut damaged = commander.at(NOW + 100_000, 1);
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(commander.take(&damaged), Verdict::Refused);
    assert!(commander.guard.is_empty());
    assert_eq!(commander.take(&commander.at(NOW, 2)), Verdict::Taken);
}

#[test]
fn both_forms_of_one_command_count_as_one() {
    let mut commander = Commander::new();
    let new = commander.at(NOW, 1);
    let name: Name = "/localhost/nfd/rib/register/x".parse().unwrap();
    let old_name = commander.signer.sign_name(name.as_ref(), NOW, 1_u64.to_be_bytes()).unwrap();
    let mut old = Vec::new();
    InterestBuilder::new(old_name.as_ref()).write(&mut old);
    assert_eq!(commander.take(&old), Verdict::Taken, "format v0.2");
    assert_eq!(commander.take(&new), Verdict::Replayed(Replayed::OldTime), "format v0.3");
}

#[test]
fn a_wrong_digest_of_the_parameters_is_refused() {
    let commander = Commander::new();
    let command = commander.at(NOW, 1);
    let interest = Interest::parse(&command).unwrap();
    let digest = *interest.parameters_digest().unwrap();
    let at = command.windows(32).position(|w| w == digest).unwrap();
    let mut wrong = command.clone();
    wrong[at] ^= 1;
    let wrong = Interest::parse(&wrong).unwrap();
    assert!(matches!(Signed::interest(&wrong), Err(Error::ParametersDigest)));
}

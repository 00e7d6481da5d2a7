//! Certificate issuance: messages of strangers, and an authority that is asked anything.

use onym_crypto::{Certificate, Entropy, KeyType, PrivateKey, Signer};
use onym_ndncert::message::{
    ChallengeReply, ChallengeRequest, NewReply, NewRequest, ProbeReply, Profile, Sealed,
    check_error, read_probe, write_probe,
};
use onym_ndncert::{Authority, Now, Reply, Settings, dns};
use onym_wire::{Data, Interest, Name};
use std::sync::{LazyLock, Mutex};

struct Counting(u8);

impl Entropy for Counting {
    fn fill(&mut self, out: &mut [u8]) {
        for octet in out {
            self.0 = self.0.wrapping_add(1);
            *octet = self.0;
        }
    }
}

/// Of the recorded runs, so that their Interests reach it.
static AUTHORITY: LazyLock<Mutex<Authority>> = LazyLock::new(|| {
    let key = PrivateKey::generate(KeyType::Ed25519).expect("the machine has randomness");
    let name: Name = "/ca/KEY/1".parse().expect("a name");
    let certificate = Certificate::self_signed(name.as_ref(), &key, 0).expect("a certificate");
    let signer = Signer::key(key, certificate.name().to_name());
    let settings = Settings { probe_keys: vec!["email".into()], ..Settings::default() };
    let authority = Authority::new(certificate, signer, settings, Now::default());
    Mutex::new(authority.expect("its profile can be signed"))
});

/// Reads `input` as each message, and gives it to an authority.
///
/// # Panics
/// When a message that was read is written differently, or an answer is none.
pub fn ndncert(input: &[u8]) {
    messages(input);
    if let Ok(interest) = Interest::parse(input) {
        messages(interest.app_parameters.unwrap_or_default());
        let mut authority = AUTHORITY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // The time of the recorded runs.
        let now = Now { unix_ms: 1_795_444_860_000, tick_ms: 0 };
        if let Reply::Data(wire) = authority.receive(now, input, &mut Counting(0)) {
            let data = Data::parse(&wire).expect("law: a reply is a Data");
            assert!(
                interest.can_be_prefix || data.name.len() >= interest.name.len().saturating_sub(1)
            );
            let again = authority.receive(now, input, &mut Counting(9));
            assert_eq!(again, Reply::Data(wire), "law: the same Interest, the same reply");
        }
    }
    if let Ok(data) = Data::parse(input) {
        messages(data.content);
    }
}

fn messages(octets: &[u8]) {
    macro_rules! again {
        ($($message:ty),*) => {$(
            if let Ok(read) = <$message>::read(octets) {
                let written = read.write();
                let reread = <$message>::read(&written).expect("law: what is written can be read");
                assert_eq!(reread, read);
            }
        )*};
    }
    again!(Profile, ProbeReply, NewRequest, NewReply, Sealed, ChallengeRequest, ChallengeReply);
    if let Ok(read) = read_probe(octets) {
        assert_eq!(
            read_probe(&write_probe(&read)).expect("law: what is written can be read"),
            read
        );
    }
    let _ = check_error(octets);
    let question = dns::question(0, "a.b").expect("a name");
    let _ = dns::texts(&question, octets);
}

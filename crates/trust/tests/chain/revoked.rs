//! What is believed no longer: lists, and records of issuers and owners.

use super::world::{Chain, NOW_MS, Party, chain, name, signed};
use onym_crypto::Certificate;
use onym_trust::chain::{Records, Refusal, Revoked, Revoker, record, record_name};
use onym_wire::Name;
use onym_wire::data::DataBuilder;
use onym_wire::signature::{KeyLocator, SignatureInfo};

/// Data of this name, type and content, signed by `by`.
fn data(name: &Name, content_type: u64, content: &[u8], by: &Party) -> Vec<u8> {
    let info = SignatureInfo {
        key_locator: Some(KeyLocator::Name(by.certificate.as_ref())),
        ..SignatureInfo::of_kind(by.key.key_type().signature_type())
    };
    let mut wire = Vec::new();
    DataBuilder { content_type, ..DataBuilder::new(name.as_ref(), content) }
        .write(&mut wire, &info, |signed| {
            let mut signature = Vec::new();
            by.key.sign(&[signed], &mut signature).map(|()| signature)
        })
        .unwrap();
    wire
}

fn host(chain: &Chain) -> Certificate {
    Certificate::parse(&chain.world.answers[&chain.host.certificate]).unwrap()
}

/// Answers for the record of `revoker` about the host.
fn publish(chain: &mut Chain, revoker: Revoker, wire: Vec<u8>) {
    let name = record_name(host(chain).name(), revoker).unwrap();
    chain.world.answers.insert(name, wire);
}

fn revokes(chain: &Chain, revoker: Revoker, by: &Party) -> Vec<u8> {
    let (name, content) = record(&host(chain), revoker, 1, NOW_MS).unwrap();
    data(&name, 2, &content, by)
}

fn says_no(of: &Name, by: &Party, at_ms: u64) -> Vec<u8> {
    let mut name = record_name(of.as_ref(), Revoker::Issuer).unwrap();
    name.append_generic("nack").append_timestamp(at_ms * 1000);
    data(&name, 3, b"", by)
}

fn asking(needed: bool) -> Chain {
    let mut chain = chain();
    let records = Records { prefixes: vec![name("/a/s/h")], needed, ..Records::default() };
    chain.world.validator.set_records(records);
    chain
}

fn judge(chain: &mut Chain) -> Result<(), Refusal> {
    let packet = signed("/a/s/h/p/1", &chain.app);
    chain.world.judge(&packet).map(|_| ())
}

#[test]
fn the_name_of_a_record_is_that_of_ndnrevoke() {
    let certificate = name("/a/s/h/KEY/h/s/v=1");
    let of = |revoker| record_name(certificate.as_ref(), revoker).unwrap();
    assert_eq!(of(Revoker::Issuer), name("/a/s/h/REVOKE/h/s/v=1/s"));
    assert_eq!(of(Revoker::Owner), name("/a/s/h/REVOKE/h/s/v=1/self"));
}

#[test]
fn a_record_of_the_issuer_or_the_owner_revokes() {
    for (revoker, by) in [(Revoker::Issuer, "issuer"), (Revoker::Owner, "owner")] {
        let mut chain = asking(false);
        let party = if by == "issuer" { chain.site.clone() } else { chain.host.clone() };
        let wire = revokes(&chain, revoker, &party);
        publish(&mut chain, revoker, wire);
        let said = judge(&mut chain).unwrap_err().to_string();
        let wanted = format!(
            "/a/s/h/KEY/h/s/v=1 is revoked by a record of its {by}: the key is in wrong hands"
        );
        assert_eq!(said, wanted);
    }
}

#[test]
fn a_record_of_somebody_else_or_about_another_key_says_nothing() {
    let mut chain = asking(false);
    let stranger = chain.app.clone();
    let wire = revokes(&chain, Revoker::Issuer, &stranger);
    publish(&mut chain, Revoker::Issuer, wire);
    let (name, _) = record(&host(&chain), Revoker::Owner, 1, NOW_MS).unwrap();
    let other = chain.app.certificate.clone();
    let other = Certificate::parse(&chain.world.answers[&other]).unwrap();
    let (_, content) = record(&other, Revoker::Owner, 1, NOW_MS).unwrap();
    let wire = data(&name, 2, &content, &chain.host.clone());
    publish(&mut chain, Revoker::Owner, wire);
    assert!(judge(&mut chain).is_ok());
}

#[test]
fn where_an_answer_is_needed_silence_refuses_and_the_issuers_statement_of_now_lets_in() {
    let mut chain = asking(true);
    let refusal = judge(&mut chain).unwrap_err();
    assert!(matches!(refusal, Refusal::NoRecord { .. }), "{refusal}");
    // By the key in question, from too long ago, from the issuer.
    let answers = [
        (chain.host.clone(), NOW_MS, false),
        (chain.site.clone(), NOW_MS - 3_600_001, false),
        (chain.site.clone(), NOW_MS + 600_000, false),
        (chain.site.clone(), NOW_MS, true),
    ];
    for (by, at_ms, is_enough) in answers {
        chain.world.now_ms += 11_000;
        let wire = says_no(&chain.host.certificate, &by, at_ms);
        publish(&mut chain, Revoker::Issuer, wire);
        // The certificate below it is asked about, too.
        let below = says_no(&chain.app.certificate, &chain.host, chain.world.now_ms);
        let of = record_name(chain.app.certificate.as_ref(), Revoker::Issuer).unwrap();
        chain.world.answers.insert(of, below);
        let judged = judge(&mut chain);
        assert_eq!(judged.is_ok(), is_enough, "{judged:?}");
    }
}

#[test]
fn an_answer_counts_for_its_time_and_is_asked_for_again() {
    let mut chain = asking(false);
    for _ in 0..3 {
        assert!(judge(&mut chain).is_ok());
    }
    // Host and app are under the prefix: two certificates, each with two records, and the site's.
    assert_eq!(chain.world.fetched.len(), 3 + 4, "{:?}", chain.world.fetched);
    chain.world.now_ms += 3_600_001;
    let site = chain.site.clone();
    let wire = revokes(&chain, Revoker::Issuer, &site);
    publish(&mut chain, Revoker::Issuer, wire);
    let refusal = judge(&mut chain).unwrap_err();
    assert!(matches!(refusal, Refusal::RevokedByRecord { .. }), "{refusal}");
    assert_eq!(chain.world.validator.waiting(), 0);
}

/// What one neighbour does not answer, or answers wrongly, is no reason to refuse another.
#[test]
fn a_neighbour_that_answers_nothing_or_junk_keeps_no_other_from_being_believed() {
    let mut chain = chain();
    let packet = signed("/a/s/n", &chain.site);
    let from = |via| onym_trust::chain::Context { via: Some(via), ..chain.world.context() };
    let (thief, owner) = (from(1), from(2));
    for junk in [None, Some(signed("/a/s/n", &chain.site))] {
        let mut validator = chain.world.validator.clone();
        assert_eq!(validator.data(&packet, 1, &thief), None);
        assert_eq!(validator.data(&packet, 2, &owner), None, "it waits for its own answer");
        let mut fetches = Vec::new();
        while let Some(onym_trust::chain::Event::Fetch(fetch)) = validator.poll() {
            fetches.push(fetch);
        }
        assert_eq!(fetches.iter().map(|f| f.via).collect::<Vec<_>>(), [Some(1), Some(2)]);
        match &junk {
            None => validator.failed(fetches[0].id, onym_trust::chain::Failure::TimedOut, NOW_MS),
            Some(wire) => validator.certificate(fetches[0].id, wire, &thief),
        }
        let right = chain.world.answers[&chain.site.certificate].clone();
        validator.certificate(fetches[1].id, &right, &owner);
        let mut judged = Vec::new();
        while let Some(event) = validator.poll() {
            if let onym_trust::chain::Event::Judged { ticket, result } = event {
                judged.push((ticket, result.is_ok()));
            }
        }
        assert_eq!(judged, [(1, false), (2, true)]);
    }
    assert_eq!(chain.world.settle().len(), 0);
}

#[test]
fn a_list_names_certificates_keys_and_digests_or_is_refused_with_its_line() {
    let mut chain = chain();
    let host = host(&chain);
    let hex: String =
        host.public_key().key_digest().iter().map(|octet| format!("{octet:02x}")).collect();
    for entry in ["/a/s/h/KEY/h/s/v=1", "/a/s/h/KEY/h", &format!("sha256:{hex}")] {
        let list = Revoked::parse(&format!("# stolen\n\n  {entry}  # since monday\n")).unwrap();
        assert_eq!(list.len(), 1);
        assert!(chain.world.validator.set_revoked(list.clone()));
        assert!(!chain.world.validator.set_revoked(list), "nothing changed");
        let refusal = judge(&mut chain).unwrap_err();
        assert_eq!(refusal, Refusal::Revoked(name("/a/s/h/KEY/h/s/v=1")), "{entry}");
        // An entry that is taken off counts no longer.
        assert!(chain.world.validator.set_revoked(Revoked::default()));
        assert!(judge(&mut chain).is_ok());
    }
    for bad in ["/a/s/h", "sha256:12", "sha256:+1", "KEY", &format!("sha256:{}", "+1".repeat(32))] {
        let said = Revoked::parse(&format!("/a/KEY/1\n{bad}")).unwrap_err().to_string();
        assert!(said.starts_with("line 2: "), "{said}");
    }
}

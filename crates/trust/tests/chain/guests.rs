//! Guests: invitations that come with Data, and lists of certificates of one key.

use super::world::{
    Chain, Form, Limits, NOW_MS, Party, chain_with, issued, name, self_signed, signed_at,
};
use onym_trust::chain::{Records, Refusal, Revoked};
use onym_wire::Name;
use onym_wire::cert::{CertTime, ValidityPeriod};
use onym_wire::data::DataBuilder;
use onym_wire::signature::{KeyLocator, SignatureInfo};
use onym_wire::tlv::{Element, put_nested, put_tlv};

fn name_tlv(name: &Name) -> Vec<u8> {
    let mut out = Vec::new();
    name.as_ref().write_tlv(&mut out);
    out
}

/// Data of this name and content, valid for these days, signed by `by`.
fn data(uri: &str, content: &[u8], days: (i64, i64), by: &Party) -> Vec<u8> {
    let name = name(uri);
    let second = |days: i64| CertTime(i64::try_from(NOW_MS / 1000).unwrap() + days * 86_400);
    let info = SignatureInfo {
        key_locator: Some(KeyLocator::Name(by.certificate.as_ref())),
        validity_period: Some(ValidityPeriod {
            not_before: second(days.0),
            not_after: second(days.1),
        }),
        ..SignatureInfo::of_kind(by.key.key_type().signature_type())
    };
    let mut wire = Vec::new();
    DataBuilder { freshness_ms: 4000, ..DataBuilder::new(name.as_ref(), content) }
        .write(&mut wire, &info, |signed| {
            let mut signature = Vec::new();
            by.key.sign(&[signed], &mut signature).map(|()| signature)
        })
        .unwrap();
    wire
}

/// An invitation by `by`: keys under `/g` may sign names under `/a/s/h/p`.
fn invitation(by: &Party, days: (i64, i64)) -> Vec<u8> {
    let mut rule = Vec::new();
    put_nested(&mut rule, 620, |out| {
        out.extend(name_tlv(&name("/a/s/h/p")));
        put_tlv(out, 28, &name_tlv(&name("/g")));
    });
    data("/a/s/h/p/32=INVITE/g/v=1/seg=0", &rule, days, by)
}

/// The Data with the invitation behind its signature.
fn with(packet: &[u8], invitation: &[u8]) -> Vec<u8> {
    let (outer, _) = Element::split(packet).unwrap();
    let mut value = outer.value.to_vec();
    put_tlv(&mut value, 600, invitation);
    let mut wire = Vec::new();
    put_tlv(&mut wire, 6, &value);
    wire
}

/// The chain, and a guest with a certificate of another site of the same root.
fn with_guest(limits: Limits) -> (Chain, Party) {
    let mut chain = chain_with(limits, std::array::from_fn(|_| Form::default()));
    // The rules know him as a site; they let him sign nothing under /a/s/h/p.
    let (guest, wire) = issued("/a/g/KEY/1/r/v=1", &chain.root, &Form::default());
    chain.world.publish(wire);
    (chain, guest)
}

fn invitation_of_site(by: &Party, days: (i64, i64)) -> Vec<u8> {
    let mut rule = Vec::new();
    put_nested(&mut rule, 620, |out| {
        out.extend(name_tlv(&name("/a/s/h/p")));
        put_tlv(out, 28, &name_tlv(&name("/a/g")));
    });
    data("/a/s/h/p/32=INVITE/g/v=1/seg=0", &rule, days, by)
}

#[test]
fn a_guest_signs_what_the_owner_lets_him_and_only_by_the_owners_word() {
    let (mut chain, guest) = with_guest(Limits::default());
    let at = guest.certificate.clone();
    let packet = |uri: &str| signed_at(uri, &guest, &at, None);
    let plain = chain.world.judge(&packet("/a/s/h/p/1")).unwrap_err();
    assert!(matches!(plain, Refusal::Denied(_)), "{plain}");
    let owner = chain.app.clone();
    let good = invitation_of_site(&owner, (-1, 1));
    let trusted = chain.world.judge(&with(&packet("/a/s/h/p/1"), &good)).unwrap();
    assert_eq!((trusted.rule.as_str(), &trusted.key), ("invitation", &guest.certificate));
    // ndnd leaves the version out of a key locator.
    let short = guest.certificate.as_ref().drop_last(1).to_name();
    let packet_of_ndnd = signed_at("/a/s/h/p/2", &guest, &short, None);
    assert!(chain.world.judge(&with(&packet_of_ndnd, &good)).is_ok());
    // Negative 38: over, by the guest himself, by another site, about another name or guest.
    for (invitation, why) in [
        (invitation_of_site(&owner, (-3, -1)), "is valid from"),
        (invitation_of_site(&guest, (-1, 1)), "/a/g/KEY"),
        (invitation_of_site(&chain.site.clone(), (-1, 1)), "/a/s/KEY"),
        (invitation(&owner, (-1, 1)), "/a/g/KEY"),
    ] {
        let refusal = chain.world.judge(&with(&packet("/a/s/h/p/1"), &invitation)).unwrap_err();
        assert!(refusal.to_string().contains(why), "{why}: {refusal}");
    }
    let refusal = chain.world.judge(&with(&packet("/a/s/n"), &good)).unwrap_err();
    assert!(matches!(refusal, Refusal::Denied(_)), "another name: {refusal}");
    let mut forged = with(&packet("/a/s/h/p/1"), &good);
    let at = forged.len() - 3;
    forged[at] ^= 1;
    assert!(chain.world.judge(&forged).is_err());
    // Where invitations are off, nobody is let in.
    let off = Limits { invitations: false, ..Limits::default() };
    let (mut chain, guest) = with_guest(off);
    let packet = signed_at("/a/s/h/p/1", &guest, &guest.certificate, None);
    let good = invitation_of_site(&chain.app.clone(), (-1, 1));
    assert!(matches!(chain.world.judge(&with(&packet, &good)), Err(Refusal::Denied(_))));
}

#[test]
fn what_waits_for_the_owner_of_an_invitation_is_judged_once() {
    let (mut chain, guest) = with_guest(Limits::default());
    let invitation = invitation_of_site(&chain.app.clone(), (-1, 1));
    let packet = with(&signed_at("/a/s/h/p/1", &guest, &guest.certificate, None), &invitation);
    let context = chain.world.context();
    for ticket in 0..10 {
        assert_eq!(chain.world.validator.data(&packet, ticket, &context), None);
    }
    let judged = chain.world.settle();
    assert_eq!(judged.len(), 10);
    assert!(judged.iter().all(|(_, result)| result.is_ok()));
    assert_eq!(chain.world.validator.waiting(), 0);
}

/// A self-signed certificate of the site's key, and the list by which its owner points at others.
fn listed(limits: Limits) -> (Chain, Party, Vec<u8>) {
    let mut chain = chain_with(limits, std::array::from_fn(|_| Form::default()));
    let own = Party { certificate: name("/a/s/KEY/s/self/v=9"), ..chain.site.clone() };
    let wire = super::world::certificate("/a/s/KEY/s/self/v=9", &own.key, &own, &Form::default());
    chain.world.publish(wire);
    let list = data("/a/s/KEY/s/32=auth/v=1", &name_tlv(&chain.site.certificate), (-1, 1), &own);
    (chain, own, list)
}

#[test]
fn a_list_of_certificates_leads_from_a_self_signed_one_to_one_of_the_same_key() {
    let on = Limits { certificate_lists: true, ..Limits::default() };
    let (mut chain, own, list) = listed(on);
    let packet = signed_at("/a/s/n", &own, &own.certificate, None);
    let refusal = chain.world.judge(&packet).unwrap_err();
    assert_eq!(refusal, Refusal::NotAnAnchor(own.certificate.clone()), "no list");
    chain.world.now_ms += 11_000;
    let answer = name("/a/s/KEY/s/32=auth");
    chain.world.answers.insert(answer.clone(), list.clone());
    let trusted = chain.world.judge(&packet).unwrap();
    assert_eq!((&trusted.key, trusted.depth), (&own.certificate, 2));
    // Off by default.
    let (mut chain, own, list) = listed(Limits::default());
    chain.world.answers.insert(answer, list);
    let packet = signed_at("/a/s/n", &own, &own.certificate, None);
    assert_eq!(chain.world.judge(&packet), Err(Refusal::NotAnAnchor(own.certificate)));
}

/// Negative 39: another key under the same name, a list by somebody else, nothing usable in it.
#[test]
fn a_list_of_another_key_or_without_a_certificate_that_counts_leads_nowhere() {
    let on = Limits { certificate_lists: true, ..Limits::default() };
    let (mut chain, own, _) = listed(on);
    // A thief's key under the site's key name: the listed certificate is the owner's.
    let (thief, wire) = self_signed("/a/s/KEY/s/self/v=8", &Form::default());
    chain.world.publish(wire);
    let listing = name_tlv(&chain.site.certificate);
    let by_thief = data("/a/s/KEY/s/32=auth/v=2", &listing, (-1, 1), &thief);
    let at = name("/a/s/KEY/s/32=auth");
    chain.world.answers.insert(at.clone(), by_thief);
    let packet = signed_at("/a/s/n", &thief, &thief.certificate, None);
    assert_eq!(chain.world.judge(&packet), Err(Refusal::NotAnAnchor(thief.certificate.clone())));
    // The thief's list does not count for the owner's certificate either.
    let packet = signed_at("/a/s/n", &own, &own.certificate, None);
    assert_eq!(chain.world.judge(&packet), Err(Refusal::NotAnAnchor(own.certificate.clone())));
    // One that names only itself, and what nobody has.
    chain.world.now_ms += 60_000;
    let nowhere = name_tlv(&name("/a/s/KEY/s/x/v=3"));
    let listing = [name_tlv(&own.certificate), nowhere].concat();
    chain.world.answers.insert(at, data("/a/s/KEY/s/32=auth/v=3", &listing, (-1, 1), &own));
    assert_eq!(chain.world.judge(&packet), Err(Refusal::NotAnAnchor(own.certificate)));
    assert_eq!(chain.world.validator.waiting(), 0);
}

/// Negative 39: once a list led to an anchor, no older one of that key counts.
#[test]
fn a_list_that_is_older_than_one_that_counted_leads_nowhere() {
    let on = Limits { certificate_lists: true, ..Limits::default() };
    let (mut chain, own, first) = listed(on);
    let at = name("/a/s/KEY/s/32=auth");
    let list = |uri: &str, names: &[&Name]| {
        let content: Vec<u8> = names.iter().flat_map(|name| name_tlv(name)).collect();
        data(uri, &content, (-1, 1), &own)
    };
    let packet = signed_at("/a/s/n", &own, &own.certificate, None);
    let site = chain.site.certificate.clone();
    let refused = Err(Refusal::NotAnAnchor(own.certificate.clone()));
    let mut judge = |answer: &[u8]| {
        chain.world.answers.insert(at.clone(), answer.to_vec());
        // Nothing that was verified, and no failure, is at hand.
        chain.world.validator.set_revoked(Revoked::default());
        chain.world.now_ms += 60_000;
        chain.world.validator.set_records(Records::default());
        chain.world.judge(&packet).map(|trusted| trusted.key)
    };
    let believed = Ok(own.certificate.clone());
    let third = list("/a/s/KEY/s/32=auth/v=3", &[&site]);
    assert_eq!(judge(&first), believed, "version 1");
    assert_eq!(judge(&third), believed, "version 3");
    assert_eq!(judge(&third), believed, "again");
    // What somebody kept of before, and one that hides its version.
    assert_eq!(judge(&first), refused);
    assert_eq!(judge(&list("/a/s/KEY/s/32=auth", &[&site])), refused);
    // The owner withdraws the certificate: the list before does not bring it back.
    let gone = name("/a/s/KEY/s/x/v=3");
    assert_eq!(judge(&list("/a/s/KEY/s/32=auth/v=4", &[&gone])), refused);
    assert_eq!(judge(&third), refused);
    assert_eq!(judge(&list("/a/s/KEY/s/32=auth/v=5", &[&site])), believed);
}

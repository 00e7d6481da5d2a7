//! Chains of certificates: fetched once, cached, bounded, refused for the right reason. The numbers
//! are those of the negative tests of the field's trust digest.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod guests;
mod keys;
mod revoked;
mod time;
mod world;

use onym_trust::chain::{Context, Event, Failure, Limits, Refusal};
use onym_trust::conf::{PRESET_HIERARCHY, Rules, no_include};
use onym_wire::data::DataBuilder;
use onym_wire::signature::{KeyLocator, SignatureInfo};
use std::sync::Arc;
use world::{
    Form, NOW_MS, Party, World, certificate, chain, chain_with, issued, key, name, self_signed,
    signed, signed_at,
};

fn hierarchical(limits: Limits) -> World {
    let rules = Rules::parse(PRESET_HIERARCHY, "", &mut no_include).unwrap();
    World::new(Arc::new(rules), limits)
}

#[test]
fn a_cold_chain_of_four_is_four_fetches_less_the_anchor_whatever_waits() {
    let mut chain = chain();
    let context = chain.world.context();
    for ticket in 0..1000 {
        let packet = signed(&format!("/a/s/h/p/{ticket}"), &chain.app);
        assert_eq!(chain.world.validator.data(&packet, ticket, &context), None);
    }
    assert_eq!(chain.world.validator.waiting(), 1000);
    let judged = chain.world.settle();
    assert_eq!(chain.world.fetched.len(), 3, "the anchor is at hand: {:?}", chain.world.fetched);
    let mut tickets: Vec<u64> = judged.iter().map(|(ticket, _)| *ticket).collect();
    tickets.sort_unstable();
    assert!(tickets.into_iter().eq(0..1000), "each exactly once");
    for (_, result) in judged {
        let trusted = result.unwrap();
        assert_eq!((trusted.rule.as_str(), trusted.depth), ("#data", 3));
        assert_eq!(trusted.key, chain.app.certificate);
        assert_eq!(trusted.anchor, chain.root.certificate);
    }
    assert_eq!((chain.world.validator.waiting(), chain.world.validator.cached()), (0, 3));
    // From now on nothing is fetched.
    assert!(
        chain.world.validator.data(&signed("/a/s/h/p/x", &chain.app), 1, &context).unwrap().is_ok()
    );
    assert!(
        chain.world.validator.data(&signed("/a/s/n", &chain.site), 1, &context).unwrap().is_ok()
    );
}

#[test]
fn four_certificates_below_an_anchor_are_four_fetches() {
    let mut world = hierarchical(Limits::default());
    let (mut above, wire) = self_signed("/a/KEY/0/self/v=1", &Form::default());
    world.anchor(&wire);
    for level in 1..=4 {
        let uri = format!("/a{}/KEY/{level}/i/v=1", "/x".repeat(level));
        let (party, wire) = issued(&uri, &above, &Form::default());
        world.publish(wire);
        above = party;
    }
    let context = world.context();
    for ticket in 0..1000 {
        let packet = signed(&format!("/a/x/x/x/x/{ticket}"), &above);
        assert_eq!(world.validator.data(&packet, ticket, &context), None);
    }
    let judged = world.settle();
    assert_eq!((judged.len(), world.fetched.len()), (1000, 4));
    assert!(judged.iter().all(|(_, result)| result.as_ref().unwrap().depth == 4));
}

#[test]
fn what_the_rules_forbid_is_refused_before_anything_is_fetched() {
    let mut chain = chain();
    let refusal = chain.world.judge(&signed("/a/s/other/p/1", &chain.app)).unwrap_err();
    assert!(refusal.to_string().contains("component 3, <h>, is h but must be other"), "{refusal}");
    assert!(matches!(refusal, Refusal::Denied(_)));
    let refusal = chain.world.judge(&signed("/a/s/h/p/1", &chain.root)).unwrap_err();
    assert!(matches!(refusal, Refusal::Denied(_)));
    assert!(chain.world.fetched.is_empty());
}

#[test]
fn a_locator_by_key_or_issuer_finds_the_certificate_too() {
    let mut chain = chain();
    for locator in ["/a/s/h/p/KEY/p", "/a/s/h/p/KEY/p/h", "/a/s/h/p/KEY/p/h/v=1"] {
        let packet = signed_at("/a/s/h/p/1", &chain.app, &name(locator), None);
        assert!(chain.world.judge(&packet).is_ok(), "{locator}");
    }
    assert_eq!(chain.world.fetched[0], name("/a/s/h/p/KEY/p"));
    assert_eq!(chain.world.fetched.len(), 3, "one answer serves all three");
}

#[test]
fn negative_9_two_certificates_that_vouch_for_each_other_are_a_loop() {
    let mut world = hierarchical(Limits::default());
    let (_, wire) = self_signed("/a/KEY/r/self/v=1", &Form::default());
    world.anchor(&wire);
    let one = Party { key: key(), certificate: name("/a/x/KEY/1/i/v=1") };
    let two = Party { key: key(), certificate: name("/a/x/KEY/2/i/v=1") };
    for (locator_one, locator_two) in
        [("/a/x/KEY/1/i/v=1", "/a/x/KEY/2/i/v=1"), ("/a/x/KEY/1", "/a/x/KEY/2")]
    {
        let by = |locator| Form { locator: Some(name(locator)), ..Form::default() };
        world.publish(certificate("/a/x/KEY/1/i/v=1", &one.key, &two, &by(locator_two)));
        world.publish(certificate("/a/x/KEY/2/i/v=1", &two.key, &one, &by(locator_one)));
        let refusal = world.judge(&signed("/a/x/data", &one)).unwrap_err();
        assert!(matches!(refusal, Refusal::Loop(_)), "{refusal}");
        world.now_ms += 60_000;
    }
    assert!(world.fetched.len() <= 6, "{:?}", world.fetched);
    assert_eq!(world.validator.waiting(), 0);
}

#[test]
fn negative_10_a_certificate_by_its_own_key_is_no_anchor() {
    let mut world = hierarchical(Limits::default());
    let (_, wire) = self_signed("/a/KEY/r/self/v=1", &Form::default());
    world.anchor(&wire);
    let (party, wire) = self_signed("/a/x/KEY/1/self/v=1", &Form::default());
    world.publish(wire.clone());
    let refusal = world.judge(&signed("/a/x/data", &party)).unwrap_err();
    assert_eq!(refusal, Refusal::NotAnAnchor(party.certificate.clone()));
    // As a packet of its own, too.
    assert_eq!(world.judge(&wire).unwrap_err(), Refusal::NotAnAnchor(party.certificate));
}

fn chain_of(certificates: usize, limits: Limits) -> Result<usize, Refusal> {
    let mut world = hierarchical(limits);
    let (mut above, wire) = self_signed("/a/KEY/0/self/v=1", &Form::default());
    world.anchor(&wire);
    for level in 1..=certificates {
        let (party, wire) = issued(&format!("/a/KEY/{level}/i/v=1"), &above, &Form::default());
        world.publish(wire);
        above = party;
    }
    let result = world.judge(&signed("/a/data", &above));
    assert!(world.fetched.len() <= limits.depth, "{} fetches", world.fetched.len());
    result.map(|trusted| trusted.depth)
}

#[test]
fn negative_11_a_chain_of_26_or_33_is_too_deep_and_one_of_16_is_not() {
    let limits = Limits::default();
    assert_eq!(chain_of(16, limits).unwrap(), 16);
    for certificates in [17, 26, 33] {
        assert_eq!(chain_of(certificates, limits).unwrap_err(), Refusal::TooDeep(16));
    }
    assert_eq!(chain_of(33, Limits { depth: 40, ..limits }).unwrap(), 33);
}

#[test]
fn negative_11_a_chain_cannot_be_made_longer_by_parts_from_the_cache() {
    let mut world = hierarchical(Limits { depth: 4, ..Limits::default() });
    let (mut above, wire) = self_signed("/a/KEY/0/self/v=1", &Form::default());
    world.anchor(&wire);
    for level in 1..=6 {
        let (party, wire) = issued(&format!("/a/KEY/{level}/i/v=1"), &above, &Form::default());
        world.publish(wire);
        let result = world.judge(&signed("/a/data", &party));
        assert_eq!(result.is_ok(), level <= 4, "{level}: {result:?}");
        above = party;
    }
}

#[test]
fn negative_12_the_name_of_an_anchors_key_with_another_key_is_refused() {
    let mut chain = chain();
    let (thief, wire) = self_signed("/a/KEY/r/self/v=2", &Form::default());
    chain.world.publish(wire.clone());
    let by_full = signed("/a/s/n", &thief);
    let by_key = signed_at("/a/s/n", &thief, &name("/a/KEY/r"), None);
    for packet in [by_full, by_key] {
        let refusal = chain.world.judge(&packet).unwrap_err();
        assert!(matches!(refusal, Refusal::BadSignature { .. }), "{refusal}");
    }
    assert_eq!(chain.world.judge(&wire).unwrap_err(), Refusal::NotAnAnchor(thief.certificate));
    assert!(chain.world.fetched.is_empty(), "an anchor is never fetched");
    // As an issuer in a chain, and with the stolen name listed as issuer.
    let thief = Party { key: thief.key, certificate: name("/a/KEY/r/self/v=1") };
    let (site, wire) = issued("/a/s/KEY/t/r/v=1", &thief, &Form::default());
    chain.world.publish(wire);
    let refusal = chain.world.judge(&signed("/a/s/n", &site)).unwrap_err();
    assert!(matches!(refusal, Refusal::BadSignature { .. }), "{refusal}");
}

#[test]
fn negative_13_another_certificate_of_an_anchors_key_leads_to_it() {
    let mut chain = chain();
    let again = Party { certificate: name("/a/KEY/r/other/v=7"), ..chain.root.clone() };
    assert!(chain.world.judge(&signed("/a/s/n", &again)).is_ok());
    let wire = certificate("/a/KEY/r/other/v=7", &again.key, &again, &Form::default());
    assert_eq!(chain.world.judge(&wire).unwrap().anchor, chain.root.certificate);
}

#[test]
fn negative_14_15_what_is_not_marked_as_a_certificate_is_none() {
    for (form, why) in [
        (Form { content_type: 0, ..Form::default() }, "content type"),
        (Form { freshness_ms: 0, ..Form::default() }, "freshness"),
    ] {
        let forms = [Form::default(), form, Form::default(), Form::default()];
        let mut chain = chain_with(Limits::default(), forms);
        let refusal = chain.world.judge(&signed("/a/s/h/p/1", &chain.app)).unwrap_err();
        assert!(matches!(refusal, Refusal::BadCertificate { .. }), "{refusal}");
        assert!(refusal.to_string().contains(why), "{refusal}");
    }
}

#[test]
fn negative_23_24_25_26_27_28_a_signature_that_names_no_certificate_is_refused() {
    let mut chain = chain();
    let data = name("/a/s/h/p/1");
    let mut with = |kind, locator: Option<KeyLocator<'_>>| {
        let info = SignatureInfo { key_locator: locator, ..SignatureInfo::of_kind(kind) };
        let mut wire = Vec::new();
        let builder = DataBuilder::new(data.as_ref(), b"x");
        let sign = |signed: &[u8]| match kind {
            0 => Ok::<_, onym_crypto::Error>(onym_crypto::sha256(&[signed]).to_vec()),
            _ => {
                let mut signature = Vec::new();
                chain.app.key.sign(&[signed], &mut signature).map(|()| signature)
            }
        };
        builder.write(&mut wire, &info, sign).unwrap();
        chain.world.judge(&wire)
    };
    let full = name("/a/s/h/p/KEY/p/h/v=1");
    let good = || Some(KeyLocator::Name(full.as_ref()));
    assert!(with(5, good()).is_ok());
    // A digest that carries the locator of a valid key; no signature; a shared secret.
    for kind in [0, 200, 4, 77] {
        assert_eq!(with(kind, good()), Err(Refusal::NoKey(kind)));
    }
    assert_eq!(with(5, Some(KeyLocator::Digest(&[7; 32]))), Err(Refusal::KeyDigest));
    assert_eq!(with(5, None), Err(Refusal::NoLocator));
    assert_eq!(with(5, Some(KeyLocator::Other(&[]))), Err(Refusal::NoLocator));
    for bad in ["/a/s/h/p/32=KEY/p/h/v=1", "/a/s/h/p/KEY", "/a/s/h/p/KEY/p/h/v=1/x", "/a"] {
        let bad = name(bad);
        let refusal = with(5, Some(KeyLocator::Name(bad.as_ref()))).unwrap_err();
        assert_eq!(refusal, Refusal::BadLocator(bad));
    }
}

#[test]
fn negative_45_a_certificate_that_does_not_come_is_told_and_not_asked_for_again_at_once() {
    let mut chain = chain();
    chain.world.answers.remove(&chain.host.certificate);
    let packet = signed("/a/s/h/p/1", &chain.app);
    for _ in 0..3 {
        let refusal = chain.world.judge(&packet).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            format!(
                "the certificate {} could not be fetched: nobody answered",
                chain.host.certificate
            )
        );
    }
    assert_eq!(chain.world.fetched.len(), 2, "the failure is remembered");
    chain.world.now_ms += 10_001;
    assert!(chain.world.judge(&packet).is_err());
    assert_eq!(chain.world.fetched.len(), 4, "and forgotten after ten seconds");
    // A Nack, Data of another name, Data that is too long.
    for (answer, why) in [
        (Err(Failure::Nack(150)), "Nack, reason 150"),
        (Err(Failure::TooLong), "longer than 8800"),
        (Ok(signed("/a/s/other", &chain.site)), "/a/s/other came in place of"),
        (Ok(vec![6; 9000]), "longer than 8800"),
        (Ok(vec![6, 1]), "not a usable certificate"),
    ] {
        chain.world.now_ms += 60_000;
        let context = chain.world.context();
        assert_eq!(chain.world.validator.data(&packet, 9, &context), None);
        let Some(Event::Fetch(fetch)) = chain.world.validator.poll() else { panic!("a fetch") };
        match &answer {
            Ok(wire) => chain.world.validator.certificate(fetch.id, wire, &context),
            Err(failure) => chain.world.validator.failed(fetch.id, *failure, NOW_MS),
        }
        let Some(Event::Judged { ticket: 9, result }) = chain.world.validator.poll() else {
            panic!("it is judged")
        };
        let refusal = result.unwrap_err().to_string();
        assert!(refusal.contains(why), "{refusal}");
        // A second answer to the same fetch is ignored.
        chain.world.validator.certificate(fetch.id, &packet, &context);
        assert!(chain.world.validator.poll().is_none());
        chain.world.validator.advance(chain.world.now_ms + 60_000);
    }
}

#[test]
fn a_fetch_that_nobody_answers_is_given_up() {
    let mut chain = chain();
    let context = chain.world.context();
    let packet = signed("/a/s/h/p/1", &chain.app);
    assert_eq!(chain.world.validator.data(&packet, 5, &context), None);
    chain.world.validator.advance(NOW_MS + 10_000);
    assert_eq!(chain.world.validator.waiting(), 1);
    chain.world.validator.advance(NOW_MS + 30_001);
    assert_eq!(chain.world.validator.waiting(), 0);
    assert!(matches!(chain.world.validator.poll(), Some(Event::Fetch(_))));
    assert!(matches!(
        chain.world.validator.poll(),
        Some(Event::Judged { ticket: 5, result: Err(Refusal::NotFetched { .. }) })
    ));
}

#[test]
fn every_bound_refuses_what_is_beyond_it_and_only_that() {
    let small = Limits { packets: 3, fetches: 2, octets: 1 << 20, ..Limits::default() };
    let mut chain = chain_with(small, std::array::from_fn(|_| Form::default()));
    let context = chain.world.context();
    let validator = &mut chain.world.validator;
    for ticket in 0..3 {
        assert_eq!(validator.data(&signed("/a/s/h/p/1", &chain.app), ticket, &context), None);
    }
    let refusal = validator.data(&signed("/a/s/h/p/1", &chain.app), 3, &context).unwrap();
    assert_eq!(refusal, Err(Refusal::Busy("too many packets wait")));
    assert_eq!(chain.world.settle().len(), 3);
    // Two certificates may be fetched at once.
    let mut world = hierarchical(small);
    for (ticket, expected) in [(1, true), (2, true), (3, false)] {
        let party = Party { key: key(), certificate: name(&format!("/a/KEY/{ticket}/i/v=1")) };
        let result = world.validator.data(&signed("/a/x", &party), ticket, &context);
        assert_eq!(result.is_none(), expected, "{result:?}");
    }
    let tiny = Limits { octets: 100, ..small };
    let mut chain = chain_with(tiny, std::array::from_fn(|_| Form::default()));
    let refusal = chain.world.judge(&signed("/a/s/h/p/1", &chain.app)).unwrap_err();
    assert_eq!(refusal, Refusal::Busy("too many octets wait"));
    // Of verified certificates the first goes, and is fetched again.
    let few = Limits { cached: 2, ..Limits::default() };
    let mut chain = chain_with(few, std::array::from_fn(|_| Form::default()));
    assert!(chain.world.judge(&signed("/a/s/h/p/1", &chain.app)).is_ok());
    assert_eq!(chain.world.validator.cached(), 2);
    assert!(chain.world.judge(&signed("/a/s/n", &chain.site)).is_ok());
    assert_eq!(chain.world.fetched.len(), 4);
}

#[test]
fn negative_42_a_folder_of_anchors_is_looked_at_again() {
    let mut world = hierarchical(Limits::default());
    let (root, wire) = self_signed("/a/KEY/r/self/v=1", &Form::default());
    let parse = |wire: &[u8]| onym_crypto::Certificate::parse(wire).unwrap();
    let packet = signed("/a/x", &root);
    assert!(world.judge(&packet).is_err());
    // Added.
    let change = world.validator.replace_anchors("dir", vec![parse(&wire)]);
    assert_eq!((change.added, change.removed, change.refused), (1, 0, 0));
    assert!(world.judge(&packet).is_ok());
    let (site, site_wire) = issued("/a/x/KEY/s/r/v=1", &root, &Form::default());
    world.publish(site_wire);
    assert!(world.judge(&signed("/a/x/1", &site)).is_ok());
    assert_eq!(world.validator.replace_anchors("dir", vec![parse(&wire)]), Default::default());
    // Replaced under the same name: ndn-cxx would keep the old one.
    let (other, other_wire) = self_signed("/a/KEY/r/self/v=1", &Form::default());
    let change = world.validator.replace_anchors("dir", vec![parse(&other_wire)]);
    assert_eq!((change.added, change.removed), (1, 1));
    assert!(world.judge(&packet).is_err());
    assert!(world.judge(&signed("/a/x", &other)).is_ok());
    assert!(world.judge(&signed("/a/x/1", &site)).is_err(), "what the old one vouched for");
    // Removed.
    world.validator.replace_anchors("dir", Vec::new());
    assert!(world.judge(&signed("/a/x", &other)).is_err());
    assert_eq!(world.validator.anchors().iter().count(), 0);
    // Only what the rules have a root for may be an anchor.
    let mut strict = World::new(world::hierarchy(), Limits::default());
    let (_, stranger) = self_signed("/b/KEY/r/self/v=1", &Form::default());
    assert!(strict.validator.add_anchor(parse(&stranger)).is_err());
    assert_eq!(strict.validator.replace_anchors("dir", vec![parse(&stranger)]).refused, 1);
}

#[test]
fn a_revoked_certificate_or_key_is_believed_no_longer() {
    let mut chain = chain();
    let packet = signed("/a/s/h/p/1", &chain.app);
    assert!(chain.world.judge(&packet).is_ok());
    chain.world.validator.revoke(chain.host.certificate.as_ref());
    let refusal = chain.world.judge(&packet).unwrap_err();
    assert_eq!(refusal, Refusal::Revoked(chain.host.certificate.clone()));
    assert!(chain.world.judge(&signed("/a/s/n", &chain.site)).is_ok());
    let digest = chain.site.key.public_key().unwrap().key_digest();
    chain.world.validator.revoke_key(digest);
    chain.world.now_ms += 60_000;
    let refusal = chain.world.judge(&signed("/a/s/n", &chain.site)).unwrap_err();
    assert_eq!(refusal, Refusal::Revoked(chain.site.certificate.clone()));
    chain.world.validator.revoke(name("/a/KEY/r").as_ref());
    let refusal = chain.world.judge(&signed("/a/s/n", &chain.root)).unwrap_err();
    assert_eq!(refusal, Refusal::Revoked(chain.root.certificate.clone()));
}

#[test]
fn where_a_packet_came_from_is_told_with_every_fetch_for_it() {
    let mut chain = chain();
    let context = Context { via: Some(300), ..chain.world.context() };
    assert_eq!(chain.world.validator.data(&signed("/a/s/h/p/1", &chain.app), 1, &context), None);
    let mut asked = Vec::new();
    while let Some(Event::Fetch(fetch)) = chain.world.validator.poll() {
        asked.push((fetch.via, fetch.newest));
        let wire = chain.world.answers[&fetch.name].clone();
        chain.world.validator.certificate(fetch.id, &wire, &context);
    }
    assert_eq!(asked, [(Some(300), false); 3]);
}

/// A schema that changes while packets come: what the new rules forbid is refused from then on,
/// anchors they have no root for count no longer, and rules without a root for any are not taken.
#[test]
fn rules_are_replaced_as_a_whole_or_not_at_all() {
    use onym_trust::lvs::{Functions, Mode, Schema, compile};
    let schema = |text: &str| {
        let model = compile(text, Mode::Strict).unwrap();
        Arc::new(Schema::new(model, Functions::default()).unwrap())
    };
    let mut chain = chain();
    let packet = signed("/a/s/n", &chain.site);
    assert!(chain.world.judge(&packet).is_ok());
    let other = schema("#K: \"KEY\"/_/_/_\n#root: \"b\"/#K\n#x: \"b\"/_ <= #root");
    assert!(chain.world.validator.set_policy(other).is_err());
    assert!(chain.world.judge(&packet).is_ok(), "the rules before stay");
    let narrow = schema(
        "#K: \"KEY\"/_/_/_\n#root: \"a\"/#K\n#site: \"a\"/s/#K <= #root\n#x: \"a\"/s/\"m\" <= #site",
    );
    chain.world.validator.set_policy(narrow).unwrap();
    assert!(matches!(chain.world.judge(&packet), Err(Refusal::Denied(_))));
    assert!(chain.world.judge(&signed("/a/s/m", &chain.site)).is_ok());
    let counts = chain.world.validator.counts();
    assert_eq!((counts.accepted, counts.refused), (3, 1), "{counts:?}");
}

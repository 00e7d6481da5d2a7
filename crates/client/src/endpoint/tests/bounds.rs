//! What a producer cannot make a fetch do.

use super::*;
use crate::fetch::FetchBounds;
use crate::metadata::Metadata;
use crate::verify::{Verifier, Verify};
use onym_wire::data::Data;
use std::sync::Arc;

/// A producer of segments without end: `len` octets each, and the end that `last` says of each.
fn endless(len: usize, last: impl Fn(u64) -> Option<u64> + Send + 'static) -> impl Respond {
    move |incoming: &Incoming, out: &mut Vec<u8>| {
        let interest = incoming.interest();
        let Some(asked) = interest.name.last().and_then(|c| c.as_segment()) else {
            return Answer::Nothing;
        };
        let content = vec![7; len];
        let mut end = Name::new();
        if let Some(last) = last(asked) {
            end.append_segment(last);
        }
        let data = DataBuilder {
            final_block_id: end.as_ref().last(),
            ..DataBuilder::new(interest.name, &content)
        };
        onym_crypto::signer::write_digest_data(&data, out);
        Answer::Written
    }
}

fn fetch_from(
    producer: impl Respond + 'static,
    bounds: FetchBounds,
) -> Result<(Vec<u8>, Progress), FetchError> {
    let mut net = Net::new(CLEAN, 1);
    net.producer.respond(Name::new(), Box::new(producer)).unwrap();
    net.fetch("/f/v=1", FetchOptions { bounds, ..with_law(WindowLaw::Fixed(16)) })
}

fn small(size_max: u64) -> FetchBounds {
    FetchBounds { size_max, ..FetchBounds::default() }
}

#[test]
fn an_object_without_an_end_is_taken_up_to_the_size_allowed() {
    let error = fetch_from(endless(1000, |_| None), small(100_000)).unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { size_max: 100_000, .. }), "{error}");
}

#[test]
fn empty_segments_without_an_end_are_counted_too() {
    let error = fetch_from(endless(0, |_| None), small(100_000)).unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { .. }), "{error}");
}

#[test]
fn an_object_of_exactly_the_size_allowed_is_fetched() {
    let (content, _) = fetch_from(endless(1000, |_| Some(99)), small(100_000)).unwrap();
    assert_eq!(content.len(), 100_000);
    let (content, _) = fetch_from(endless(10, |_| Some(0)), small(10)).unwrap();
    assert_eq!(content.len(), 10, "the last segment counts as what it is");
}

#[test]
fn an_end_beyond_the_size_allowed_is_refused_before_the_content_is_fetched() {
    let mut net = Net::new(CLEAN, 1);
    net.producer.respond(Name::new(), Box::new(endless(1000, |_| Some(101)))).unwrap();
    let options = FetchOptions { bounds: small(100_000), ..with_law(WindowLaw::Fixed(1)) };
    let error = net.fetch("/f/v=1", options).unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { last: Some(101), .. }), "{error}");
    assert!(net.now < Tick::from_ms(100), "after the first segment, not the hundredth");
}

#[test]
fn the_greatest_end_of_all_is_told_as_it_was_announced() {
    for size_max in [1 << 32, u64::MAX] {
        let error = fetch_from(endless(1, |_| Some(u64::MAX)), small(size_max)).unwrap_err();
        assert!(error.to_string().contains("18446744073709551615"), "{error}");
        assert!(matches!(error, FetchError::TooLarge { last: Some(u64::MAX), .. }), "{error}");
    }
}

#[test]
fn an_end_that_always_moves_ends_the_fetch() {
    let error = fetch_from(endless(1000, |n| Some(n + 50)), FetchBounds::default()).unwrap_err();
    assert!(matches!(error, FetchError::EndUnsettled { .. }), "{error}");
}

#[test]
fn congestion_nacks_are_obeyed_as_often_as_retries_allow() {
    let mut net = Net::new(CLEAN, 1);
    let busy = |_: &Incoming, _: &mut Vec<u8>| Answer::Nack(NackReason::CONGESTION);
    net.producer.respond(Name::new(), Box::new(busy)).unwrap();
    let pipeline = PipelineOptions { retries_max: 5, ..PipelineOptions::default() };
    let error =
        net.fetch("/f/v=1", FetchOptions { pipeline, ..FetchOptions::default() }).unwrap_err();
    assert!(matches!(error, FetchError::Exhausted { segment: 0, tries: 6, .. }), "{error}");
    assert!(net.now >= Tick::from_ms(150), "waits longer each time: {:?}", net.now);
}

#[test]
fn congestion_that_passes_is_waited_for() {
    let mut net = Net::new(CLEAN, 1);
    let mut asked = 0;
    let mut object = endless(10, |_| Some(3));
    let busy = move |incoming: &Incoming, out: &mut Vec<u8>| {
        asked += 1;
        if asked <= 20 {
            Answer::Nack(NackReason::CONGESTION)
        } else {
            object.respond(incoming, out)
        }
    };
    net.producer.respond(Name::new(), Box::new(busy)).unwrap();
    assert_eq!(net.fetch("/f/v=1", FetchOptions::default()).unwrap().0.len(), 40);
}

/// Metadata at `/f` that leads to `to`, and segments everywhere.
fn leading(to: &'static str) -> impl Respond {
    let mut segments = endless(10, |_| Some(1));
    move |incoming: &Incoming, out: &mut Vec<u8>| {
        let interest = incoming.interest();
        if !interest.name.components().any(|c| c.is_keyword(b"metadata")) {
            return segments.respond(incoming, out);
        }
        let metadata = Metadata {
            name: to.parse().unwrap(),
            last_segment: None,
            segment_size: None,
            size: None,
        };
        let mut content = Vec::new();
        metadata.write(&mut content);
        let data = DataBuilder::new(interest.name, &content);
        onym_crypto::signer::write_digest_data(&data, out);
        Answer::Written
    }
}

struct Believe;

impl Verifier for Believe {
    fn verify(&self, _: &Data<'_>) -> Result<(), onym_crypto::Error> {
        Ok(())
    }
}

#[test]
fn metadata_leads_outside_the_name_asked_for_only_when_followed_or_trusted() {
    let fetch = |to, options| {
        let mut net = Net::new(CLEAN, 1);
        net.producer.respond(Name::new(), Box::new(leading(to))).unwrap();
        net.fetch("/f", options)
    };
    for to in ["/g/v=1", "/localhost/nfd/faces/list", "/ff/v=1", "/"] {
        let error = fetch(to, FetchOptions::default()).unwrap_err();
        assert!(matches!(&error, FetchError::Redirected { .. }), "{to}: {error}");
        assert!(error.to_string().contains(to), "{error}");
    }
    let follow = FetchBounds { follow: true, ..FetchBounds::default() };
    let followed = FetchOptions { bounds: follow, ..FetchOptions::default() };
    assert_eq!(fetch("/g/v=1", followed).unwrap().0.len(), 20);
    let trusted = FetchOptions { verify: Verify::With(Arc::new(Believe)), ..Default::default() };
    assert_eq!(fetch("/g/v=1", trusted).unwrap().0.len(), 20);
    assert_eq!(fetch("/f/deep/v=1", FetchOptions::default()).unwrap().0.len(), 20);
}

#[test]
fn metadata_that_announces_more_than_the_size_allowed_is_refused() {
    let mut net = Net::new(CLEAN, 1);
    net.serve("/f", content(10_000), 1000);
    let options = FetchOptions { bounds: small(9_999), ..FetchOptions::default() };
    let error = net.fetch("/f", options).unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { .. }), "{error}");
}

#[test]
fn a_node_that_goes_and_comes_for_ever_ends_a_fetch_that_gets_nothing() {
    let mut net = Net::new(CLEAN, 1);
    let id =
        net.consumer.fetch(net.now, "/f/v=1".parse().unwrap(), FetchOptions::default()).unwrap();
    for _ in 0..200 {
        net.consumer.disconnected();
        net.consumer.connected(net.now, LinkConfig::stream(), Scope::Local);
    }
    let end = net.consumer.fetch_end(id).expect("the fetch ended");
    assert!(matches!(end.unwrap_err(), FetchError::Disconnected));
}

//! Questions about names, with a producer that counts them.

#![allow(clippy::unwrap_used)]

use super::*;
use onym_client::{Answer, Incoming, blocking};
use onym_crypto::Signer;
use onym_face::mem;
use onym_wire::data::DataBuilder;
use onym_wire::mgmt::Scope;
use std::sync::atomic::AtomicU64;
use std::thread;

/// What the producer does with a question, when it does not answer it.
const REFUSES: u64 = 1;
const HAS_NOTHING: u64 = 2;

#[derive(Default)]
struct Producer {
    mood: Arc<AtomicU64>,
    asked: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Producer {
    fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = self.thread.take().unwrap().join();
    }
}

/// Names, and a producer of `/f` whose metadata are fresh for `fresh_ms`.
fn names(fresh_ms: u64) -> (Names, Producer) {
    let (ours, theirs) = mem::pair(Scope::Local).unwrap();
    let mut producer = Producer::default();
    let (mood, asked) = (Arc::clone(&producer.mood), Arc::clone(&producer.asked));
    let over = Arc::clone(&producer.over);
    let respond = move |incoming: &Incoming, out: &mut Vec<u8>| {
        asked.fetch_add(1, Ordering::SeqCst);
        let mut name = incoming.interest().name.to_name();
        let mut content = Vec::new();
        let mut content_type = types::CONTENT_NACK;
        match mood.load(Ordering::SeqCst) {
            REFUSES => return Answer::Nack(NackReason::NO_ROUTE),
            HAS_NOTHING => {}
            _ => {
                content_type = types::CONTENT_BLOB;
                let mut metadata = FileMetadata { size: Some(5), ..FileMetadata::default() };
                metadata.name = "/f/v=7".parse().unwrap();
                metadata.segment_size = Some(6144);
                metadata.write(&mut content);
                name.append_version(1).append_segment(0);
            }
        }
        let freshness_ms = fresh_ms;
        let data =
            DataBuilder { content_type, freshness_ms, ..DataBuilder::new(name.as_ref(), &content) };
        Signer::digest().sign_data(&data, out).unwrap();
        Answer::Written
    };
    let thread = thread::spawn(move || {
        let mut client = blocking::Client::over(Box::new(theirs));
        client.respond(Name::new(), Box::new(respond)).unwrap();
        let every = Duration::from_millis(1);
        let _ = client.run(every, &mut || over.load(Ordering::SeqCst), &mut |_| {});
    });
    let names = Names::new(Client::over(Box::new(ours)), None, u64::MAX);
    producer.thread = Some(thread);
    (names, producer)
}

fn run(test: impl AsyncFnOnce()) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test());
}

/// Law: equal questions at one time are one question of the network, and a fresh answer is none.
#[test]
fn equal_questions_are_asked_once() {
    run(async || {
        let (names, producer) = names(3_600_000);
        let name: Name = "/f".parse().unwrap();
        let ask = || names.find(&name);
        let (a, b, c) = tokio::join!(ask(), ask(), ask());
        let hows = [a.0, b.0, c.0];
        assert_eq!(hows.iter().filter(|how| **how == How::Miss).count(), 1, "{hows:?}");
        assert_eq!(hows.iter().filter(|how| **how == How::Collapsed).count(), 2, "{hows:?}");
        assert_eq!(a.1.unwrap().name.to_string(), "/f/v=7");
        assert!(matches!(ask().await.0, How::Hit(_)));
        assert_eq!(producer.asked(), 1);
    });
}

/// Law: what has gone is remembered as gone; where nobody answers any more the last answer counts.
#[test]
fn absence_is_remembered_and_silence_is_bridged() {
    run(async || {
        let (names, producer) = names(0);
        let (name, other): (Name, Name) = ("/f".parse().unwrap(), "/g".parse().unwrap());
        let known = names.find(&name).await.1.unwrap();
        producer.mood.store(REFUSES, Ordering::SeqCst);
        let (how, found) = names.find(&name).await;
        assert!(matches!(how, How::Kept(_)), "{how:?}");
        assert_eq!(found.unwrap().name, known.name);
        producer.mood.store(HAS_NOTHING, Ordering::SeqCst);
        assert_eq!(names.find(&other).await.1.unwrap_err(), Miss::Nothing);
        let asked = producer.asked();
        assert_eq!(names.find(&other).await.1.unwrap_err(), Miss::Nothing);
        assert_eq!(producer.asked(), asked, "it was known a moment ago");
    });
}

/// Law: the table of names is bounded.
#[test]
fn names_that_were_asked_for_long_ago_are_forgotten() {
    run(async || {
        let (names, _producer) = names(3_600_000);
        for number in 0..KNOWN_MAX + 10 {
            let mut name = Name::new();
            name.append_segment(number as u64);
            drop(names.known(&name));
        }
        let table = names.table.lock().unwrap();
        assert_eq!((table.known.len(), table.order.len()), (KNOWN_MAX, KNOWN_MAX));
    });
}

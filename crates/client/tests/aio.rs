//! The async shell over memory faces, a consumer and a producer face to face.

#![allow(clippy::unwrap_used)]

use onym_client::aio::Client;
use onym_client::serve::{Object, ServeOptions};
use onym_client::{Error, FetchOptions, Request, Unanswered};
use onym_crypto::signer::write_digest_data;
use onym_face::{mem, unix};
use onym_frame::Buf;
use onym_wire::PACKET_LEN_MAX;
use onym_wire::data::DataBuilder;
use onym_wire::mgmt::Scope;
use onym_wire::name::Name;
use std::time::Duration;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn pair() -> (Client, Client) {
    let (a, b) = mem::pair(Scope::Local).unwrap();
    (Client::over(Box::new(a)), Client::over(Box::new(b)))
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 7 % 251) as u8).collect()
}

#[tokio::test]
async fn a_slow_reader_gets_the_whole_file_in_order() {
    let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
    let consumer = Client::over(Box::new(unix::from_stream(a).unwrap()));
    let producer = Client::over(Box::new(unix::from_stream(b).unwrap()));
    let file = content(4_000_000);
    let object = Object::new(name("/f"), file.clone(), ServeOptions::new(1)).unwrap();
    producer.respond(name("/f"), object).await.unwrap();
    let mut fetch = consumer.fetch(name("/f"), FetchOptions::default()).await.unwrap();
    let mut got = Vec::new();
    while let Some(piece) = fetch.next().await {
        got.extend_from_slice(&piece);
        tokio::task::yield_now().await;
    }
    let report = fetch.end().await.unwrap();
    assert!(got == file);
    assert_eq!(report.bytes, 4_000_000);
}

#[tokio::test]
async fn an_application_answers_in_its_own_time_and_requests_run_side_by_side() {
    let (consumer, producer) = pair();
    let mut interests = producer.interests(name("/app")).await.unwrap();
    let answering = tokio::spawn(async move {
        while let Some(incoming) = interests.next().await {
            let mut data = Vec::with_capacity(PACKET_LEN_MAX);
            write_digest_data(&DataBuilder::new(incoming.interest().name, b"late"), &mut data);
            if producer.reply(incoming, Buf::copy_from(&data)).await.is_err() {
                return;
            }
        }
    });
    let ask = |n: u32| {
        let consumer = consumer.clone();
        async move { consumer.request(Request::new(name(&format!("/app/{n}")))).await }
    };
    let (one, two) = tokio::join!(ask(1), ask(2));
    assert_eq!(one.unwrap().data().name, name("/app/1"));
    assert_eq!(&*two.unwrap().content(), b"late");
    drop(consumer);
    answering.abort();
}

#[tokio::test]
async fn silence_is_a_timeout_and_a_closed_face_an_end() {
    let (consumer, producer) = pair();
    let lifetime = Duration::from_millis(20);
    let request = Request { lifetime, ..Request::new(name("/nobody")) };
    let error = consumer.request(request.clone()).await.unwrap_err();
    assert!(matches!(error, Error::Unanswered { why: Unanswered::Timeout, .. }), "{error}");
    let mut up = consumer.connection();
    drop(producer);
    up.wait_for(|up| !up).await.ok();
    let error = consumer.request(request).await.unwrap_err();
    assert!(matches!(error, Error::Disconnected(_) | Error::Unanswered { .. }), "{error}");
}

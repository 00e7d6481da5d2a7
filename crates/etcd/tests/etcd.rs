//! The client against a real etcd.

#![allow(clippy::unwrap_used)]

use onym_etcd::testing::Local;
use onym_etcd::{Compare, Etcd, EtcdError, Operation, Seat, Standing};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

fn client(url: &str) -> Arc<Etcd> {
    Arc::new(Etcd::new(&[url], None, PATIENCE).unwrap())
}

#[tokio::test]
async fn keys_are_written_listed_and_removed_and_a_transaction_is_all_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(local) = Local::start(folder.path()) else { return };
    let etcd = client(&local.url());
    assert_eq!(etcd.get("a/1").await.unwrap(), None);
    for key in ["a/1", "a/2", "a/3", "b"] {
        etcd.put(key, key.as_bytes(), None).await.unwrap();
    }
    let two = etcd.list("a/", 2).await.unwrap();
    assert!(two.is_more);
    let keys: Vec<&str> = two.entries.iter().map(|e| e.key.as_str()).collect();
    assert_eq!(keys, ["a/1", "a/2"]);
    let all = etcd.list("a/", 10).await.unwrap();
    assert_eq!((all.entries.len(), all.is_more), (3, false));
    let one = etcd.get("a/1").await.unwrap().unwrap();
    assert_eq!((one.value.as_slice(), one.created), (&b"a/1"[..], one.modified));

    // Written by somebody else in between: nothing of the transaction happens.
    etcd.put("a/1", b"other", None).await.unwrap();
    let put = |key: &str| Operation::Put { key: key.into(), value: b"t".into(), lease: None };
    let when = [Compare::Modified("a/1".into(), one.modified)];
    let get = Operation::Get { key: "a/1".into() };
    let outcome = etcd.transact(&when, &[put("a/1"), put("c")], &[get]).await.unwrap();
    assert!(!outcome.is_done);
    assert_eq!(outcome.found[0][0].value, b"other");
    assert_eq!(etcd.get("c").await.unwrap(), None);
    let now = outcome.found[0][0].modified;
    let when = [Compare::Modified("a/1".into(), now), Compare::absent("c")];
    assert!(etcd.transact(&when, &[put("a/1"), put("c")], &[]).await.unwrap().is_done);
    etcd.delete("c").await.unwrap();
    assert_eq!(etcd.get("c").await.unwrap(), None);
    let long = vec![0; (1 << 20) + 1];
    assert!(matches!(etcd.put("d", &long, None).await, Err(EtcdError::Refused(_))));
}

#[tokio::test]
async fn a_seat_has_one_holder_and_is_free_when_its_lease_ends_or_it_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let Some(local) = Local::start(folder.path()) else { return };
    let etcd = client(&local.url());
    let seat = |who: &str| {
        Seat::new(client(&local.url()), "seat", who.as_bytes().to_vec(), Duration::from_secs(2))
    };
    let (mut first, mut second) = (seat("first"), seat("second"));
    assert_eq!(first.sit().await.unwrap(), Standing::Held);
    assert_eq!(second.sit().await.unwrap(), Standing::Taken(b"first".to_vec()));
    assert!(first.is_held() && !second.is_held());
    assert_eq!(first.sit().await.unwrap(), Standing::Held);
    let guard = first.guard().unwrap();
    let put = [Operation::Put { key: "state".into(), value: b"1".into(), lease: None }];
    assert!(etcd.transact(std::slice::from_ref(&guard), &put, &[]).await.unwrap().is_done);

    // The first one is silent: the seat goes to who waits, and what it still writes is refused.
    let begun = Instant::now();
    while second.sit().await.unwrap() != Standing::Held {
        assert!(begun.elapsed() < PATIENCE, "the lease did not end");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!first.is_held(), "a holder knows by its own clock that it may have lost it");
    assert!(!etcd.transact(&[guard], &put, &[]).await.unwrap().is_done);
    assert_eq!(first.sit().await.unwrap(), Standing::Taken(b"second".to_vec()));
    second.leave().await.unwrap();
    assert_eq!(first.sit().await.unwrap(), Standing::Held);
}

#[tokio::test]
async fn a_member_that_is_away_is_passed_over_and_all_away_is_said_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut local) = Local::start(folder.path()) else { return };
    let nobody = "http://127.0.0.1:1".to_owned();
    let etcd = Etcd::new(&[nobody, local.url()], None, PATIENCE).unwrap();
    etcd.put("k", b"v", None).await.unwrap();
    local.kill();
    let error = etcd.get("k").await.unwrap_err();
    assert!(matches!(&error, EtcdError::Away(why) if why.contains("127.0.0.1:1:")), "{error}");
    assert!(local.up(), "etcd starts again with its data");
    assert_eq!(etcd.get("k").await.unwrap().unwrap().value, b"v");
}

//! Publishing and reading allocate nothing.

use onym_board::{Config, Publisher, Reception, Subscriber};
use onym_sys::alloc_count::{CountingAlloc, counts};
use std::alloc::System;
use std::os::unix::net::UnixStream;
use std::time::Duration;

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc(System);

/// One holds what it gets for a while, the others read at once.
fn exchange(publisher: &mut Publisher, subscribers: &mut [Subscriber], n: u64) -> u64 {
    let (holder, others) = subscribers.split_first_mut().expect("one at least");
    let mut sum = 0;
    publisher.publish(&n.to_ne_bytes()).expect("it fits");
    let held = holder.receive().expect("an honest publisher");
    for _ in 0..20 {
        publisher.publish(&n.to_ne_bytes()).expect("it fits");
        for subscriber in &mut *others {
            while let Some(reception) = subscriber.receive().expect("an honest publisher") {
                if let Reception::Item(item) = reception {
                    sum += item.words().iter().sum::<u64>();
                }
            }
        }
    }
    drop(held);
    sum
}

#[test]
fn nothing_is_allocated_for_a_publication_even_when_old_ones_are_held() {
    let config = Config { payload_max: 100, depth: 3, subscribers_max: 3 };
    let mut publisher = Publisher::new(&config).unwrap();
    let mut subscribers: Vec<Subscriber> = (0..3)
        .map(|_| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            publisher.admit(ours.into()).unwrap();
            Subscriber::attach(theirs.into(), Duration::from_secs(10)).unwrap()
        })
        .collect();
    let before = counts();
    let sum: u64 = (0..500).map(|n| exchange(&mut publisher, &mut subscribers, n)).sum();
    let after = counts();
    assert!(sum > 0);
    assert_eq!(after.allocations, before.allocations);
}

//! The blackboard, with a publisher that lets nobody miss anything.

use super::{END, PATIENCE, PartArgs, PartResult, Read, Seen, ready, words};
use anyhow::{Result, ensure};
use onym_board::{Config, Door, Publisher, Reception, Words, connect};

pub(super) fn publish(args: &PartArgs) -> Result<PartResult> {
    let config =
        Config { payload_max: args.payload, depth: args.depth, subscribers_max: args.subscribers };
    let mut publisher = Publisher::new(&config)?;
    let door = Door::open(&args.path)?;
    println!("open");
    while publisher.subscribers() < args.subscribers {
        door.admit(&mut publisher)?;
        std::thread::yield_now();
    }
    let octets: Vec<u8> = words(args.payload).iter().flat_map(|w| w.to_ne_bytes()).collect();
    ready(true)?;
    let mut run = args.run();
    loop {
        ensure!(publisher.wait_for_room(PATIENCE)?, "subscribers do not read");
        let is_last = run.is_over();
        let mut loan = publisher.loan(args.payload)?;
        loan.write_word(0, if is_last { END } else { run.count });
        if args.read != Read::Head {
            loan.write(8, &octets[8..]);
        }
        loan.publish();
        if is_last {
            break;
        }
        run.count += 1;
    }
    ensure!(publisher.wait_for_readers(0, PATIENCE)?, "subscribers do not read");
    Ok(run.result())
}

pub(super) fn subscribe(args: &PartArgs) -> Result<PartResult> {
    let mut subscriber = connect(&args.path, PATIENCE)?;
    let mut seen = Seen::new(args.payload);
    ready(false)?;
    loop {
        let Some(Reception::Item(item)) = subscriber.receive_within(PATIENCE)? else { continue };
        let words = item.words();
        let sum = (args.read == Read::Sum).then(|| sum(words));
        if seen.take(words.get(0).unwrap_or(0), sum)? {
            return Ok(seen.result);
        }
    }
}

/// The sum of all words, eight at a time.
fn sum(words: Words<'_>) -> u64 {
    let mut lanes = [0_u64; 8];
    let (eights, rest) = words.eights();
    for eight in eights {
        for (lane, word) in lanes.iter_mut().zip(eight) {
            *lane = lane.wrapping_add(word);
        }
    }
    lanes.into_iter().chain(rest.iter()).fold(0, u64::wrapping_add)
}

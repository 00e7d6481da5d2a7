//! What a node does without shared memory: a copy for each subscriber through a Unix stream socket.

use super::{END, PartArgs, PartResult, Read, Seen, ready, words};
use anyhow::Result;
use std::io::{Read as _, Write};
use std::os::unix::net::{UnixListener, UnixStream};

pub(super) fn publish(args: &PartArgs) -> Result<PartResult> {
    let listener = UnixListener::bind(&args.path)?;
    println!("open");
    let mut streams = Vec::new();
    for _ in 0..args.subscribers {
        streams.push(listener.accept()?.0);
    }
    let mut octets: Vec<u8> = words(args.payload).iter().flat_map(|w| w.to_ne_bytes()).collect();
    ready(true)?;
    let mut run = args.run();
    loop {
        let is_last = run.is_over();
        let first = if is_last { END } else { run.count };
        octets[..8].copy_from_slice(&first.to_ne_bytes());
        for stream in &mut streams {
            stream.write_all(&octets)?;
        }
        if is_last {
            return Ok(run.result());
        }
        run.count += 1;
    }
}

pub(super) fn subscribe(args: &PartArgs) -> Result<PartResult> {
    let mut stream = UnixStream::connect(&args.path)?;
    let mut seen = Seen::new(args.payload);
    // As much as a small publication needs is read ahead, so that small ones share a system call.
    let mut buffer = vec![0; args.payload.max(1 << 16) / args.payload * args.payload];
    let mut held = 0;
    ready(false)?;
    loop {
        held += stream.read(&mut buffer[held..])?;
        let whole = held / args.payload * args.payload;
        for publication in buffer[..whole].chunks_exact(args.payload) {
            let (words, _) = publication.as_chunks::<8>();
            let words = words.iter().map(|octets| u64::from_ne_bytes(*octets));
            let sum = (args.read == Read::Sum).then(|| words.clone().fold(0, u64::wrapping_add));
            if seen.take(words.clone().next().unwrap_or(0), sum)? {
                return Ok(seen.result);
            }
        }
        buffer.copy_within(whole..held, 0);
        held -= whole;
    }
}

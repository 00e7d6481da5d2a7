//! Node-local delivery by a node's Unix socket: the dispatcher makes a copy for each subscriber, as in
//! the Blackadder paper.

use super::{END, PATIENCE, PartArgs, PartResult, Read, Seen, ready, words};
use anyhow::{Context, Result, bail};
use onym_client::push::{App, Event};
use onym_wire::push::{Id, Strategy};
use std::time::Duration;

const STRATEGY: Strategy = Strategy::NODE_LOCAL;
/// Time between two publications that end a run: one may be missed.
const AGAIN: Duration = Duration::from_millis(20);

fn open(args: &PartArgs, name: &str) -> Result<(App, Id)> {
    let place = args.path.to_str().context("a place is a URI")?;
    Ok((App::open(Some(place), name)?, "/b0/b1".parse()?))
}

pub(super) fn publish(args: &PartArgs) -> Result<PartResult> {
    let (mut app, item) = open(args, "bench publisher")?;
    app.publish_scope(&"/b0".parse()?, STRATEGY)?;
    app.publish_item(&item, STRATEGY)?;
    println!("open");
    let mut octets: Vec<u8> = words(args.payload).iter().flat_map(|w| w.to_ne_bytes()).collect();
    ready(true)?;
    let mut run = args.run();
    while !run.is_over() {
        octets[..8].copy_from_slice(&run.count.to_ne_bytes());
        app.publish(&item, STRATEGY, &octets)?;
        run.count += 1;
    }
    let result = run.result();
    octets[..8].copy_from_slice(&END.to_ne_bytes());
    loop {
        app.publish(&item, STRATEGY, &octets)?;
        app.drain()?;
        match app.event(Some(AGAIN))? {
            // Everybody has the last one and left.
            Some(Event::StopPublish(_)) => return Ok(result),
            Some(Event::Refused { id, status }) => bail!("{id} is refused: {status}"),
            _ => {}
        }
    }
}

pub(super) fn subscribe(args: &PartArgs) -> Result<PartResult> {
    let (mut app, item) = open(args, "bench subscriber")?;
    app.subscribe_item(&item, STRATEGY)?;
    let mut seen = Seen::new(args.payload);
    ready(false)?;
    loop {
        let Some(Event::Data { payload, .. }) = app.event(Some(PATIENCE))? else { continue };
        let (words, _) = payload.as_chunks::<8>();
        let words = words.iter().map(|octets| u64::from_ne_bytes(*octets));
        let sum = (args.read == Read::Sum).then(|| words.clone().fold(0, u64::wrapping_add));
        if seen.take(words.clone().next().unwrap_or(0), sum)? {
            return Ok(seen.result);
        }
    }
}

//! Our side: applications of the push half.

use super::{PartResult, PushPartArgs, SILENCE, Seen};
use anyhow::Result;
use onym_client::push::{App, Event};
use onym_wire::push::{Id, Strategy};
use std::time::Duration;

const STRATEGY: Strategy = Strategy::DOMAIN_LOCAL;

fn ids() -> Result<(Id, Id)> {
    Ok(("/b1".parse()?, "/b1/b2".parse()?))
}

pub(super) fn publish(args: &PushPartArgs) -> Result<PartResult> {
    let mut app = App::open(Some(&args.at), "bench publisher")?;
    let (scope, item) = ids()?;
    app.publish_scope(&scope, STRATEGY)?;
    app.publish_item(&item, STRATEGY)?;
    let pause = |app: &mut App, patience: Duration| {
        app.drain()?;
        // Starts, stops and refusals: probes go on until all have come.
        app.event(Some(patience))?;
        Ok(())
    };
    super::side::publish(
        &args.side,
        &mut app,
        |app, octets| Ok(app.publish(&item, STRATEGY, octets)?),
        pause,
    )
}

pub(super) fn subscribe(args: &PushPartArgs) -> Result<PartResult> {
    let mut app = App::open(Some(&args.at), "bench subscriber")?;
    let (_, item) = ids()?;
    app.subscribe_item(&item, STRATEGY)?;
    let mut seen = Seen::new(&args.side);
    loop {
        match app.event(Some(SILENCE))? {
            Some(Event::Data { payload, .. }) if seen.take(&payload, args.side.payload)? => break,
            Some(Event::Missed(count) | Event::Lost(count)) => seen.result.told += count,
            None if seen.result.count > 0 => break,
            Some(_) | None => {}
        }
    }
    Ok(seen.result())
}

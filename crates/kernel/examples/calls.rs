//! Every call of `onym_kernel::calls` once, against the kernel stack of this network namespace.
//! Needs a route to Face_local below `/rust` (made here, with `CAP_NET_ADMIN`).

use onym_crypto::Signer;
use onym_kernel::calls::{cast, publish, publisher, pump, request, status, touch, watch};
use onym_kernel::control::Control;
use onym_kernel::socket::RawSocket;
use onym_wire::interest::InterestBuilder;
use onym_wire::{Data, DataBuilder, Name};
use std::error::Error;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

fn law(holds: bool, what: &str) -> Result<(), Box<dyn Error>> {
    if holds { Ok(()) } else { Err(format!("does not hold: {what}").into()) }
}

/// The content under a name, by a socket of its own; `None` for a Nack or nothing.
fn fetch(name: &Name, patience: Duration) -> Result<Option<Vec<u8>>, Box<dyn Error>> {
    let socket = RawSocket::open()?;
    let mut packet = Vec::new();
    InterestBuilder::new(name.as_ref()).write(&mut packet);
    socket.send(&packet)?;
    let mut room = vec![0; 8800];
    let Some(len) = socket.receive(&mut room, patience)? else { return Ok(None) };
    Ok(Data::parse(&room[..len]).ok().map(|d| d.content.to_vec()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (prefix, local): (Name, u32) = ("/rust".parse()?, 1);
    let mut control = Control::open()?;
    control.add_route(prefix.value(), local, 0)?;
    control.set_cs(None, Some(false), None)?;
    let socket = publisher(prefix.as_ref())?;
    let signer = Signer::digest();

    let item: Name = "/rust/item".parse()?;
    publish(&socket, &DataBuilder::new(item.as_ref(), b"published"), &signer)?;
    law(fetch(&item, PATIENCE)?.as_deref() == Some(b"published"), "publish answers")?;
    socket.tell_answered()?;
    law(fetch(&item, PATIENCE)?.is_some(), "publish answers again")?;
    let seen = status(&socket, PATIENCE)?.ok_or("status says nothing")?;
    law(seen.satisfied, "status tells of what was answered")?;
    socket.unpublish(item.value())?;
    let begun = Instant::now();
    law(fetch(&item, Duration::from_millis(200))?.is_none(), "unpublish forgets")?;
    law(begun.elapsed() < PATIENCE, "and nobody waits for it")?;
    let seen = status(&socket, PATIENCE)?.ok_or("status says nothing")?;
    law(!seen.satisfied, "status tells of what was not answered")?;

    let brief: Name = "/rust/brief".parse()?;
    cast(&socket, &DataBuilder::new(brief.as_ref(), b"cast"), &signer, Duration::from_secs(2))?;
    law(fetch(&brief, PATIENCE)?.as_deref() == Some(b"cast"), "cast answers for a time")?;
    let begun = Instant::now();
    while fetch(&brief, Duration::from_millis(200))?.is_some() {
        law(begun.elapsed() < PATIENCE, "and not longer")?;
    }

    let object: Name = "/rust/object".parse()?;
    let content: Vec<u8> = (0..100_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let segments = pump(&socket, object.as_ref(), &content[..60_000], 1000, &signer)?;
    law(segments == 60, "pump counts segments")?;
    let meta = touch(object.as_ref(), PATIENCE)?.ok_or("touch found nothing")?;
    law(meta.last == 59 && meta.size == 60_000 && meta.segment == 1000, "touch tells the size")?;
    let mut got = Vec::new();
    for part in request(object.as_ref(), PATIENCE)? {
        got.extend_from_slice(&part?);
    }
    law(got == content[..60_000], "request gives the object")?;

    drop(socket);
    let watched = watch(prefix.as_ref())?;
    let other: Name = "/rust/watched".parse()?;
    law(fetch(&other, Duration::from_millis(50))?.is_none(), "watch does not answer")?;
    let seen = status(&watched, PATIENCE)?.ok_or("watch saw nothing")?;
    law(!seen.satisfied && !seen.interest.is_empty(), "watch sees the Interest")?;
    control.set_cs(None, Some(true), None)?;
    println!("publish, cast, pump, touch, request, watch, status: kept");
    Ok(())
}

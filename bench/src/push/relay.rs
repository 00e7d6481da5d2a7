//! A bare relay that makes the same copies: what comes from before goes to the next one and to the
//! applications, looked at by nobody. Publications have one length and nothing around them.

use super::{PartResult, PushPartArgs, SILENCE, Seen};
use crate::part::say;
use anyhow::{Context, Result};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;

/// What is read or written at once.
const BATCH: usize = 64 << 10;
/// First octet of a connection.
const PUBLISHER: u8 = b'p';
const SUBSCRIBER: u8 = b's';

/// Octets of a buffer of whole publications.
const fn whole(payload: usize) -> usize {
    let count = BATCH / payload;
    payload * if count == 0 { 1 } else { count }
}

/// Relays until it is ended. `at` is its Unix socket; publications come over it, or over TCP.
pub(super) fn node(args: &PushPartArgs) -> Result<()> {
    let applications = UnixListener::bind(&args.at)?;
    let before = args.listen.map(TcpListener::bind).transpose()?;
    let mut next = args.next.map(TcpStream::connect).transpose()?;
    if let Some(next) = &next {
        next.set_nodelay(true)?;
    }
    say("ready")?;
    let (tx, joined) = mpsc::channel();
    let (upstream_tx, upstream) = mpsc::channel::<Box<dyn Read + Send + Sync>>();
    if let Some(before) = before {
        upstream_tx.send(Box::new(before.accept()?.0))?;
    }
    std::thread::spawn(move || -> Result<()> {
        loop {
            let (mut stream, _) = applications.accept()?;
            let mut kind = [0];
            stream.read_exact(&mut kind)?;
            match kind[0] {
                PUBLISHER => upstream_tx.send(Box::new(stream))?,
                _ => tx.send(stream)?,
            }
        }
    });
    let mut from = upstream.recv().context("nothing comes from before")?;
    let mut subscribers: Vec<UnixStream> = Vec::new();
    let (mut buffer, mut held) = (vec![0; whole(args.side.payload)], 0);
    loop {
        let got = from.read(&mut buffer[held..])?;
        if got == 0 {
            return Ok(());
        }
        held += got;
        let end = held / args.side.payload * args.side.payload;
        subscribers.extend(joined.try_iter());
        // One that has its last publication leaves.
        subscribers.retain_mut(|subscriber| subscriber.write_all(&buffer[..end]).is_ok());
        if let Some(next) = &mut next {
            next.write_all(&buffer[..end])?;
        }
        buffer.copy_within(end..held, 0);
        held -= end;
    }
}

pub(super) fn publish(args: &PushPartArgs) -> Result<PartResult> {
    let mut stream = UnixStream::connect(&args.at)?;
    stream.write_all(&[PUBLISHER])?;
    let mut batch: Vec<u8> = Vec::with_capacity(BATCH + args.side.payload);
    let mut to = &stream;
    let put = |batch: &mut Vec<u8>, octets: &[u8]| -> Result<()> {
        batch.extend_from_slice(octets);
        if batch.len() >= BATCH {
            to.write_all(batch)?;
            batch.clear();
        }
        Ok(())
    };
    let pause = |batch: &mut Vec<u8>, patience| {
        (&stream).write_all(batch)?;
        batch.clear();
        std::thread::sleep(patience);
        Ok(())
    };
    super::side::publish(&args.side, &mut batch, put, pause)
}

pub(super) fn subscribe(args: &PushPartArgs) -> Result<PartResult> {
    let mut stream = UnixStream::connect(&args.at)?;
    stream.write_all(&[SUBSCRIBER])?;
    stream.set_read_timeout(Some(SILENCE))?;
    let mut seen = Seen::new(&args.side);
    let (mut buffer, mut held) = (vec![0_u8; whole(args.side.payload)], 0);
    loop {
        match stream.read(&mut buffer[held..]) {
            Ok(0) => return Ok(seen.result()),
            Ok(got) => held += got,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(e) => return Err(e.into()),
        }
        let end = held / args.side.payload * args.side.payload;
        for publication in buffer[..end].chunks_exact(args.side.payload) {
            if seen.take(publication, args.side.payload)? {
                return Ok(seen.result());
            }
        }
        buffer.copy_within(end..held, 0);
        held -= end;
    }
}

//! MQTT 3.1.1, as much of it as the comparison needs: publications that are not acknowledged (QoS 0).

use super::{PartResult, PushPartArgs, SILENCE, Seen};
use anyhow::{Context, Result, bail, ensure};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
const PUBLISH: u8 = 0x30;
const SUBSCRIBE: u8 = 0x82;
const SUBACK: u8 = 0x90;
const TOPIC: &[u8] = b"bench";
/// What is read or written at once.
const BATCH: usize = 64 << 10;

/// Appends a packet: its first octet, its length, and what `parts` hold.
fn put_packet(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    out.push(kind);
    let mut rest: usize = parts.iter().map(|part| part.len()).sum();
    loop {
        let (more, low) = (rest / 128, (rest % 128) as u8);
        out.push(low | if more > 0 { 0x80 } else { 0 });
        rest = more;
        if rest == 0 {
            break;
        }
    }
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// A text with its length before it.
fn text(octets: &[u8]) -> Vec<u8> {
    let mut out = u16::try_from(octets.len()).unwrap_or(u16::MAX).to_be_bytes().to_vec();
    out.extend_from_slice(octets);
    out
}

/// The packet at the front: its first octet, where its content is, and its octets in all.
fn packet(octets: &[u8]) -> Result<Option<(u8, std::ops::Range<usize>)>> {
    let Some(kind) = octets.first() else { return Ok(None) };
    let (mut len, mut at) = (0_usize, 1);
    loop {
        let Some(octet) = octets.get(at) else { return Ok(None) };
        ensure!(at <= 4, "a length of more than four octets");
        len |= usize::from(octet & 0x7f) << (7 * (at - 1));
        at += 1;
        if octet & 0x80 == 0 {
            break;
        }
    }
    Ok((octets.len() >= at + len).then_some((*kind, at..at + len)))
}

fn connect(at: &str) -> Result<TcpStream> {
    let stream = TcpStream::connect(at)?;
    stream.set_nodelay(true)?;
    let id = format!("bench-{}", std::process::id());
    let mut out = Vec::new();
    // Protocol level 4, a clean session, no keep-alive.
    let head = [&text(b"MQTT")[..], &[4, 2, 0, 0]].concat();
    put_packet(&mut out, CONNECT, &[&head, &text(id.as_bytes())]);
    (&stream).write_all(&out)?;
    let mut answer = [0; 4];
    (&stream).read_exact(&mut answer)?;
    ensure!(answer[0] == CONNACK && answer[3] == 0, "the broker refuses: {answer:?}");
    Ok(stream)
}

pub(super) fn publish(args: &PushPartArgs) -> Result<PartResult> {
    let stream = connect(&args.at)?;
    let mut batch: Vec<u8> = Vec::with_capacity(BATCH + args.side.payload);
    let (mut to, topic) = (&stream, text(TOPIC));
    let put = |batch: &mut Vec<u8>, octets: &[u8]| -> Result<()> {
        put_packet(batch, PUBLISH, &[&topic, octets]);
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
    let mut stream = connect(&args.at)?;
    let mut out = Vec::new();
    put_packet(&mut out, SUBSCRIBE, &[&[0, 1], &text(TOPIC), &[0]]);
    stream.write_all(&out)?;
    stream.set_read_timeout(Some(SILENCE))?;
    let mut seen = Seen::new(&args.side);
    let (mut buffer, mut held) = (vec![0_u8; BATCH + 2 * args.side.payload], 0);
    loop {
        match stream.read(&mut buffer[held..]) {
            Ok(0) => break,
            Ok(got) => held += got,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if seen.result.count > 0 {
                    break;
                }
            }
            Err(e) => return Err(e.into()),
        }
        let mut at = 0;
        while let Some((kind, range)) = packet(&buffer[at..held])? {
            let content = &buffer[at + range.start..at + range.end];
            match kind & 0xf0 {
                PUBLISH => {
                    let body = content.get(2 + TOPIC.len()..).context("a short publication")?;
                    if seen.take(body, args.side.payload)? {
                        return Ok(seen.result());
                    }
                }
                SUBACK => {}
                other => bail!("the broker sends a packet of kind {other:#x}"),
            }
            at += range.end;
        }
        buffer.copy_within(at..held, 0);
        held -= at;
    }
    Ok(seen.result())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_they_were_written_and_not_before_they_are_whole() {
        for len in [0, 1, 127, 128, 16_383, 16_384, 70_000] {
            let mut out = Vec::new();
            put_packet(&mut out, PUBLISH, &[&vec![7; len]]);
            let (kind, range) = packet(&out).expect("a packet").expect("whole");
            assert_eq!((kind, range.len(), range.end), (PUBLISH, len, out.len()));
            assert!(packet(&out[..out.len() - 1]).expect("a packet").is_none());
        }
        assert!(packet(&[PUBLISH, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).is_err());
    }
}

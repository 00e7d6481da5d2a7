//! The text protocol of NATS, as much of it as the comparison needs.

use super::{PartResult, PushPartArgs, SILENCE, Seen};
use anyhow::{Context, Result, bail};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

const HELLO: &[u8] = b"CONNECT {\"verbose\":false,\"pedantic\":false,\"echo\":false}\r\n";
/// What is read or written at once.
const BATCH: usize = 64 << 10;

fn connect(at: &str) -> Result<TcpStream> {
    let stream = TcpStream::connect(at)?;
    stream.set_nodelay(true)?;
    (&stream).write_all(HELLO)?;
    Ok(stream)
}

pub(super) fn publish(args: &PushPartArgs) -> Result<PartResult> {
    let stream = connect(&args.at)?;
    let mut batch: Vec<u8> = Vec::with_capacity(BATCH + args.side.payload);
    let mut to = &stream;
    let head = format!("PUB bench {}\r\n", args.side.payload);
    let put = |batch: &mut Vec<u8>, octets: &[u8]| -> Result<()> {
        batch.extend_from_slice(head.as_bytes());
        batch.extend_from_slice(octets);
        batch.extend_from_slice(b"\r\n");
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
    stream.write_all(b"SUB bench 1\r\n")?;
    stream.set_read_timeout(Some(SILENCE))?;
    let mut seen = Seen::new(&args.side);
    let (mut buffer, mut held) = (vec![0_u8; BATCH + 2 * args.side.payload], 0);
    loop {
        match stream.read(&mut buffer[held..]) {
            // A subscriber that is too slow is turned out.
            Ok(0) => break,
            Ok(got) => held += got,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if seen.result.count > 0 {
                    break;
                }
            }
            Err(e) if e.kind() == ErrorKind::ConnectionReset => break,
            Err(e) => return Err(e.into()),
        }
        let mut at = 0;
        while let Some(used) =
            message(&buffer[at..held], &mut stream, &mut seen, args.side.payload)?
        {
            at += used;
            if seen.is_ended {
                return Ok(seen.result());
            }
        }
        buffer.copy_within(at..held, 0);
        held -= at;
    }
    Ok(seen.result())
}

/// Takes one message of the server; its octets, `None` when it is not whole yet.
fn message(
    octets: &[u8],
    stream: &mut TcpStream,
    seen: &mut Seen,
    payload: usize,
) -> Result<Option<usize>> {
    let Some(end) = octets.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
    let line = &octets[..end];
    if line.starts_with(b"MSG") {
        let len = line.rsplit(|octet| *octet == b' ').next().context("a message has a length")?;
        let len: usize = std::str::from_utf8(len)?.parse()?;
        let start = end + 2;
        let Some(body) = octets.get(start..start + len) else { return Ok(None) };
        if octets.len() < start + len + 2 {
            return Ok(None);
        }
        seen.is_ended = seen.take(body, payload)?;
        return Ok(Some(start + len + 2));
    }
    if line.starts_with(b"PING") {
        stream.write_all(b"PONG\r\n")?;
    } else if line.starts_with(b"-ERR") && !line.windows(4).any(|w| w == b"Slow") {
        bail!("the server says {}", String::from_utf8_lossy(line));
    }
    Ok(Some(end + 2))
}

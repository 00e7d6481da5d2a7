//! As much of WebSocket (RFC 6455) as a client needs that sends and receives whole binary messages.

use std::io::{Error, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub(super) const BINARY: u8 = 2;
pub(super) const CLOSE: u8 = 8;
pub(super) const PING: u8 = 9;
pub(super) const PONG: u8 = 10;

/// Most octets of the answer to the handshake.
const ANSWER_MAX: usize = 4096;

/// Connects and shakes hands.
pub(super) fn connect(to: SocketAddr) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    // The key is nobody's secret: it shows that the other side speaks WebSocket.
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: {to}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut octet = [0];
        stream.read_exact(&mut octet)?;
        answer.push(octet[0]);
        if answer.len() > ANSWER_MAX {
            return Err(Error::other("the answer to the handshake has no end"));
        }
    }
    if !answer.starts_with(b"HTTP/1.1 101 ") {
        let first = String::from_utf8_lossy(&answer);
        return Err(Error::other(first.lines().next().unwrap_or_default().to_owned()));
    }
    Ok(stream)
}

/// A binary message in one frame, as a client sends it.
pub(super) fn message(body: &[u8]) -> Vec<u8> {
    frame(BINARY, body)
}

/// A frame of a client: masked, with a mask of zeros.
pub(super) fn frame(opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0x80 | opcode];
    match u16::try_from(body.len()) {
        Ok(len) if len < 126 => out.push(0x80 | len.to_be_bytes()[1]),
        Ok(len) => {
            out.push(0x80 | 126);
            out.extend(len.to_be_bytes());
        }
        Err(_) => {
            out.push(0x80 | 127);
            out.extend((body.len() as u64).to_be_bytes());
        }
    }
    out.extend([0; 4]);
    out.extend(body);
    out
}

/// Opcode, length of the head and length of the body of the frame at the start, when its head is
/// there. Frames of a server are not masked.
pub(super) fn head(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    let (&[first, second], rest) = bytes.split_first_chunk()?;
    let opcode = first & 0x0f;
    match second & 0x7f {
        126 => Some((opcode, 4, u16::from_be_bytes(*rest.first_chunk()?).into())),
        127 => {
            let len = usize::try_from(u64::from_be_bytes(*rest.first_chunk()?)).ok()?;
            Some((opcode, 10, len))
        }
        len => Some((opcode, 2, len.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_all_three_forms_are_written_and_read() {
        for (len, head_len) in [(0, 2), (125, 2), (126, 4), (65_535, 4), (65_536, 10)] {
            let made = frame(BINARY, &vec![7; len]);
            // What a server would send is the same without mask.
            let mut plain = made.clone();
            plain[1] &= 0x7f;
            assert_eq!(head(&plain), Some((BINARY, head_len, len)));
            assert_eq!(made.len(), head_len + 4 + len);
            assert_eq!(head(&plain[..head_len - 1]), None);
        }
    }
}

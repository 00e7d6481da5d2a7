//! Frames over the socket of a forwarder.

use onym_client::NodeUri;
use onym_wire::tlv;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest frame: a packet and its link fields.
const FRAME_MAX: usize = 9000;
const WRITE_PATIENCE: Duration = Duration::from_secs(5);

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// A connection.
pub(crate) struct Connection {
    stream: Stream,
    buffer: Vec<u8>,
    used: usize,
}

impl Connection {
    pub(crate) fn open(uri: &NodeUri) -> io::Result<Self> {
        let stream = match uri {
            NodeUri::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_write_timeout(Some(WRITE_PATIENCE))?;
                Stream::Unix(stream)
            }
            NodeUri::Tcp(_, host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port))?;
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(WRITE_PATIENCE))?;
                Stream::Tcp(stream)
            }
            _ => return Err(io::Error::other("a router needs the Unix or TCP socket of a node")),
        };
        Ok(Self { stream, buffer: Vec::new(), used: 0 })
    }

    pub(crate) fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Unix(stream) => stream.write_all(frame),
            Stream::Tcp(stream) => stream.write_all(frame),
        }
    }

    /// Waits up to `patience` for octets; `take` gets each whole frame.
    pub(crate) fn receive(
        &mut self,
        patience: Duration,
        take: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        // Zero would be for ever.
        let patience = Some(patience.max(Duration::from_millis(1)));
        let mut chunk = [0; 65_536];
        let read = match &mut self.stream {
            Stream::Unix(stream) => {
                stream.set_read_timeout(patience)?;
                stream.read(&mut chunk)
            }
            Stream::Tcp(stream) => {
                stream.set_read_timeout(patience)?;
                stream.read(&mut chunk)
            }
        };
        let len = match read {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => len,
            Err(e) if is_patience(e.kind()) => return Ok(()),
            Err(e) => return Err(e),
        };
        self.buffer.extend_from_slice(chunk.get(..len).unwrap_or_default());
        loop {
            let rest = self.buffer.get(self.used..).unwrap_or_default();
            let malformed = |e| io::Error::new(io::ErrorKind::InvalidData, e);
            let Some(len) = tlv::frame_len_within(rest, FRAME_MAX).map_err(malformed)? else {
                break;
            };
            let Some(frame) = rest.get(..len) else { break };
            take(frame);
            self.used += len;
        }
        self.buffer.drain(..self.used);
        self.used = 0;
        Ok(())
    }
}

fn is_patience(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

//! One connection to a forwarder, as frames.

use crate::subject::Received;
use crate::wire::tlv::frame_len;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// One connection.
#[derive(Debug)]
pub struct Conn {
    kind: Kind,
    /// Octets of a stream that are no whole frame yet.
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Kind {
    Unix(UnixStream),
    Tcp(TcpStream),
    Udp(UdpSocket),
}

impl Conn {
    /// Connects to a Unix stream socket.
    ///
    /// # Errors
    /// It cannot be connected to.
    pub fn unix(path: &Path) -> Result<Self, String> {
        let stream = UnixStream::connect(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self::new(Kind::Unix(stream)))
    }

    /// Connects over TCP.
    ///
    /// # Errors
    /// It cannot be connected to.
    pub fn tcp(to: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(to).map_err(|e| format!("tcp {to}: {e}"))?;
        let _ = stream.set_nodelay(true);
        Ok(Self::new(Kind::Tcp(stream)))
    }

    /// Binds a UDP socket on the loopback address and aims it at a forwarder.
    ///
    /// # Errors
    /// No socket.
    pub fn udp(to: SocketAddr) -> Result<Self, String> {
        let socket = UdpSocket::bind("127.0.0.1:0").and_then(|s| s.connect(to).map(|()| s));
        Ok(Self::new(Kind::Udp(socket.map_err(|e| format!("udp {to}: {e}"))?)))
    }

    fn new(kind: Kind) -> Self {
        Self { kind, buffer: Vec::new() }
    }

    /// The local port of a UDP socket.
    #[must_use]
    pub fn udp_port(&self) -> Option<u16> {
        match &self.kind {
            Kind::Udp(s) => s.local_addr().ok().map(|a| a.port()),
            _ => None,
        }
    }

    /// Sends one frame.
    ///
    /// # Errors
    /// The socket refuses.
    pub fn send(&mut self, frame: &[u8]) -> Result<(), String> {
        let done = match &mut self.kind {
            Kind::Unix(s) => s.write_all(frame),
            Kind::Tcp(s) => s.write_all(frame),
            Kind::Udp(s) => s.send(frame).map(|_| ()),
        };
        match done {
            // What a forwarder that closed the stream does not take is no error of the script.
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::BrokenPipe
                        | ErrorKind::ConnectionReset
                        | ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(())
            }
            done => done.map_err(|e| format!("send: {e}")),
        }
    }

    /// The next frame, waiting at most `patience`.
    ///
    /// # Errors
    /// The socket fails otherwise than by being closed.
    pub fn receive(&mut self, patience: Duration) -> Result<Received, String> {
        let end = Instant::now() + patience;
        loop {
            if let Some(frame) = self.whole_frame() {
                return Ok(Received::Frame(frame));
            }
            // A timeout of zero would mean none.
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let mut chunk = vec![0; 65_536];
            let got = match &mut self.kind {
                Kind::Unix(s) => s.set_read_timeout(Some(left)).and_then(|()| s.read(&mut chunk)),
                Kind::Tcp(s) => s.set_read_timeout(Some(left)).and_then(|()| s.read(&mut chunk)),
                Kind::Udp(s) => s.set_read_timeout(Some(left)).and_then(|()| s.recv(&mut chunk)),
            };
            match got {
                Ok(0) => return Ok(Received::Closed),
                Ok(n) if matches!(self.kind, Kind::Udp(_)) => {
                    chunk.truncate(n);
                    return Ok(Received::Frame(chunk));
                }
                Ok(n) => self.buffer.extend_from_slice(&chunk[..n]),
                Err(e) => match e.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut if Instant::now() >= end => {
                        return Ok(Received::Nothing);
                    }
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    ErrorKind::ConnectionReset => return Ok(Received::Closed),
                    // An ICMP message about a datagram that nobody took.
                    ErrorKind::ConnectionRefused if Instant::now() < end => {}
                    ErrorKind::ConnectionRefused => return Ok(Received::Nothing),
                    _ => return Err(format!("receive: {e}")),
                },
            }
        }
    }

    fn whole_frame(&mut self) -> Option<Vec<u8>> {
        let len = frame_len(&self.buffer).filter(|n| *n <= self.buffer.len())?;
        let rest = self.buffer.split_off(len);
        Some(std::mem::replace(&mut self.buffer, rest))
    }
}

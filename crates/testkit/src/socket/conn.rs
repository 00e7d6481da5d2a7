//! One connection to a forwarder, as frames.

use super::ws;
use crate::subject::Received;
use crate::wire::tlv::frame_len;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::net::sockopt::Timeout;
use std::collections::VecDeque;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Ports of connections to forwarders that outlive a script.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 12_000;

/// One connection.
#[derive(Debug)]
pub struct Conn {
    kind: Kind,
    /// Octets of a stream that are no whole frame yet.
    buffer: Vec<u8>,
    /// Datagrams that were taken out of the socket early.
    early: VecDeque<Vec<u8>>,
    closed: bool,
}

#[derive(Debug)]
enum Kind {
    Unix(UnixStream),
    Tcp(TcpStream),
    Udp(UdpSocket),
    Pair(UnixDatagram),
    /// WebSocket over TCP.
    Ws(TcpStream),
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

    /// Connects over WebSocket.
    ///
    /// # Errors
    /// It cannot be connected to, or refuses.
    pub fn ws(to: SocketAddr) -> Result<Self, String> {
        let stream = ws::connect(to).map_err(|e| format!("ws {to}: {e}"))?;
        Ok(Self::new(Kind::Ws(stream)))
    }

    /// Binds a UDP socket on the loopback address and aims it at a forwarder.
    ///
    /// # Errors
    /// No socket.
    pub fn udp(to: SocketAddr) -> Result<Self, String> {
        let socket = UdpSocket::bind("127.0.0.1:0").and_then(|s| s.connect(to).map(|()| s));
        Ok(Self::new(Kind::Udp(socket.map_err(|e| format!("udp {to}: {e}"))?)))
    }

    /// As [`Conn::udp`], from a port that no other connection of this run had: a forwarder that
    /// outlives a script may still know a port's last user.
    ///
    /// # Errors
    /// No socket.
    pub fn udp_from_new_port(to: SocketAddr) -> Result<Self, String> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let start = u16::try_from(std::process::id() % 500).unwrap_or(0) * 16;
        for _ in 0..PORTS {
            // Below the ports that the system gives out.
            let n = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(start);
            let socket = UdpSocket::bind(("127.0.0.1", FIRST_PORT + n % PORTS));
            if let Ok(socket) = socket.and_then(|s| s.connect(to).map(|()| s)) {
                return Ok(Self::new(Kind::Udp(socket)));
            }
        }
        Err(format!("udp {to}: no port"))
    }

    fn new(kind: Kind) -> Self {
        Self { kind, buffer: Vec::new(), early: VecDeque::new(), closed: false }
    }

    /// One end of a pair of datagram sockets.
    #[must_use]
    pub fn pair(socket: UnixDatagram) -> Self {
        Self::new(Kind::Pair(socket))
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
            Kind::Pair(s) => s.send(frame).map(|_| ()),
            Kind::Ws(s) => s.write_all(&ws::message(frame)),
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
            if let Some(frame) = self.early.pop_front().or_else(|| self.whole_frame()) {
                return Ok(Received::Frame(frame));
            }
            if self.closed {
                return Ok(Received::Closed);
            }
            // A timeout of zero would mean none.
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            match self.take(Some(left)) {
                Ok(()) => {}
                Err(e) => match e.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut if Instant::now() >= end => {
                        return Ok(Received::Nothing);
                    }
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    // An ICMP message about a datagram that nobody took.
                    ErrorKind::ConnectionRefused if Instant::now() < end => {}
                    ErrorKind::ConnectionRefused => return Ok(Received::Nothing),
                    _ => return Err(format!("receive: {e}")),
                },
            }
        }
    }

    /// Takes everything that is there out of the socket.
    pub fn drain(&mut self) {
        while !self.closed && self.take(None).is_ok() {}
    }

    /// Reads once, waiting at most `patience`, or not at all.
    fn take(&mut self, patience: Option<Duration>) -> std::io::Result<()> {
        let mut chunk = vec![0; 65_536];
        let (fd, flags) = (self.fd(), patience.map_or(RecvFlags::DONTWAIT, |_| RecvFlags::empty()));
        if let Some(patience) = patience {
            rustix::net::sockopt::set_socket_timeout(fd, Timeout::Recv, Some(patience))?;
        }
        match rustix::net::recv(fd, &mut chunk, flags) {
            Ok((0, _)) if self.is_stream() => self.closed = true,
            Ok((n, _)) if self.is_stream() => self.buffer.extend_from_slice(&chunk[..n]),
            Ok((n, _)) => {
                chunk.truncate(n);
                self.early.push_back(chunk);
            }
            Err(Errno::CONNRESET) => self.closed = true,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Unix(s) => s.as_fd(),
            Kind::Tcp(s) => s.as_fd(),
            Kind::Udp(s) => s.as_fd(),
            Kind::Pair(s) => s.as_fd(),
            Kind::Ws(s) => s.as_fd(),
        }
    }

    fn is_stream(&self) -> bool {
        matches!(self.kind, Kind::Unix(_) | Kind::Tcp(_) | Kind::Ws(_))
    }

    fn whole_frame(&mut self) -> Option<Vec<u8>> {
        if matches!(self.kind, Kind::Ws(_)) {
            return self.whole_message();
        }
        let len = frame_len(&self.buffer).filter(|n| *n <= self.buffer.len())?;
        Some(self.buffer.drain(..len).collect())
    }

    /// The next binary message; pings are answered, a closing ends the connection.
    fn whole_message(&mut self) -> Option<Vec<u8>> {
        while let Some((opcode, head, len)) = ws::head(&self.buffer) {
            if self.buffer.len() < head + len {
                return None;
            }
            let body = self.buffer[head..head + len].to_vec();
            self.buffer.drain(..head + len);
            match (opcode, &mut self.kind) {
                (ws::BINARY, _) => return Some(body),
                (ws::CLOSE, _) => self.closed = true,
                (ws::PING, Kind::Ws(s)) => drop(s.write_all(&ws::frame(ws::PONG, &body))),
                _ => {}
            }
        }
        None
    }
}

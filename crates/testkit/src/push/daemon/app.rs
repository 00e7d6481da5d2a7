//! An application of a push script: the octets of its connection, read and written here without
//! the client library.

use onym_wire::push::app::{Message, PIECE_MAX, kind};
use onym_wire::push::{Id, Kind};
use onym_wire::tlv::frame_len;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A connection that is registered.
pub(super) struct App {
    stream: UnixStream,
    socket: PathBuf,
    node: String,
    received: Vec<u8>,
    heard: VecDeque<Heard>,
    partial: Option<(Id, Vec<u8>)>,
}

/// A message of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heard {
    kind: Kind,
    tag: u32,
    status: u8,
    pub(super) id: Id,
    pub(super) payload: Vec<u8>,
    pub(super) local: u64,
    pub(super) frames: u64,
    number: u64,
}

impl Heard {
    pub(super) fn is(&self, kind: Kind) -> bool {
        self.kind == kind
    }

    pub(super) fn is_event(&self, word: &str) -> bool {
        let kind = match word {
            "start" => Kind::START,
            "stop" => Kind::STOP,
            "scope" => Kind::SCOPE_PUBLISHED,
            "unscope" => Kind::SCOPE_UNPUBLISHED,
            "overdue" => kind::OVERDUE,
            _ => return false,
        };
        self.kind == kind
    }

    pub(super) fn status_is(&self, number: &str) -> bool {
        self.status.to_string() == number
    }

    pub(super) fn number_is(&self, number: &str) -> bool {
        self.number.to_string() == number
    }

    pub(super) fn is_status(&self, tag: u32, number: &str) -> bool {
        self.is(kind::STATUS) && self.tag == tag && self.status_is(number)
    }

    /// In the words of scripts.
    pub(super) fn show(&self) -> String {
        let Self { kind: of, id, status, payload, number, .. } = self;
        match *of {
            kind::STATUS => format!("status {status}"),
            kind::DATA => match std::str::from_utf8(payload) {
                Ok(text) if text.len() <= 40 => format!("data {id} text={text}"),
                _ => format!("data {id} size={}", payload.len()),
            },
            kind::MISSED => format!("missed {number}"),
            kind::OVERDUE => format!("overdue {id}"),
            Kind::START => format!("start {id}"),
            Kind::STOP => format!("stop {id}"),
            Kind::SCOPE_PUBLISHED => format!("scope {id}"),
            Kind::SCOPE_UNPUBLISHED => format!("unscope {id}"),
            other => format!("kind {}", other.0),
        }
    }
}

impl App {
    /// Connects and registers.
    pub(super) fn open(socket: &Path, node: &str, patience: Duration) -> Result<Self, String> {
        let stream = UnixStream::connect(socket).map_err(|e| e.to_string())?;
        let mut app = Self {
            stream,
            socket: socket.to_owned(),
            node: node.to_owned(),
            received: Vec::new(),
            heard: VecDeque::new(),
            partial: None,
        };
        app.send(&Message::new(kind::REGISTER, 0))?;
        match app.next(patience)? {
            Some(heard) if heard.is(kind::REGISTERED) => Ok(app),
            other => Err(format!("not registered at {node}: {other:?}")),
        }
    }

    /// Ends the connection and makes a new one.
    pub(super) fn leave(&mut self) -> Result<(), String> {
        let (socket, node) = (self.socket.clone(), self.node.clone());
        let leave = Message::new(kind::LEAVE, 0);
        self.send(&leave)?;
        *self = Self::open(&socket, &node, Duration::from_secs(30))?;
        Ok(())
    }

    /// The name of its node.
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    pub(super) fn send(&mut self, message: &Message<'_>) -> Result<(), String> {
        let mut result = Ok(());
        message.write_pieces(PIECE_MAX, |octets| {
            if result.is_ok() {
                result = self.stream.write_all(octets).map_err(|e| e.to_string());
            }
        });
        result
    }

    /// The next message within `patience`.
    pub(super) fn next(&mut self, patience: Duration) -> Result<Option<Heard>, String> {
        let until = Instant::now() + patience;
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Ok(Some(heard));
            }
            if !self.receive(until)? {
                return Ok(None);
            }
        }
    }

    /// The answer with this tag; what comes before it waits.
    pub(super) fn answer(&mut self, tag: u32, patience: Duration) -> Result<Heard, String> {
        let until = Instant::now() + patience;
        loop {
            let is_it = |h: &Heard| h.is(kind::STATUS) && h.tag == tag;
            if let Some(at) = self.heard.iter().position(is_it) {
                return self.heard.remove(at).ok_or_else(|| "no answer".into());
            }
            if !self.receive(until)? {
                return Err("no answer came".into());
            }
        }
    }

    /// Reads once; whether there was time.
    fn receive(&mut self, until: Instant) -> Result<bool, String> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        self.stream.set_read_timeout(Some(left)).map_err(|e| e.to_string())?;
        let mut octets = [0; 65_536];
        match self.stream.read(&mut octets) {
            Ok(0) => return Err("the node ended the connection".into()),
            Ok(n) => self.received.extend_from_slice(&octets[..n]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(false);
            }
            Err(e) => return Err(e.to_string()),
        }
        while let Some(len) = frame_len(&self.received).map_err(|e| e.to_string())? {
            if len > self.received.len() {
                break;
            }
            let octets: Vec<u8> = self.received.drain(..len).collect();
            self.message(&octets)?;
        }
        Ok(true)
    }

    fn message(&mut self, octets: &[u8]) -> Result<(), String> {
        let message = Message::parse(octets).map_err(|e| e.to_string())?;
        let mut heard = Heard {
            kind: message.kind,
            tag: message.tag,
            status: message.status.map_or(0, |s| s.0),
            id: message.id(),
            payload: message.payload.to_vec(),
            local: message.local,
            frames: message.frames,
            number: message.number,
        };
        if let Some(piece) = message.piece().map_err(|e| e.to_string())? {
            if piece.offset == 0 {
                self.partial = Some((message.id(), Vec::new()));
            }
            let Some((id, whole)) = &mut self.partial else {
                return Err("a piece without a first one".into());
            };
            if whole.len() as u64 != piece.offset {
                return Err("a piece that does not follow the one before".into());
            }
            whole.extend_from_slice(message.payload);
            if (whole.len() as u64) < piece.length {
                return Ok(());
            }
            (heard.id, heard.payload) = (id.clone(), std::mem::take(whole));
            self.partial = None;
        }
        self.heard.push_back(heard);
        Ok(())
    }
}

//! A face whose frames are written to a pcapng file that Wireshark opens.
//!
//! Link type 113 (Linux cooked capture), protocol 0x8624; the packet type says the direction.
//! Each face is an interface of the capture, named by its URIs.

use super::delegate;
use crate::FaceError;
use crate::face::{Counters, Face, Flush, Ready};
use onym_frame::{BufPool, RxFrame, TxQueue};
use rustix::fd::BorrowedFd;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// `LINKTYPE_LINUX_SLL`.
const LINK_TYPE: u16 = 113;
/// EtherType of NDN.
const PROTOCOL: u16 = 0x8624;

/// Which way a frame went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Received by us.
    In,
    /// Sent by us.
    Out,
}

/// A capture file that several faces write.
///
/// When writing fails the capture ends and says so once in the log; faces go on.
pub struct Capture {
    out: Option<Box<dyn Write + Send>>,
    interfaces: u32,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("interfaces", &self.interfaces).finish_non_exhaustive()
    }
}

/// A block of a pcapng file: type, length, body padded to 4 octets, length again.
fn block(typ: u32, body: &[u8]) -> Vec<u8> {
    let padding = body.len().next_multiple_of(4) - body.len();
    let len = u32::try_from(12 + body.len() + padding).expect("invariant: blocks are short");
    let mut out = Vec::with_capacity(12 + body.len() + padding);
    out.extend(typ.to_le_bytes());
    out.extend(len.to_le_bytes());
    out.extend(body);
    out.extend(&[0; 3][..padding]);
    out.extend(len.to_le_bytes());
    out
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(code.to_le_bytes());
    out.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

impl Capture {
    /// Starts a capture in `out`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: Box<dyn Write + Send>) -> io::Result<Self> {
        let mut body = Vec::new();
        body.extend(0x1A2B_3C4D_u32.to_le_bytes());
        body.extend([1, 0, 0, 0]); // version 1.0
        body.extend(u64::MAX.to_le_bytes()); // length of the section: not known
        out.write_all(&block(0x0A0D_0D0A, &body))?;
        Ok(Self { out: Some(out), interfaces: 0 })
    }

    /// Declares an interface and returns its number.
    fn interface(&mut self, name: &str) -> u32 {
        let mut body = Vec::new();
        body.extend(LINK_TYPE.to_le_bytes());
        body.extend([0, 0]);
        body.extend(0_u32.to_le_bytes()); // whole frames
        body.extend(option(2, name.as_bytes()));
        body.extend(option(9, &[9])); // times in nanoseconds
        body.extend(option(0, &[]));
        self.write(&block(1, &body));
        self.interfaces += 1;
        self.interfaces - 1
    }

    fn frame(&mut self, interface: u32, direction: Direction, parts: &[&[u8]]) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let mut frame = Vec::with_capacity(16 + parts.iter().map(|p| p.len()).sum::<usize>());
        let packet_type: u16 = if direction == Direction::In { 0 } else { 4 };
        frame.extend(packet_type.to_be_bytes());
        frame.extend(0xFFFE_u16.to_be_bytes()); // no hardware
        frame.extend([0; 10]); // no address
        frame.extend(PROTOCOL.to_be_bytes());
        parts.iter().for_each(|p| frame.extend(*p));
        let len = u32::try_from(frame.len()).unwrap_or(u32::MAX).to_le_bytes();
        let mut body = Vec::with_capacity(20 + frame.len());
        body.extend(interface.to_le_bytes());
        #[allow(clippy::cast_possible_truncation)] // the two halves
        let (high, low) = ((nanos >> 32) as u32, nanos as u32);
        body.extend(high.to_le_bytes());
        body.extend(low.to_le_bytes());
        body.extend(len);
        body.extend(len);
        body.extend(frame);
        self.write(&block(6, &body));
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(Err(error)) = self.out.as_mut().map(|out| out.write_all(bytes)) {
            tracing::warn!(%error, "capture stopped: its file cannot be written");
            self.out = None;
        }
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// Those of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// A face that is captured.
#[derive(Debug)]
pub struct PcapFace {
    inner: Box<dyn Face>,
    capture: Arc<Mutex<Capture>>,
    interface: u32,
}

impl PcapFace {
    /// Wraps `inner`; its frames go to `capture`.
    #[must_use]
    pub fn new(inner: Box<dyn Face>, capture: Arc<Mutex<Capture>>) -> Self {
        let name = format!("{} {}", inner.local_uri(), inner.remote_uri());
        let interface = capture.lock().unwrap_or_else(PoisonError::into_inner).interface(&name);
        Self { inner, capture, interface }
    }
}

impl Face for PcapFace {
    delegate!(inner);

    fn fd(&self) -> BorrowedFd<'_> {
        self.inner.fd()
    }

    fn receive(
        &mut self,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        let before = out.len();
        let result = self.inner.receive(pool, budget, out);
        let mut capture = self.capture.lock().unwrap_or_else(PoisonError::into_inner);
        for frame in &out[before..] {
            capture.frame(self.interface, Direction::In, &[&frame.bytes]);
        }
        result
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        // Only what the transport took is written: a frame that has to wait is offered again.
        let frames: Vec<Vec<u8>> = queue.iter().map(|(a, b)| [a, b].concat()).collect();
        let result = self.inner.flush(queue);
        let taken = frames.len() - queue.len();
        let mut capture = self.capture.lock().unwrap_or_else(PoisonError::into_inner);
        for frame in &frames[..taken] {
            capture.frame(self.interface, Direction::Out, &[frame]);
        }
        result
    }

    fn queue_octets(&self) -> usize {
        self.inner.queue_octets()
    }

    fn is_pressed(&self) -> bool {
        self.inner.is_pressed()
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }
}

//! Frames into datagrams: runs of equal length leave as one segmented message.

use super::UdpOptions;
use crate::face::Flush;
use crate::{Counters, FaceError};
use arrayvec::ArrayVec;
use onym_frame::{TxPlace, TxQueue};
use onym_sys::mmsg::{self, BATCH_MAX, Message, SEGMENTS_MAX};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::io::{self, IoSlice};

/// Pieces per system call.
const PIECES_MAX: usize = 256;
/// Octets that a segmented message may hold: an IPv4 datagram less its headers, rounded down.
const SEGMENTED_MAX: usize = 65_000;

/// What a socket has learnt about segmented sends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offload {
    /// Longest segment that the route takes; 0 when segmented sends are off.
    segment_max: usize,
    /// The last answer was that something is too long, for the first time. The system says so once after
    /// an ICMP message, which anybody can forge, of whatever is sent next; where it is true it says so
    /// again.
    is_doubtful: bool,
}

impl Offload {
    pub(super) fn new(options: &UdpOptions) -> Self {
        Self { segment_max: if options.offload { SEGMENTED_MAX } else { 0 }, is_doubtful: false }
    }
}

/// One planned message: frames and pieces.
struct Planned {
    pieces: std::ops::Range<usize>,
    frames: usize,
    segment_len: u16,
}

/// Sends until the queue is empty or the socket is full.
pub(super) fn flush(
    fd: BorrowedFd<'_>,
    queue: &mut TxQueue,
    offload: &mut Offload,
    counters: &mut Counters,
) -> Result<Flush, FaceError> {
    while !queue.is_empty() {
        match burst(fd, queue, *offload) {
            Ok(frames) => {
                offload.is_doubtful = false;
                queue.pop(frames);
            }
            Err((e, _)) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Flush::Blocked),
            Err((e, segment_len)) => refused(&e, segment_len, queue, offload, counters)?,
        }
    }
    Ok(Flush::Done)
}

/// Sends one batch; how many frames were taken, or the error of the first message with its segment
/// length (0: a lone frame).
fn burst(
    fd: BorrowedFd<'_>,
    queue: &TxQueue,
    offload: Offload,
) -> Result<usize, (io::Error, usize)> {
    let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
    let mut planned: ArrayVec<Planned, BATCH_MAX> = ArrayVec::new();
    let (mut at, mut used) = (TxPlace::default(), 0);
    while !planned.is_full() {
        let (frames, segment_len) = run(queue, at, offload);
        let gathered = queue.gather(at, frames, &mut pieces[used..]);
        if gathered.frames == 0 {
            break;
        }
        let end = used + gathered.slices;
        let segment_len = if gathered.frames > 1 { segment_len } else { 0 };
        planned.push(Planned { pieces: used..end, frames: gathered.frames, segment_len });
        used = end;
        at = gathered.next;
    }
    let messages: ArrayVec<Message<'_>, BATCH_MAX> = planned
        .iter()
        .map(|p| Message { parts: &pieces[p.pieces.clone()], segment_len: p.segment_len })
        .collect();
    match mmsg::send(fd, &messages) {
        Ok(sent) => Ok(planned[..sent].iter().map(|p| p.frames).sum()),
        Err(e) => Err((e, planned.first().map_or(0, |p| usize::from(p.segment_len)))),
    }
}

/// How many frames from `at` on can leave as one segmented message: all as long as the first, the
/// last one perhaps shorter.
fn run(queue: &TxQueue, at: TxPlace, offload: Offload) -> (usize, u16) {
    let mut lens = queue.lens(at);
    let Some((len, first)) = lens.next() else { return (0, 0) };
    let Ok(segment_len) = u16::try_from(len) else { return (1, 0) };
    if len > offload.segment_max || len == 0 {
        return (1, 0);
    }
    let most = SEGMENTS_MAX.min(SEGMENTED_MAX / len);
    let (mut frames, mut behind) = (first.min(most), first);
    for (next, count) in lens {
        let is_end = frames < behind || frames == SEGMENTS_MAX;
        if is_end || next > len || frames * len + next > SEGMENTED_MAX {
            break;
        }
        if next < len {
            frames += 1;
            break;
        }
        behind += count;
        frames = behind.min(most);
    }
    (frames, segment_len)
}

/// The first message was refused: learn from it, or give its frame up.
fn refused(
    e: &io::Error,
    segment_len: usize,
    queue: &mut TxQueue,
    offload: &mut Offload,
    counters: &mut Counters,
) -> Result<(), FaceError> {
    let errno = Errno::from_io_error(e);
    if errno == Some(Errno::MSGSIZE) {
        offload.is_doubtful = !offload.is_doubtful;
        if offload.is_doubtful {
            return Ok(());
        }
    }
    match errno {
        Some(Errno::INVAL | Errno::MSGSIZE) if segment_len > 0 => {
            // The route's MTU is below the segment: such frames go one by one from now on.
            offload.segment_max = segment_len - 1;
            Ok(())
        }
        Some(Errno::IO | Errno::OPNOTSUPP) if segment_len > 0 => {
            // The device cannot checksum: no segmented sends at all.
            offload.segment_max = 0;
            Ok(())
        }
        Some(Errno::MSGSIZE) => {
            counters.out_too_long += 1;
            queue.pop(1);
            Ok(())
        }
        Some(Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::NETDOWN) => {
            counters.out_refused += 1;
            queue.pop(1);
            Err(FaceError::Unreachable(io::Error::from_raw_os_error(
                e.raw_os_error().unwrap_or_default(),
            )))
        }
        Some(Errno::NOBUFS | Errno::PERM | Errno::ACCESS | Errno::ADDRNOTAVAIL) => {
            // The device queue is full, a packet filter said no, or our address is not usable yet:
            // this frame is lost, the face is not.
            counters.out_refused += 1;
            queue.pop(1);
            Ok(())
        }
        _ => Err(FaceError::io(
            "sending a datagram",
            io::Error::from_raw_os_error(e.raw_os_error().unwrap_or_default()),
        )),
    }
}

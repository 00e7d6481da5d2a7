//! The bytes of a cached packet: copied when small, shared when large, unless sharing would keep
//! much more memory than the packet has.

use onym_frame::Buf;

/// A Data up to this length is copied when it is cached, so that it does not pin its receive
/// buffer; a longer one shares it with the packets that came in the same read.
pub const SMALL_LEN_MAX: usize = 2048;

/// A longer one is copied too when it would pin more than so many times its own length: a packet
/// that came alone into a chunk made for many. That happens when packets are few, and costs one
/// allocation then.
const PINNED_MAX: usize = 2;

/// Whether the part of its chunk that `data` keeps alive is out of proportion.
#[inline]
fn pins_too_much(data: &Buf) -> bool {
    let room = PINNED_MAX * data.len();
    // The pool holds one reference itself; a chunk without a pool is as long as its packet.
    data.chunk_len() > room && data.chunk_len() > room * (data.sharers() - 1).max(1)
}

const STEP: usize = 64;
const CLASSES: usize = SMALL_LEN_MAX / STEP + 1;

/// Octets of unused buffers that are kept for the next packets.
const POOL_OCTETS_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) enum Stored {
    #[default]
    Nothing,
    /// In a buffer of a size class, `len` octets used.
    Small(Box<[u8]>, u16),
    Shared(Buf),
}

/// The bytes of a cached Data.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    /// Copied into the store; to be copied out.
    Small(&'a [u8]),
    /// Shared with whoever received it.
    Shared(&'a Buf),
}

impl Body<'_> {
    /// The octets.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Small(bytes) => bytes,
            Self::Shared(buf) => buf,
        }
    }
}

impl Stored {
    #[inline]
    fn large(data: &Buf) -> Self {
        Self::Shared(if pins_too_much(data) { Buf::copy_from(data) } else { data.clone() })
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Small(_, len) => usize::from(*len),
            Self::Shared(buf) => buf.len(),
        }
    }

    pub(super) const fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    #[inline]
    pub(super) fn body(&self) -> Body<'_> {
        match self {
            Self::Nothing => Body::Small(&[]),
            Self::Small(buf, len) => Body::Small(&buf[..*len as usize]),
            Self::Shared(buf) => Body::Shared(buf),
        }
    }

    /// The octets, and behind them what is left of the buffer.
    #[inline(always)]
    pub(super) fn room(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::Small(buf, _) => buf,
            Self::Shared(buf) => buf,
        }
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::Small(buf, len) => &buf[..*len as usize],
            Self::Shared(buf) => buf,
        }
    }
}

/// Buffers of small packets, by length in steps of 64 octets.
#[derive(Debug)]
pub(super) struct Pool {
    free: [Vec<Box<[u8]>>; CLASSES],
    octets: usize,
}

impl Pool {
    pub(super) fn new() -> Self {
        Self { free: [const { Vec::new() }; CLASSES], octets: 0 }
    }

    /// Stores `data` in `to`, in the buffer that is there if it is of the right class.
    // Such a buffer has at most 2048 octets.
    #[allow(clippy::cast_possible_truncation)]
    #[inline(always)]
    pub(super) fn store(&mut self, data: &Buf, to: &mut Stored) {
        let class = data.len().div_ceil(STEP);
        match to {
            Stored::Small(buf, len) if buf.len() == class * STEP => {
                buf[..data.len()].copy_from_slice(data);
                *len = data.len() as u16;
            }
            Stored::Shared(_) if class >= CLASSES => *to = Stored::large(data),
            _ => self.store_anew(data, class, to),
        }
    }

    /// The same where there is no such buffer.
    #[inline(never)]
    fn store_anew(&mut self, data: &Buf, class: usize, to: &mut Stored) {
        self.release(std::mem::take(to));
        let len = match u16::try_from(data.len()) {
            Ok(len) if class < CLASSES => len,
            _ => {
                *to = Stored::large(data);
                return;
            }
        };
        let mut buf = match self.free[class].pop() {
            Some(buf) => {
                self.octets -= buf.len();
                buf
            }
            None => vec![0; class * STEP].into_boxed_slice(),
        };
        buf[..data.len()].copy_from_slice(data);
        *to = Stored::Small(buf, len);
    }

    pub(super) fn release(&mut self, stored: Stored) {
        if let Stored::Small(buf, _) = stored
            && self.octets + buf.len() <= POOL_OCTETS_MAX
        {
            self.octets += buf.len();
            self.free[buf.len() / STEP].push(buf);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_frame::BufPool;

    const LEN: usize = 8000;

    /// So many packets of `LEN` octets that came in one read of 64 KiB.
    fn read(pool: &mut BufPool, packets: usize) -> Vec<Buf> {
        let chunk = pool.take();
        let whole = pool.freeze(chunk);
        (0..packets).map(|n| whole.slice(n * LEN..(n + 1) * LEN)).collect()
    }

    fn kept(stored: &Stored) -> usize {
        let Stored::Shared(buf) = stored else { return 0 };
        buf.chunk_len()
    }

    #[test]
    fn a_large_packet_that_came_alone_does_not_keep_its_chunk() {
        let mut receive = BufPool::new(1 << 16, 4);
        let mut pool = Pool::new();
        let packets = read(&mut receive, 1);
        let mut stored = Stored::Nothing;
        pool.store(&packets[0], &mut stored);
        assert_eq!((kept(&stored), stored.bytes().len()), (LEN, LEN));
    }

    #[test]
    fn packets_that_came_together_share_their_chunk() {
        let mut receive = BufPool::new(1 << 16, 4);
        let mut pool = Pool::new();
        let packets = read(&mut receive, 8);
        let store = |data| {
            let mut stored = Stored::Nothing;
            pool.store(data, &mut stored);
            stored
        };
        let stored: Vec<Stored> = packets.iter().map(store).collect();
        assert!(stored.iter().all(|stored| kept(stored) == 1 << 16));
    }
}

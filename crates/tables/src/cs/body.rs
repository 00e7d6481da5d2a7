//! The bytes of a cached packet: copied when small, shared when large.

use onym_wire::Buf;

/// A Data up to this length is copied when it is cached, so that it does not pin its receive
/// buffer; a longer one shares it.
pub const SMALL_LEN_MAX: usize = 2048;

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

    #[inline(always)]
    pub(super) fn store(&mut self, data: &Buf) -> Stored {
        let Ok(len) = u16::try_from(data.len()) else { return Stored::Shared(data.clone()) };
        if data.len() > SMALL_LEN_MAX {
            return Stored::Shared(data.clone());
        }
        let class = data.len().div_ceil(STEP);
        let mut buf = match self.free[class].pop() {
            Some(buf) => {
                self.octets -= buf.len();
                buf
            }
            None => vec![0; class * STEP].into_boxed_slice(),
        };
        buf[..data.len()].copy_from_slice(data);
        Stored::Small(buf, len)
    }

    #[inline(always)]
    pub(super) fn release(&mut self, stored: Stored) {
        if let Stored::Small(buf, _) = stored
            && self.octets + buf.len() <= POOL_OCTETS_MAX
        {
            self.octets += buf.len();
            self.free[buf.len() / STEP].push(buf);
        }
    }
}

//! Identifiers and time as the data path sees them.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Add;
use std::time::Duration;

/// A face of the node, numbered as NFD does: 0 invalid, 1 management, 254 content store, 255 null,
/// others from 256 upward and never used again while the node runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaceId(pub u32);

impl FaceId {
    /// No face.
    pub const INVALID: Self = Self(0);
    /// The management face.
    pub const INTERNAL: Self = Self(1);
    /// The content store, as the incoming face of Data that it answers with.
    pub const CONTENT_STORE: Self = Self(254);
    /// The face that drops what it is given.
    pub const NULL: Self = Self(255);
    /// The first number given to an ordinary face.
    pub const FIRST: Self = Self(256);

    /// As link-layer fields write it; `None` for [`FaceId::INVALID`].
    #[inline(always)]
    #[must_use]
    pub fn told(self) -> Option<NonZeroU64> {
        NonZeroU64::new(u64::from(self.0))
    }

    /// The face that a link-layer field names; [`FaceId::INVALID`] for what cannot be one.
    #[must_use]
    pub fn of_told(number: NonZeroU64) -> Self {
        u32::try_from(number.get()).map_or(Self::INVALID, Self)
    }
}

impl fmt::Debug for FaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "face {}", self.0)
    }
}

impl fmt::Display for FaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A moment, in nanoseconds since an origin that the shell chose. The data path owns no clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Tick(pub u64);

impl Tick {
    /// A moment that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment `ms` milliseconds after the origin.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// Time from `earlier` to this moment; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment `ms` milliseconds later, at most [`Tick::NEVER`].
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms.saturating_mul(1_000_000)))
    }
}

impl Add<Duration> for Tick {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }
}

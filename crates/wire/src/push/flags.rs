//! The flags of a frame, which are for caches (P-87). They stand in front of the forwarding part and
//! are not signed.

use std::time::Duration;

/// The octet of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

/// The age of what a cache answers with counts in so many parts of its lifetime.
const PARTS: u128 = 64;

impl Flags {
    /// None: no cache keeps the frame.
    pub const NONE: Self = Self(0);
    /// Caches may keep the frame: it is a fragment of a publication with a lifetime.
    pub const KEEP: Self = Self(1);
    /// A cache sent it.
    const CACHED: u8 = 2;

    /// Those of a frame.
    #[must_use]
    #[inline]
    pub fn of(frame: &[u8]) -> Self {
        Self(frame.get(place(frame)).copied().unwrap_or(0))
    }

    /// Writes them into a frame.
    pub fn put(self, frame: &mut [u8]) {
        let at = place(frame);
        if let Some(flags) = frame.get_mut(at) {
            *flags = self.0;
        }
    }

    /// Those of what a cache answers with, of which so much of its lifetime is left; `None`: it is
    /// over. An age is rounded up, so nothing lives longer for having been in many caches.
    #[must_use]
    pub fn aged(lifetime: Duration, left: Duration) -> Option<Self> {
        let age = lifetime.saturating_sub(left).as_nanos() * PARTS;
        let age = age.div_ceil(lifetime.as_nanos().max(1));
        let age = u8::try_from(age).ok().filter(|age| u128::from(*age) < PARTS)?;
        Some(Self(age << 2 | Self::CACHED | Self::KEEP.0))
    }

    /// What is left of a lifetime.
    #[must_use]
    pub fn left(self, lifetime: Duration) -> Duration {
        let parts = u32::from(64 - self.age());
        lifetime / 64 * parts
    }

    /// How much of its lifetime is over, in parts of 64.
    #[must_use]
    pub const fn age(self) -> u8 {
        self.0 >> 2
    }

    /// Whether caches may keep the frame.
    #[must_use]
    pub const fn may_keep(self) -> bool {
        self.0 & Self::KEEP.0 != 0
    }

    /// Whether a cache sent the frame.
    #[must_use]
    pub const fn is_cached(self) -> bool {
        self.0 & Self::CACHED != 0
    }
}

/// Where the flags stand: TYPE, a LENGTH of one octet or of three, version and form, hop limit and
/// strategy come before them.
#[inline]
fn place(frame: &[u8]) -> usize {
    if frame.get(1).is_some_and(|len| *len < 253) { 5 } else { 7 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::{Frame, FrameBuilder, Route, RouteBuf, Strategy};

    #[test]
    fn flags_are_found_in_short_frames_and_in_long_ones() {
        for len in [0, 300] {
            let (ids, payload) = (["/1/2".parse().unwrap()], vec![7; len]);
            let route = RouteBuf::from(Route::Link);
            let (hop_limit, strategy) = (9, Strategy::ALGORITHMIC_DOMAIN);
            let (ids, payload, route) = (&ids[..], &payload[..], &route);
            let mut frame = Vec::new();
            FrameBuilder { hop_limit, strategy, route, ids, options: &[], payload }
                .write(&mut frame);
            assert_eq!(Flags::of(&frame), Flags::NONE);
            let before = frame.clone();
            Flags::KEEP.put(&mut frame);
            assert_eq!(Flags::of(&frame), Flags::KEEP);
            assert_eq!(Frame::parse(&frame), Frame::parse(&before));
            Flags::NONE.put(&mut frame);
            assert_eq!(frame, before);
        }
        assert_eq!(Flags::of(&[]), Flags::NONE);
    }

    #[test]
    fn an_age_is_rounded_up_until_the_lifetime_is_over() {
        let ms = Duration::from_millis;
        let of = |left| Flags::aged(ms(64_000), ms(left)).map(|flags| flags.left(ms(64_000)));
        assert_eq!(of(64_000), Some(ms(64_000)));
        assert_eq!(of(63_999), Some(ms(63_000)));
        assert_eq!(of(1000), Some(ms(1000)));
        assert_eq!((of(999), of(0)), (None, None));
        let flags = Flags::aged(ms(100), ms(50)).expect("half of it is left");
        assert!(flags.may_keep() && flags.is_cached() && !Flags::KEEP.is_cached());
    }
}

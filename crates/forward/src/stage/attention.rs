//! Whether somebody looks at a packet that was taken in.

/// Counts packets down to the next sample, and notes whether the forwarder met something that is watched.
/// Both are one number: a single test tells that a packet is neither.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attention {
    /// Packets that are left; negative once something was met.
    left: i64,
}

impl Attention {
    const MET: i64 = i64::MIN;
    /// Nobody looks.
    pub(crate) const NONE: Self = Self { left: i64::MAX };

    /// After so many packets somebody looks. What was met is forgotten.
    pub(crate) fn after(packets: u64) -> Self {
        Self { left: i64::try_from(packets).unwrap_or(i64::MAX) }
    }

    /// Something was met.
    #[inline(always)]
    pub(crate) const fn meet(&mut self) {
        self.left |= Self::MET;
    }

    #[inline(always)]
    pub(crate) const fn has_met(self) -> bool {
        self.left < 0
    }

    pub(crate) const fn forget_met(&mut self) {
        self.left &= !Self::MET;
    }

    /// Counts a packet; whether it was the last one, or something was met.
    #[inline(always)]
    pub(crate) const fn is_due(&mut self) -> bool {
        self.left = self.left.wrapping_sub(1);
        self.left <= 0
    }

    /// Packets that are left.
    pub(crate) const fn left(self) -> u64 {
        (self.left & !Self::MET).unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: it is due when as many packets came, and where something was met, which costs no count.
    #[test]
    fn it_is_due_by_the_count_and_by_what_was_met() {
        let mut attention = Attention::after(3);
        assert!(!attention.is_due() && attention.left() == 2);
        attention.meet();
        assert!(attention.is_due() && attention.has_met() && attention.left() == 1);
        attention.forget_met();
        assert!(attention.is_due() && !attention.has_met() && attention.left() == 0);
        let mut none = Attention::NONE;
        assert!(!none.is_due() && !Attention::after(u64::MAX).is_due());
        none.meet();
        assert!(none.is_due() && none.has_met());
    }
}

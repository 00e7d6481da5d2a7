//! Whether somebody looks at a packet that was taken in.

/// Counts packets down to the next sample, and notes whether the forwarder met something that is watched.
/// Both end the same count: whether it is below zero is all that is asked of a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attention {
    /// Packets that are left behind the next one; below zero somebody looks.
    left: i64,
    /// What of `left` waits until what was met is forgotten.
    aside: i64,
    has_met: bool,
}

impl Attention {
    /// Nobody looks.
    pub(crate) const NONE: Self = Self { left: i64::MAX - 1, aside: 0, has_met: false };

    /// After so many packets somebody looks. What was met is forgotten.
    pub(crate) fn after(packets: u64) -> Self {
        Self { left: i64::try_from(packets).unwrap_or(i64::MAX) - 1, ..Self::NONE }
    }

    /// Something was met: the next packet that is counted is the last one.
    #[inline]
    pub(crate) const fn meet(&mut self) {
        self.aside += self.left;
        self.left = 0;
        self.has_met = true;
    }

    #[inline(always)]
    pub(crate) const fn has_met(self) -> bool {
        self.has_met
    }

    pub(crate) const fn forget_met(&mut self) {
        self.left += self.aside;
        self.aside = 0;
        self.has_met = false;
    }

    /// Counts a packet; whether it was the last one, or something was met.
    #[inline(always)]
    pub(crate) const fn is_due(&mut self) -> bool {
        self.left = self.left.wrapping_sub(1);
        self.left < 0
    }

    /// Packets that are left.
    pub(crate) const fn left(self) -> u64 {
        let left = self.left + self.aside + 1;
        if left < 0 { 0 } else { left.unsigned_abs() }
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

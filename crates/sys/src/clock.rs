//! The clocks of the machine.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since some moment, the same for all processes of this machine.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let whole = u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000);
    whole.saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Whether a time service keeps the wall clock right, as far as the kernel knows (`STA_UNSYNC` of
/// `adjtimex`); `None` where the kernel does not tell.
#[must_use]
pub fn is_synchronized() -> Option<bool> {
    // SAFETY: a timex of zeroes is valid, and asks for nothing to be changed.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is whole and alive during the call, which writes to it only.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    (state >= 0).then_some(state != libc::TIME_ERROR && timex.status & libc::STA_UNSYNC == 0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn asking_for_the_state_of_the_clock_changes_nothing() {
        assert_eq!(super::is_synchronized(), super::is_synchronized());
    }
}

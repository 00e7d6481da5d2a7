//! The wall clock of the machine.

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

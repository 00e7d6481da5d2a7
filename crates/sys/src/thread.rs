//! The calling thread and process: CPU time, core, limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::time::Duration;

fn clock(id: ClockId) -> Duration {
    let t = clock_gettime(id);
    Duration::new(u64::try_from(t.tv_sec).unwrap_or(0), u32::try_from(t.tv_nsec).unwrap_or(0))
}

/// CPU time that the calling thread has used.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    clock(ClockId::ThreadCPUTime)
}

/// CPU time that the process has used.
#[must_use]
pub fn process_cpu_time() -> Duration {
    clock(ClockId::ProcessCPUTime)
}

/// CPU time, user and system, that process `pid` has used, with its threads that ended: to the
/// nanosecond, where `/proc/*/stat` has hundredths of a second.
///
/// # Errors
/// When there is no such process.
pub fn cpu_time_of(pid: u32) -> io::Result<Duration> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut id: libc::clockid_t = 0;
    // SAFETY: `id` is written by the call and outlives it.
    match unsafe { libc::clock_getcpuclockid(pid, &raw mut id) } {
        0 => {}
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is written by the call and outlives it.
    if unsafe { libc::clock_gettime(id, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Ok(Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos))
}

/// Keeps the calling thread (and threads it starts later) on one core.
///
/// # Errors
/// As `sched_setaffinity`: the core does not exist or is not ours to use.
pub fn pin_to_core(core: usize) -> io::Result<()> {
    if core >= CpuSet::MAX_CPU {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

/// Raises the limit of open files to the hard limit and returns it.
///
/// # Errors
/// As `setrlimit`.
pub fn raise_open_files_limit() -> io::Result<u64> {
    let hard = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard })?;
    Ok(hard.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_with_work_and_not_below_zero() {
        let before = thread_cpu_time();
        let mut x = 1_u64;
        while thread_cpu_time() == before {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(thread_cpu_time() > before && process_cpu_time() >= thread_cpu_time() - before);
    }

    #[test]
    fn cpu_time_of_a_process_is_what_the_process_finds_itself() {
        let before = process_cpu_time();
        let found = cpu_time_of(std::process::id()).unwrap();
        assert!(before <= found && found <= process_cpu_time());
        assert!(cpu_time_of(u32::MAX).is_err(), "a number that no process has");
    }

    #[test]
    fn a_core_that_does_not_exist_is_refused() {
        assert!(pin_to_core(CpuSet::MAX_CPU - 1).is_err());
        assert!(pin_to_core(usize::MAX).is_err());
    }

    #[test]
    fn the_limit_of_open_files_can_be_raised_to_the_hard_limit() {
        assert!(raise_open_files_limit().unwrap() > 0);
    }
}

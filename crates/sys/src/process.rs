//! The end of the process.

use std::io::{self, Write as _};

/// Ends the process with `code`, once standard output has what was written to it.
///
/// Threads that still run end where they are, and no destructor of a library runs. `exit`, and so the
/// end of `main`, runs them beside these threads, and a library that is used behind its destructor's
/// back may abort the process: AWS-LC's random numbers do.
pub fn leave(code: u8) -> ! {
    // Who read it may have gone.
    let _ = io::stdout().flush();
    // SAFETY: ends the process without running anything of it.
    unsafe { libc::_exit(code.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    const ENDS: &str = "ONYM_TEST_ENDS";

    extern "C" fn abort() {
        std::process::abort();
    }

    /// Law: nothing runs behind the back of threads at the end, and what was printed is not lost.
    #[test]
    fn no_destructor_runs_and_the_output_is_whole() {
        let this = "process::tests::no_destructor_runs_and_the_output_is_whole";
        if std::env::var_os(ENDS).is_some() {
            // SAFETY: the handler is a function that takes nothing and does not unwind.
            unsafe { libc::atexit(abort) };
            print!("not a whole line");
            leave(7);
        }
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args([this, "--exact", "--nocapture"]).env(ENDS, "1").stderr(Stdio::null());
        let ended = again.output().unwrap();
        assert_eq!(ended.status.code(), Some(7), "{}", ended.status);
        assert!(String::from_utf8_lossy(&ended.stdout).ends_with("not a whole line"));
    }
}

//! What a program does when there is no memory left, and with memory that it needs no more.

use std::alloc::{GlobalAlloc, Layout};
use std::path::Path;

/// An allocator that ends the program with a sentence and exit code 1 where the system refuses.
///
/// Without it the standard library aborts: a signal, and no word about the limit.
#[derive(Debug, Default, Clone, Copy)]
pub struct OrEnd<A>(pub A);

/// Ends the program: `asked` octets were refused. Asks for no memory itself.
#[cold]
fn end(asked: usize) -> ! {
    let mut text = [0; 200];
    let mut rest = &mut text[..];
    let room = rest.len();
    let said = std::io::Write::write_fmt(
        &mut rest,
        format_args!(
            "onym: there is no memory left\n  why:  the system refused {asked} octets\n  \
             next: raise the limit (`ulimit -v`), or lower what the tables may take\n"
        ),
    );
    let written = room - rest.len();
    if said.is_ok() {
        // Where standard error is gone, too, the exit code is left.
        let _ = rustix::io::write(std::io::stderr(), &text[..written]);
    }
    // SAFETY: ends the process without running anything of it.
    unsafe { libc::_exit(1) }
}

fn or_end(pointer: *mut u8, asked: usize) -> *mut u8 {
    if pointer.is_null() {
        end(asked);
    }
    pointer
}

// SAFETY: every method forwards to the allocator within with its arguments unchanged, and returns what
// that returned, or not at all.
unsafe impl<A: GlobalAlloc> GlobalAlloc for OrEnd<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc`.
        or_end(unsafe { self.0.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc_zeroed`.
        or_end(unsafe { self.0.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `GlobalAlloc::realloc`.
        or_end(unsafe { self.0.realloc(ptr, layout, new_size) }, new_size)
    }

    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `GlobalAlloc::dealloc`.
        unsafe { self.0.dealloc(ptr, layout) }
    }
}

/// How the kernel was told to back the memory of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HugePages {
    /// Huge pages where they are advised, which mimalloc does nowhere.
    WhereAdvised,
    /// None at all: this kernel gives them to any memory, and knows no other way.
    Nowhere,
}

/// Has the kernel give this process and its children huge pages where they are advised only, so that it
/// clears no two megabytes at once for memory that comes and goes.
pub fn huge_pages_where_advised() -> HugePages {
    // `PR_THP_DISABLE_EXCEPT_ADVISED`, of Linux 6.18.
    const EXCEPT_ADVISED: libc::c_ulong = 1 << 1;
    let unused: libc::c_ulong = 0;
    // SAFETY: a request with numbers only.
    let done = unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1 as libc::c_ulong, EXCEPT_ADVISED, unused, unused)
    };
    let file = "/sys/kernel/mm/transparent_hugepage/enabled";
    let is_always = || std::fs::read_to_string(file).is_ok_and(|text| text.contains("[always]"));
    if done != 0 && is_always() {
        // A kernel without huge pages has none to do without.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
        return HugePages::Nowhere;
    }
    HugePages::WhereAdvised
}

/// The allocator's own advice is turned off before it takes its first memory.
#[cfg(all(feature = "mimalloc", target_os = "linux"))]
mod without_advice {
    use libmimalloc_sys::{_mi_option_last, mi_option_set, mi_option_t};

    /// `mi_option_allow_thp`, which the binding does not name.
    const ALLOW_THP: mi_option_t = 43;
    const _: () = assert!(_mi_option_last == 47, "look up mi_option_allow_thp in mimalloc.h");

    extern "C" fn set() {
        // SAFETY: stores a number; mimalloc's own constructor, of an earlier priority, has run.
        unsafe { mi_option_set(ALLOW_THP, 0) }
    }

    // In `main` it would be too late: memory is taken before.
    // SAFETY: the section holds pointers to functions of this kind.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static SET: extern "C" fn() = set;
}

/// Has the allocator hand memory that is free back to the system, as far as this thread freed it; where
/// the program's is mimalloc, which otherwise keeps it until the thread asks for more. Takes time in
/// the order of a millisecond: for moments after which much is free.
pub fn hand_back() {
    #[cfg(feature = "mimalloc")]
    // SAFETY: may be called by any thread at any time; it changes nothing that is in use.
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}

/// The least of the limits of this process's memory, in octets: of its address space (`ulimit -v`) and
/// of the control groups that it is in. `None` without any.
#[must_use]
pub fn limit() -> Option<u64> {
    let space = rustix::process::getrlimit(rustix::process::Resource::As).current;
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = groups.lines().filter_map(limit_file).flat_map(|(root, path, file)| {
        // Each group above bounds it, too; a container sees its own as the root.
        let above: Vec<_> = Path::new(path.trim_start_matches('/')).ancestors().collect();
        let read = move |group: &Path| {
            let text = std::fs::read_to_string(Path::new(root).join(group).join(file)).ok()?;
            text.trim().parse().ok()
        };
        above.into_iter().filter_map(read).collect::<Vec<u64>>()
    });
    // Version 1 writes a number that no machine has where there is no limit.
    of_groups.chain(space).filter(|octets| *octets < 1 << 60).min()
}

/// Where the limit of one line of `/proc/self/cgroup` is: the root of its groups, the group, the file.
fn limit_file(line: &str) -> Option<(&'static str, &str, &'static str)> {
    let mut words = line.splitn(3, ':').skip(1);
    let (controllers, path) = (words.next()?, words.next()?);
    match controllers {
        "" => Some(("/sys/fs/cgroup", path, "memory.max")),
        list if list.split(',').any(|one| one == "memory") => {
            Some(("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::limit_file;

    #[test]
    fn both_versions_of_control_groups_are_read() {
        let two = Some(("/sys/fs/cgroup", "/a/b", "memory.max"));
        assert_eq!(limit_file("0::/a/b"), two);
        let one = Some(("/sys/fs/cgroup/memory", "/a", "memory.limit_in_bytes"));
        assert_eq!(limit_file("5:cpu,memory:/a"), one);
        assert_eq!(limit_file("3:devices:/a"), None);
        assert_eq!(limit_file("nothing"), None);
    }
}

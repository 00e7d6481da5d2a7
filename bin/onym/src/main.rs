#![doc = include_str!("../README.md")]
// Everything is printed by `output`, which makes what came from outside harmless.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod cmd;
mod copy;
mod enrol;
mod exit;
mod human;
mod input;
mod invitations;
mod keeper;
mod key_files;
mod log_json;
mod log_ring;
mod mounted;
mod network_folder;
mod node_shown;
mod node_words;
mod output;
mod passphrase;
mod plain;
mod push_picture;
mod push_words;
mod remote;
mod schema;
mod secrecy;
mod secure;
mod session;
mod stop;
mod supervised;
mod target;

use exit::Exit;
use mimalloc::MiMalloc;
use onym_sys::memory::OrEnd;

// The reason is in docs/decisions/0008-memory-from-mimalloc.md.
#[global_allocator]
static MEMORY: OrEnd<MiMalloc> = OrEnd(MiMalloc);

fn main() -> ! {
    // docs/decisions/0010-huge-pages-for-slabs-only.md
    onym_sys::memory::huge_pages_where_advised();
    onym_sys::process::leave(program())
}

/// Does what the command line says; the exit code.
fn program() -> u8 {
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_default();
    if std::path::Path::new(&called).file_name().is_some_and(|name| name == "nfdc") {
        let words: Vec<String> = words.map(|w| w.to_string_lossy().into_owned()).collect();
        return cmd::nfdc::program(&words);
    }
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are "errors" of the parser that end well.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            let _ = error.print();
            return exit as u8;
        }
    };
    keeper::install();
    match cli::run(cli) {
        Ok(()) => Exit::Done as u8,
        Err(error) => exit::report(&error) as u8,
    }
}

//! `onym mount`: a folder of the network as one of this machine.

use crate::cmd::cp::{Believe, found};
use crate::exit::{Exit, Failure};
use crate::mounted::{Mounted, Worker};
use crate::output::Context;
use crate::remote::Remote;
use crate::{session, stop};
use onym_sys::fuse::{self, Owner, Readers};
use onym_wire::Name;
use serde::Serialize;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Mount a folder of the network at one of this machine, to be read, until stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym mount /alice/photos /mnt/photos
  onym mount /alice/photos /mnt/photos --anchor root.ndncert --for-others

By the ndn6 file protocol, as `onym ls`. Prints `ready` once programs may use it; SIGTERM, SIGINT and
`umount` end it. A file that is open is read in the version that it had when it was opened; whether a
name has another one is asked after a second. Wants FUSE in the kernel and the right to mount;
without it: unshare --user --map-root-user --mount.")]
pub(crate) struct Args {
    /// Name of the folder.
    name: Name,
    /// Where to: a folder of this machine.
    folder: PathBuf,
    /// Let other users of this machine read it.
    #[arg(long)]
    for_others: bool,
    #[command(flatten)]
    believe: Believe,
}

/// Readers that are answered at the same time.
const WORKERS: usize = 8;
/// How often it is looked whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { name: String, folder: String },
}

fn text(line: &Line) -> String {
    let Line::Ready { name, folder } = line;
    format!("{name}\nready: at {folder}\n")
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let Args { name, folder, for_others, believe } = args;
    if !folder.is_dir() {
        return Err(Failure::new(Exit::Usage, format!("{} is no folder", folder.display()))
            .next("make it, or give one that there is")
            .into());
    }
    let stop = stop::on_signal()?;
    let (schema, size_max) = (believe.schema()?, believe.size_max());
    let (context, flag) = (cx.clone(), stop.flag());
    let connect = move || {
        let mut client = session::open(&context)?;
        client.stop_when(Arc::clone(&flag));
        Ok(Remote::new(client, schema.clone(), size_max))
    };
    let metadata = found(&mut connect()?, &name)?;
    if !metadata.is_folder() {
        return Err(Failure::new(Exit::Usage, format!("{name} is a file"))
            .next("`onym cp` and `onym get` fetch it")
            .into());
    }
    let owner = Owner {
        user: rustix::process::getuid().as_raw(),
        group: rustix::process::getgid().as_raw(),
    };
    let readers = if for_others { Readers::Everybody } else { Readers::Owner };
    let kernel = Arc::new(fuse::mount(&folder, owner, readers).map_err(|e| cannot(&e))?);
    let mounted = Arc::new(Mounted::new(name.clone(), metadata, owner, size_max));
    let workers = (0..WORKERS).map(|_| {
        let (kernel, worker) = (Arc::clone(&kernel), Worker::new(&mounted, connect.clone()));
        thread::spawn(move || worker.run(&kernel))
    });
    let workers: Vec<_> = workers.collect();
    let ready = Line::Ready { name: name.to_string(), folder: folder.display().to_string() };
    let told = cx.event(&ready, text);
    // They end by themselves when somebody takes the mount away.
    let is_gone = || workers.iter().any(thread::JoinHandle::is_finished);
    while told.is_ok() && !stop.is_set() && !is_gone() {
        thread::park_timeout(LOOK_EVERY);
    }
    if !is_gone() {
        fuse::unmount(&folder).map_err(|e| {
            Failure::new(Exit::Failed, "it cannot be unmounted")
                .why(e)
                .next(format!("umount {}", folder.display()))
        })?;
    }
    told
}

fn cannot(error: &std::io::Error) -> anyhow::Error {
    let failure = Failure::new(Exit::Failed, "it cannot be mounted").why(error);
    match error.kind() {
        ErrorKind::PermissionDenied => failure
            .next("be root, or have a namespace: unshare --user --map-root-user --mount")
            .into(),
        ErrorKind::NotFound => failure.next("the kernel needs FUSE: modprobe fuse").into(),
        _ => failure.into(),
    }
}

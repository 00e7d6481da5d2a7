//! `onym cp`: a file or a folder of the network to this machine.

use crate::copy::{self, Tally, Tree};
use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::remote::Remote;
use crate::{human, schema, session, stop};
use onym_client::Schema;
use onym_repo::file::FileMetadata;
use onym_wire::Name;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Copy a file or a folder of the network to this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym cp /alice/photos/cat.jpg .
  onym cp --recursive /alice/photos photos
  onym cp /alice/film film.mkv --anchor root.ndncert

By the ndn6 file protocol, as `onym ls`, and of what `onym put` serves. A copy that was interrupted goes on
where it ended when the same command is given again: until a file is whole it lies beside its place as
.FILE.VERSION.onym-part. A file that changes meanwhile is fetched anew. Of the mode only whether a file can
be executed is taken over.")]
pub(crate) struct Args {
    /// Name of the file or folder.
    name: Name,
    /// Where to: a file, or a folder in which it gets its own name.
    to: PathBuf,
    /// Copy a folder with all that is below it.
    #[arg(short, long)]
    recursive: bool,
    #[command(flatten)]
    believe: Believe,
}

/// Whom a copy believes.
#[derive(Debug, clap::Args)]
pub(crate) struct Believe {
    /// Trust anchor: the file of a certificate, or a name in the key store. Everything must be
    /// signed with a key whose identity is a prefix of the name and that a chain of certificates
    /// leads from to an anchor. Without it only damage is noticed. May be given more than once.
    #[arg(long = "anchor", value_name = "CERT")]
    anchors: Vec<String>,
    #[command(flatten)]
    schema: schema::Options,
    /// Largest file that is taken, in octets: a number, or one with k, M, G or T; `none` for no
    /// bound.
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = human::parse_size)]
    size_max: u64,
}

impl Believe {
    /// The files of the network, for a command that a signal ends.
    pub(crate) fn remote(&self, cx: &Context) -> anyhow::Result<Remote> {
        let schema = self.schema()?;
        let stop = stop::on_signal()?;
        let mut client = session::open(cx)?;
        client.stop_when(stop.flag());
        Ok(Remote::new(client, schema, self.size_max))
    }

    /// Octets of a file, at most.
    pub(crate) fn size_max(&self) -> u64 {
        self.size_max
    }

    /// By whose word; only damage is noticed without.
    pub(crate) fn schema(&self) -> anyhow::Result<Option<Arc<Schema>>> {
        let anchors = self.anchors.iter().map(|what| super::get::certificate("--anchor", what));
        let anchors = anchors.collect::<anyhow::Result<Vec<_>>>()?;
        super::get::believed_by(&self.schema, anchors)
    }
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let mut remote = args.believe.remote(cx)?;
    let metadata = found(&mut remote, &args.name)?;
    let to = destination(&args.name, &args.to)?;
    let tally = if metadata.is_folder() {
        if !args.recursive {
            return Err(Failure::new(Exit::Usage, format!("{} is a folder", args.name))
                .next("--recursive copies it with all that is below it")
                .into());
        }
        let mut tell = |_: &str, _: &Path| {};
        let mut tree = Tree::new(&mut remote, &mut tell);
        tree.copy(&args.name, &metadata, &to)?;
        tree.tally
    } else {
        let mut tally = Tally::default();
        copy::file(&mut remote, &args.name, metadata, &to, &mut tally)?;
        tally
    };
    cx.print(&tally, Tally::text)
}

/// What `name` is.
pub(crate) fn found(remote: &mut Remote, name: &Name) -> anyhow::Result<FileMetadata> {
    remote.metadata(name)?.ok_or_else(|| {
        Failure::new(Exit::NotFound, format!("there is nothing called {name}"))
            .next("`onym ls` lists the folder above it")
            .into()
    })
}

/// Where a copy of `name` goes when `to` was typed.
fn destination(name: &Name, to: &Path) -> anyhow::Result<PathBuf> {
    if !to.is_dir() {
        return Ok(to.to_owned());
    }
    let own = name.components().filter(|c| c.is_generic()).last().map(|c| c.value.to_vec());
    let is_plain = |own: &Vec<u8>| {
        !matches!(own.as_slice(), b"" | b"." | b"..") && !own.iter().any(|b| matches!(b, 0 | b'/'))
    };
    match own.filter(is_plain) {
        Some(own) => Ok(to.join(OsStr::from_bytes(&own))),
        None => Err(Failure::new(Exit::Usage, format!("{name} gives its copy no name"))
            .next("name the file or folder that it shall be")
            .into()),
    }
}

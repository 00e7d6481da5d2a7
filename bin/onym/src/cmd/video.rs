//! `onym video`: a folder that an encoder writes, served and published while it is written.

mod encoder;
mod playlists;

use super::serve::Folder;
use crate::exit::{Exit, Failure};
use crate::output::{self, Context};
use crate::{human, session, stop};
use encoder::Encoder;
use onym_client::serve::ServeCounters;
use onym_repo::folder::Freshness;
use playlists::{Playlist, Publisher};
use serde::Serialize;
use std::ffi::OsString;
use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Serve the folder that an encoder writes, until stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym video live /alice/live -- ffmpeg -i /dev/video0 -g 50 -f dash -hls_playlist 1 manifest.mpd
  onym video film /alice/film -- ffmpeg -i ../film.mkv -f hls -hls_flags temp_file film.m3u8
  onym video live /alice/live --publish now.m3u8=/1/6e6f772e6d337538 --announce

The program after -- is started in the folder, which is made where it is not there; without one
somebody else writes it. Its files are served as by `onym serve`, while it runs and after it has
ended. Players reach them through `onym gateway http`, those of NDNts over WebSocket.

However many watch, each segment leaves once and few metadata do: caches take a file as fresh for
as long as it has stood unchanged, a minute at most, playlists (.m3u8, .mpd) a quarter of that, a
second at most. So a file must be whole when it gets its name, as ffmpeg has it for DASH, and for
HLS with `-hls_flags temp_file`.

With --publish a playlist is told to whoever subscribed to the item, and to who does later, when
it changes: nobody needs to ask for it.")]
pub(crate) struct Args {
    #[command(flatten)]
    folder: Folder,
    /// A file of the folder, most often a playlist: each of its states is a publication of this
    /// item of the push half, the newest retained.
    #[arg(long = "publish", value_name = "FILE=ID", value_parser = Playlist::parse)]
    playlists: Vec<Playlist>,
    /// The program that writes the folder, with its arguments.
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// One line of the output.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Stopped { segments_sent: u64, metadata_sent: u64, refused: u64 },
}

/// How often it is looked whether the encoder runs.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let path = &args.folder.path;
    if let Err(error) = fs::create_dir_all(path) {
        let cannot = format!("cannot make {}", path.display());
        return Err(Failure::new(Exit::Failed, cannot).why(error).into());
    }
    let answers = args.folder.answers()?.with_freshness(Freshness::Standing);
    let counters = answers.counters();
    let publisher = match args.playlists.is_empty() {
        true => None,
        false => Some(Publisher::start(path.clone(), args.playlists, cx, &stop)?),
    };
    let mut client = args.folder.served_by(answers, cx)?;
    let mut encoder = match args.program.split_first() {
        None => None,
        Some((program, arguments)) => Some(Encoder::start(program, arguments, path)?),
    };
    while !stop.is_set() && !publisher.as_ref().is_some_and(Publisher::has_ended) {
        session::serve_for(&mut client, &stop, LOOK)?;
        if let Some(running) = &mut encoder
            && let Some(ended) = running.has_ended()?
        {
            output::tell(format_args!("onym: {ended}; its files are served until stopped"));
            encoder = None;
        }
    }
    drop(encoder);
    if let Some(publisher) = publisher {
        publisher.end()?;
    }
    cx.event(&stopped(&counters), text)
}

fn stopped(counters: &ServeCounters) -> Line {
    Line::Stopped {
        segments_sent: counters.segments.load(Ordering::Relaxed),
        metadata_sent: counters.metadata.load(Ordering::Relaxed),
        refused: counters.refused.load(Ordering::Relaxed),
    }
}

fn text(line: &Line) -> String {
    let Line::Stopped { segments_sent, metadata_sent, refused } = line;
    let (segments, refused) =
        (human::count(*segments_sent, "segment"), human::count(*refused, "Interest"));
    format!("stopped: {segments} and {metadata_sent} metadata sent, {refused} refused\n")
}

//! Playlists as items of the push half: each state is a publication, the newest is retained.

use crate::output::{self, Context};
use crate::push_words::{self, failure};
use crate::stop::Stop;
use anyhow::Context as _;
use onym_client::push::{App, Error, Event};
use onym_wire::push::{Kind, Path as Item, Strategy};
use rustix::fs::{Mode, OFlags, openat};
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often files are looked at: what a viewer hears later than it could is no more than this.
const LOOK: Duration = Duration::from_millis(50);
/// How long the node is left alone that has gone.
const PAUSE: Duration = Duration::from_secs(1);
/// Who subscribes beyond the node hears it, too.
const STRATEGY: Strategy = Strategy::DOMAIN_LOCAL;

/// A file of the folder and its item.
#[derive(Debug, Clone)]
pub(super) struct Playlist {
    file: PathBuf,
    item: Item,
}

impl Playlist {
    /// `FILE=ID`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        // An identifier begins with a slash, and may have `=` in it.
        let (file, id) = text.split_once("=/").ok_or("it is FILE=ID, such as now.m3u8=/1/2")?;
        let file = PathBuf::from(file);
        let is_inside = file.components().all(|c| matches!(c, Component::Normal(_)));
        if !is_inside || file.as_os_str().is_empty() {
            return Err("the file is one of the folder, without .. and / at its beginning".into());
        }
        let item = format!("/{id}").parse::<Item>().map_err(|error| error.to_string())?;
        Ok(Self { file, item })
    }
}

/// What tells one state of a file from another.
type State = (u64, u64, i64, i64);

fn state(metadata: &Metadata) -> State {
    (metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

/// A playlist, and the state of it that was published last.
#[derive(Debug)]
struct Watched {
    playlist: Playlist,
    published: Option<State>,
}

/// The thread that publishes.
#[derive(Debug)]
pub(super) struct Publisher {
    thread: JoinHandle<anyhow::Result<()>>,
}

impl Publisher {
    /// Publishes the items, and from now on each state of their files, until `stop` is set.
    ///
    /// # Errors
    /// The node has no push half, or refuses an item.
    pub(super) fn start(
        folder: PathBuf,
        playlists: Vec<Playlist>,
        cx: &Context,
        stop: &Stop,
    ) -> anyhow::Result<Self> {
        let mut watched: Vec<Watched> =
            playlists.into_iter().map(|playlist| Watched { playlist, published: None }).collect();
        let mut app = open(&watched, cx, stop)?;
        let (cx, stop) = (cx.clone(), stop.clone());
        let run = move || {
            while !stop.is_set() {
                match publish(&mut app, &folder, &mut watched, &stop) {
                    Ok(()) | Err(Error::Stopped) => break,
                    Err(Error::Gone(why)) => {
                        let sentence = "the node's push half is lost";
                        output::tell(format_args!("onym: {sentence} ({why}); trying again"));
                        let Some(again) = reopen(&watched, &cx, &stop) else { return Ok(()) };
                        app = again;
                        // A node that came back retains nothing.
                        watched.iter_mut().for_each(|one| one.published = None);
                    }
                    Err(error) => return Err(failure(error)),
                }
            }
            // What has gone takes everything back by itself.
            let _ = app.leave();
            Ok(())
        };
        let thread = thread::Builder::new().name("playlists".into()).spawn(run);
        Ok(Self { thread: thread.context("cannot start a thread")? })
    }

    /// Whether it has ended, because it failed when nobody stopped it.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end.
    pub(super) fn end(self) -> anyhow::Result<()> {
        self.thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("publishing ended")))
    }
}

/// An application that may publish the items.
fn open(watched: &[Watched], cx: &Context, stop: &Stop) -> anyhow::Result<App> {
    let mut app = push_words::open(cx, "onym video")?;
    app.stop_when(stop.flag());
    for Watched { playlist: Playlist { item, .. }, .. } in watched {
        push_words::scopes_above(&mut app, item, STRATEGY)?;
        push_words::ask(&mut app, Kind::PUBLISH_ITEM, item, STRATEGY)?;
        app.retain(&item.id, 1).map_err(failure)?;
    }
    Ok(app)
}

/// The same, once the node is there again; `None` when it is stopped before.
fn reopen(watched: &[Watched], cx: &Context, stop: &Stop) -> Option<App> {
    while !stop.is_set() {
        thread::sleep(PAUSE);
        if let Ok(app) = open(watched, cx, stop) {
            return Some(app);
        }
    }
    None
}

/// Publishes what changes until `stop` is set.
fn publish(
    app: &mut App,
    folder: &Path,
    watched: &mut [Watched],
    stop: &Stop,
) -> Result<(), Error> {
    while !stop.is_set() {
        for one in &mut *watched {
            let Playlist { file, item } = &one.playlist;
            // What is not there yet, or cannot be read, comes later.
            let Ok(opened) = find(folder, file) else { continue };
            let Ok(now) = opened.metadata() else { continue };
            let (is_own, now) = (now.is_file() && now.nlink() == 1, Some(state(&now)));
            if !is_own || now == one.published {
                continue;
            }
            let mut content = Vec::new();
            let most = app.info().length_max;
            match opened.take(most.saturating_add(1)).read_to_end(&mut content) {
                Ok(len) if len as u64 <= most => app.publish(&item.id, STRATEGY, &content)?,
                Ok(_) => {
                    let item = push_words::both(item, &item.id);
                    output::tell(format_args!("onym: {} is too long for {item}", file.display()));
                }
                Err(_) => continue,
            }
            one.published = now;
        }
        if let Some(Event::Refused { id, status }) = app.event(Some(LOOK))? {
            output::tell(format_args!("onym: a publication of {id} was refused: {status}"));
        }
    }
    Ok(())
}

/// Opens a file of the folder, one component after the other: links are not followed.
fn find(folder: &Path, file: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut at = rustix::fs::open(folder, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    for component in file {
        at = openat(&at, component, flags, Mode::empty())?;
    }
    Ok(File::from(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_playlist_is_a_file_of_the_folder_and_an_item() {
        for (text, file, item) in [
            ("now.m3u8=/1/2", "now.m3u8", "/1/2"),
            ("v0/now.m3u8=/1/2", "v0/now.m3u8", "/1/2"),
            ("a=b.mpd=/1/=cafe", "a=b.mpd", "/1/=cafe"),
        ] {
            let parsed = Playlist::parse(text).unwrap();
            assert_eq!(parsed.file, PathBuf::from(file));
            assert_eq!(parsed.item.id, item.parse::<Item>().unwrap().id);
        }
        for wrong in ["now.m3u8", "=/1/2", "../x=/1/2", "/etc/passwd=/1/2", "x=1/2", "x=/1//2"] {
            assert!(Playlist::parse(wrong).is_err(), "{wrong}");
        }
    }
}

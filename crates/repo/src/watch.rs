//! Folders that the store is kept in step with.

use crate::add::{AddOptions, files, segments_of_file};
use crate::answer::newest_object;
use onym_crypto::edge::unix_now_ms;
use onym_store::{Change, Store};
use onym_wire::name::{Name, NameRef};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, UNIX_EPOCH};

/// Octets of packets that are given to the store at once.
const GROUP: usize = 1 << 20;
/// Names that are looked at in one step.
const STEP: usize = 1000;

/// A folder, and the name that its files are under.
#[derive(Debug, Clone)]
pub struct Watched {
    /// The folder.
    pub folder: PathBuf,
    /// Its name.
    pub name: Name,
}

/// A state of a file: when it changed last, in nanoseconds, and how long it is.
type State = (u64, u64);

/// What is known of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// It was in this state at the last look, and may be in the middle of a change.
    Once(State),
    /// This state of it is in the store.
    Kept(State),
}

/// What the store has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Take this state of a file.
    Take(PathBuf, State),
    /// Forget all versions of a file.
    Forget(PathBuf),
}

/// What the looks at a folder have seen, without I/O.
#[derive(Debug, Default)]
struct Looks {
    seen: BTreeMap<PathBuf, Seen>,
}

impl Looks {
    /// What is to be done when the folder has `now`. A file is taken when two looks in a row saw it
    /// in the same state.
    fn look(&mut self, now: &BTreeMap<PathBuf, State>) -> Vec<Step> {
        let mut steps = Vec::new();
        self.seen.retain(|path, _| {
            let is_there = now.contains_key(path);
            if !is_there {
                steps.push(Step::Forget(path.clone()));
            }
            is_there
        });
        for (path, state) in now {
            match self.seen.get(path) {
                Some(Seen::Kept(kept)) if kept == state => {}
                Some(Seen::Once(once)) if once == state => {
                    steps.push(Step::Take(path.clone(), *state));
                }
                _ => drop(self.seen.insert(path.clone(), Seen::Once(*state))),
            }
        }
        steps
    }

    fn kept(&mut self, path: PathBuf, state: State) {
        self.seen.insert(path, Seen::Kept(state));
    }
}

/// Keeps `store` in step with a folder, looking every `every`, in a thread that ends with the store.
///
/// # Errors
/// Those of the operating system.
pub fn start(
    watched: Watched,
    options: AddOptions,
    store: &Arc<Store>,
    every: Duration,
) -> io::Result<()> {
    let store = Arc::downgrade(store);
    std::thread::Builder::new().name("onym-repo-watch".into()).spawn(move || {
        let mut watch = Watch { watched, options, looks: Looks::default(), is_new: true };
        while let Some(store) = Weak::upgrade(&store) {
            // What fails is tried again at the next look.
            if let Err(error) = watch.round(&store) {
                let folder = watch.watched.folder.display();
                tracing::warn!(%folder, %error, "watched-folder");
            }
            drop(store);
            std::thread::sleep(every);
        }
    })?;
    Ok(())
}

struct Watch {
    watched: Watched,
    options: AddOptions,
    looks: Looks,
    /// It is not known yet what the store has of it.
    is_new: bool,
}

impl Watch {
    /// One look, and what follows from it.
    fn round(&mut self, store: &Store) -> io::Result<()> {
        let now = states(&self.watched)?;
        if self.is_new {
            self.compare(store, &now)?;
            self.is_new = false;
        }
        for step in self.looks.look(&now) {
            match step {
                Step::Forget(path) => self.forget(store, self.name(&path).as_ref(), None)?,
                Step::Take(path, state) => self.take(store, &path, state)?,
            }
        }
        Ok(())
    }

    fn name(&self, path: &Path) -> Name {
        let mut name = self.watched.name.clone();
        for component in path.components() {
            name.append_generic(component.as_os_str().as_encoded_bytes());
        }
        name
    }

    /// What the store has of this folder from an earlier time: what is the same counts as taken,
    /// what is there no more is forgotten.
    fn compare(&mut self, store: &Store, now: &BTreeMap<PathBuf, State>) -> io::Result<()> {
        let mut reader = store.reader();
        let now_ms = unix_now_ms();
        let mut own = BTreeSet::new();
        for (path, state) in now {
            let name = self.name(path);
            let object = newest_object(&mut reader, now_ms, name.as_ref());
            let object = object.map_err(io::Error::other)?;
            let is_same = |object: &crate::answer::Object| {
                let version = object.name.as_ref().last().and_then(|c| c.as_version());
                version == Some(state.0) && object.size == state.1 && object.has_last
            };
            if object.as_ref().is_some_and(is_same) {
                self.looks.kept(path.clone(), *state);
            }
            own.insert(name);
        }
        let mut after: Option<Name> = None;
        loop {
            let prefix = self.watched.name.as_ref();
            let names = reader.names(prefix, after.as_ref().map(Name::as_ref), STEP);
            let names = names.map_err(io::Error::other)?;
            let Some(last) = names.last() else { return Ok(()) };
            after = Some(last.name.clone());
            let is_gone = |name: &Name| {
                let file = name.as_ref().drop_last(2).to_name();
                name.len() > prefix.len() + 1 && !own.contains(&file)
            };
            let gone = names.into_iter().map(|one| one.name).filter(is_gone);
            let changes = gone.map(Change::delete).collect();
            apply(store, changes)?;
        }
    }

    /// Puts this state of a file into the store, and then forgets earlier ones.
    fn take(&mut self, store: &Store, path: &Path, state: State) -> io::Result<()> {
        let (at, name) = (self.watched.folder.join(path), self.name(path));
        let (mut changes, mut octets) = (Vec::new(), 0);
        let taken = segments_of_file(&at, &name, &self.options, &mut |packet| {
            octets += packet.len();
            changes.push(Change::insert(packet));
            if octets >= GROUP {
                octets = 0;
                apply(store, std::mem::take(&mut changes))?;
            }
            Ok(())
        });
        taken.and_then(|()| apply(store, changes))?;
        // It may have changed while it was read.
        if state_of(&at)? == Some(state) {
            let mut newest = name.clone();
            newest.append_version(state.0);
            self.forget(store, name.as_ref(), Some(newest.as_ref()))?;
            self.looks.kept(path.to_owned(), state);
        }
        Ok(())
    }

    /// Deletes what is under `name`, but what is under `but`.
    fn forget(&self, store: &Store, name: NameRef<'_>, but: Option<NameRef<'_>>) -> io::Result<()> {
        let mut reader = store.reader();
        let mut after: Option<Name> = None;
        loop {
            let names = reader.names(name, after.as_ref().map(Name::as_ref), STEP);
            let names = names.map_err(io::Error::other)?;
            let Some(last) = names.last() else { return Ok(()) };
            after = Some(last.name.clone());
            let is_kept = |one: &Name| but.is_some_and(|but| but.is_prefix_of(one.as_ref()));
            // Of a folder that took the place of a file only versions of the file are meant.
            let is_version = |one: &Name| one.len() == name.len() + 2;
            let gone = names.into_iter().map(|one| one.name);
            let gone = gone.filter(|one| is_version(one) && !is_kept(one));
            apply(store, gone.map(Change::delete).collect())?;
        }
    }
}

fn apply(store: &Store, changes: Vec<Change>) -> io::Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let answers = store.apply(changes).map_err(io::Error::other)?;
    answers.into_iter().try_for_each(|answer| answer.map(|_| ()).map_err(io::Error::other))
}

/// The files of a folder, by their paths in it.
fn states(watched: &Watched) -> io::Result<BTreeMap<PathBuf, State>> {
    let mut states = BTreeMap::new();
    for (path, _) in files(&watched.folder, &watched.name)? {
        // What has gone since it was listed is seen at the next look.
        if let Some(state) = state_of(&path)?
            && let Ok(path) = path.strip_prefix(&watched.folder)
        {
            states.insert(path.to_owned(), state);
        }
    }
    Ok(states)
}

fn state_of(path: &Path) -> io::Result<Option<State>> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    let changed = found.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Some((u64::try_from(changed.as_nanos()).unwrap_or(u64::MAX), found.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, State)]) -> BTreeMap<PathBuf, State> {
        files.iter().map(|(path, state)| (PathBuf::from(path), *state)).collect()
    }

    /// Law: a file is taken when it stayed the same for one look, once; one that goes on changing is
    /// not, and one that has gone is forgotten.
    #[test]
    fn files_are_taken_when_they_rest() {
        let mut looks = Looks::default();
        let (one, two) = ((1, 10), (2, 20));
        assert_eq!(looks.look(&folder(&[("a", one)])), []);
        assert_eq!(looks.look(&folder(&[("a", two)])), [], "it is being written");
        let take = [Step::Take("a".into(), two)];
        assert_eq!(looks.look(&folder(&[("a", two)])), take);
        assert_eq!(looks.look(&folder(&[("a", two)])), take, "it was not taken");
        looks.kept("a".into(), two);
        assert_eq!(looks.look(&folder(&[("a", two)])), []);
        assert_eq!(looks.look(&folder(&[])), [Step::Forget("a".into())]);
        assert_eq!(looks.look(&folder(&[])), []);
        assert_eq!(looks.look(&folder(&[("a", two)])), [], "it is a new file");
    }
}

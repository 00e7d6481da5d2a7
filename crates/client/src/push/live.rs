//! Liveliness of publishers (P-75): a convention between applications.
//!
//! ```no_run
//! use onym_client::push::{App, live};
//! use onym_wire::push::{Path, Strategy};
//!
//! let item: Path = "/sensors/roof/temperature".parse()?;
//! let mut app = App::open(None, "example")?;
//! app.publish_scope(&"/sensors".parse::<Path>()?.id, Strategy::DOMAIN_LOCAL)?;
//! app.publish_scope(&"/sensors/roof".parse::<Path>()?.id, Strategy::DOMAIN_LOCAL)?;
//! let mut watch = live::Watch::begin(&mut app, &item, Strategy::DOMAIN_LOCAL)?;
//! while let Some(event) = app.event(None)? {
//!     if let Some(change) = watch.change(&event) {
//!         println!("{change:?}: {} there now", watch.alive().len());
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::{App, Error, Event};
use onym_wire::push::{Id, Kind, Label, Path, Strategy};
use std::collections::BTreeSet;

/// Publishers that a watch remembers.
pub const WATCHED_MAX: usize = 65_536;

/// The word of the scope of publishers that live.
const WORD: &str = "~live";

/// A publisher of the item came or went; its token ([`App::token`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is there.
    Came(Label),
    /// It took that back, its connection ended or its node failed.
    Went(Label),
}

/// The scope beneath which publishers of `item` are, published.
fn scope_of(app: &mut App, item: &Path, strategy: Strategy) -> Result<Path, Error> {
    let parent = item.above().last().unwrap_or_default();
    let live = parent.beneath(WORD);
    let mut scope =
        Path { id: live.id.child(item.id.last().unwrap_or_default()), words: live.words.clone() };
    scope.words.push(item.word().map(str::to_owned));
    for scope in [&live, &scope] {
        app.join(Kind::PUBLISH_SCOPE, scope, strategy)?;
    }
    Ok(scope)
}

/// Says of `app`, which publishes `item`, that it lives; the scopes above the item are there. It does
/// until [`withdraw`] or its connection ends.
///
/// # Errors
/// As [`App::publish_scope`].
pub fn announce(app: &mut App, item: &Path, strategy: Strategy) -> Result<Label, Error> {
    let scope = scope_of(app, item, strategy)?;
    let token = app.token();
    app.publish_scope(&scope.id.child(token), strategy)?;
    Ok(token)
}

/// Takes back what [`announce`] said.
///
/// # Errors
/// As [`App::publish_scope`]; [`Error::Refused`] also where nothing was announced.
pub fn withdraw(app: &mut App, item: &Path, strategy: Strategy) -> Result<(), Error> {
    let scope = scope_of(app, item, strategy)?;
    let token = scope.id.child(app.token());
    app.simple(Kind::UNPUBLISH_SCOPE, &token, strategy)
}

/// Who publishes an item.
#[derive(Debug)]
pub struct Watch {
    scope: Id,
    alive: BTreeSet<Label>,
    beyond: u64,
}

impl Watch {
    /// Watches the publishers of `item`; the scopes above it are there.
    ///
    /// # Errors
    /// As [`App::publish_scope`].
    pub fn begin(app: &mut App, item: &Path, strategy: Strategy) -> Result<Self, Error> {
        let scope = scope_of(app, item, strategy)?.id;
        app.subscribe_scope(&scope, strategy)?;
        Ok(Self { scope, alive: BTreeSet::new(), beyond: 0 })
    }

    /// What an event of the application says of publishers, if it does.
    pub fn change(&mut self, event: &Event) -> Option<Change> {
        match event {
            Event::ScopePublished(id) => {
                let token = self.token(id)?;
                if self.alive.len() < WATCHED_MAX {
                    return self.alive.insert(token).then_some(Change::Came(token));
                }
                if self.alive.contains(&token) {
                    return None;
                }
                self.beyond += 1;
                Some(Change::Came(token))
            }
            Event::ScopeUnpublished(id) => {
                let token = self.token(id)?;
                if !self.alive.remove(&token) {
                    self.beyond = self.beyond.checked_sub(1)?;
                }
                Some(Change::Went(token))
            }
            _ => None,
        }
    }

    /// Publishers that are there: the first [`WATCHED_MAX`].
    #[must_use]
    pub fn alive(&self) -> &BTreeSet<Label> {
        &self.alive
    }

    /// How many are there besides.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    fn token(&self, id: &Id) -> Option<Label> {
        id.last().filter(|_| id.parent() == self.scope.labels())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_publishers_are_remembered_and_further_ones_counted() {
        let scope: Id = "/1/2".parse().unwrap();
        let mut watch = Watch { scope: scope.clone(), alive: BTreeSet::new(), beyond: 0 };
        let id = |n: u64| scope.child(Label::from_u64(n));
        let most = WATCHED_MAX as u64;
        for n in 0..most + 2 {
            let came = watch.change(&Event::ScopePublished(id(n)));
            assert_eq!(came, Some(Change::Came(Label::from_u64(n))));
        }
        assert_eq!(watch.change(&Event::ScopePublished(id(1))), None, "it is known");
        assert_eq!((watch.alive().len(), watch.beyond()), (WATCHED_MAX, 2));
        for (n, left) in [(most + 1, (WATCHED_MAX, 1)), (1, (WATCHED_MAX - 1, 1))] {
            let went = watch.change(&Event::ScopeUnpublished(id(n)));
            assert_eq!(went, Some(Change::Went(Label::from_u64(n))));
            assert_eq!((watch.alive().len() as u64, watch.beyond()), (left.0 as u64, left.1));
        }
        // Of another scope.
        let other = Event::ScopePublished("/1/3/4".parse().unwrap());
        assert_eq!(watch.change(&other), None);
        assert_eq!(watch.change(&Event::ScopePublished("/1/2/3/4".parse().unwrap())), None);
    }
}

//! What the control interface asks of an element, and what it answers: a type for each resource.
//!
//! The serde form of the types is that of spec/services.md; who reads and writes it is the shell.

mod entries;
mod keys;
mod routes;
mod rules;
mod sessions;
mod table;
mod trust;

pub use entries::{CachedEntry, Downstream, Entries, PendingEntry, RouteEntry};
pub use keys::{KeyInfo, KeySpec};
pub use routes::{RouteInfo, RouteOrigin, RouteSpec};
pub use rules::{RuleId, RuleInfo};
pub use sessions::{SessionInfo, SessionState};
pub use table::{CHUNK_MAX, Import, Merged, Page, Table};
pub use trust::{TrustRule, TrustSource};

use serde::Serialize;

/// What is done with a set whose members have a name each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetRequest<Member, Id = Member> {
    /// All members.
    List,
    /// Make these the members.
    Replace(Vec<Member>),
    /// Take some away, then add others.
    Change {
        /// New members.
        add: Vec<Member>,
        /// Those to take away; one that is not there is no error.
        remove: Vec<Id>,
    },
}

/// A request for a resource of an element.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Static routes; registered ones are listed only.
    Routes(SetRequest<RouteSpec>),
    /// Keys.
    Keys(SetRequest<KeySpec, String>),
    /// Rules of a filter.
    Rules(SetRequest<crate::Rule, RuleId>),
    /// How trust is decided.
    Trust,
    /// Decide trust by this.
    SetTrust(TrustSource),
    /// A part of the table, for another instance.
    Export(Page),
    /// Merge a part of another instance's table.
    Import(Import),
    /// Sessions of a dispatcher.
    Sessions,
}

/// The answer to a [`Request`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// All routes.
    Routes {
        /// By prefix.
        routes: Vec<RouteInfo>,
    },
    /// All keys.
    Keys {
        /// By name.
        keys: Vec<KeyInfo>,
    },
    /// All rules.
    Rules {
        /// By what they match.
        rules: Vec<RuleInfo>,
    },
    /// All sessions.
    Sessions {
        /// By number.
        sessions: Vec<SessionInfo>,
    },
    /// How trust is decided.
    Trust(TrustSource),
    /// Trust is decided as was asked.
    TrustSet {
        /// Whether it was decided otherwise before.
        changed: bool,
        /// Rules of expressions; 0 with a schema.
        rules: usize,
    },
    /// A set was changed.
    Changed(Changed),
    /// A part of the table.
    Table(Table),
    /// A part of a table was merged.
    Merged(Merged),
}

/// What a change of a set did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Whether anything is different.
    pub changed: bool,
    /// Members that are new or different.
    pub added: u64,
    /// Members taken away.
    pub removed: u64,
    /// Members that were there like this.
    pub unchanged: u64,
}

impl Changed {
    pub(crate) const fn new(added: u64, removed: u64, unchanged: u64) -> Self {
        Self { changed: added + removed > 0, added, removed, unchanged }
    }
}

impl From<Changed> for Answer {
    fn from(changed: Changed) -> Self {
        Self::Changed(changed)
    }
}

impl From<Merged> for Answer {
    fn from(merged: Merged) -> Self {
        Self::Merged(merged)
    }
}

//! Applications of this node, and which of them is told something.

use std::sync::Arc;

/// An application of this node, numbered by the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId(pub u64);

impl AppId {
    /// The shard of its face, of so many: applications are numbered so.
    #[must_use]
    pub const fn shard(self, shards: u16) -> u16 {
        if shards <= 1 { 0 } else { (self.0 % shards as u64) as u16 }
    }
}

/// Who hears an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To {
    /// One application.
    One(AppId),
    /// Several, the same list as long as nobody comes or goes.
    All(Arc<[AppId]>),
}

impl To {
    /// The applications.
    #[must_use]
    pub fn apps(&self) -> &[AppId] {
        match self {
            Self::One(app) => std::slice::from_ref(app),
            Self::All(apps) => apps,
        }
    }
}

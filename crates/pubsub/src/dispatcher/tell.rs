//! Changes of push FIBs. What concerns one application is for its shard; that an identifier has
//! receivers is for all shards.

use super::Dispatcher;
use crate::fib::{Delta, Other};
use crate::names::Key;
use crate::publication::{AppId, Outbox};

impl Dispatcher {
    /// A subscription of `app` is asked for: what comes for it before the answer is kept.
    #[inline]
    pub(super) fn tell_awaiting(&self, key: &Key, app: AppId, out: &mut Outbox) {
        self.receives(key, app, Delta::Awaiting(key.clone(), app), out);
    }

    /// `app` has a subscription.
    #[inline]
    pub(super) fn tell_joined(&self, key: &Key, app: AppId, out: &mut Outbox) {
        self.receives(key, app, Delta::Joined(key.clone(), app), out);
    }

    /// The subscription of `app` is answered, and it was told.
    #[inline]
    pub(super) fn tell_answered(&self, key: &Key, app: AppId, out: &mut Outbox) {
        self.receives_not(key, app, Delta::Answered(key.clone(), app), out);
    }

    /// `app` has a subscription no more.
    #[inline]
    pub(super) fn tell_left(&self, key: &Key, app: AppId, out: &mut Outbox) {
        self.receives_not(key, app, Delta::Left(key.clone(), app), out);
    }

    #[inline]
    fn receives(&self, key: &Key, app: AppId, delta: Delta, out: &mut Outbox) {
        out.delta(delta);
        if self.config.shards > 1 {
            self.others(app).for_each(|other| out.delta(Delta::There(key.clone(), other)));
        }
    }

    #[inline]
    fn receives_not(&self, key: &Key, app: AppId, delta: Delta, out: &mut Outbox) {
        out.delta(delta);
        if self.config.shards > 1 {
            self.others(app).for_each(|other| out.delta(Delta::NotThere(key.clone(), other)));
        }
    }

    /// Each other shard than that of `app`, which it is told of.
    fn others(&self, app: AppId) -> impl Iterator<Item = Other> + use<> {
        let (shards, shard) = (self.config.shards, app.shard(self.config.shards));
        (0..shards).filter(move |at| *at != shard).map(move |at| Other { at, shard })
    }
}

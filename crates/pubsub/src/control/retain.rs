//! What an application has retained.

use super::{ControlPlane, Output};
use crate::data::Keep;
use crate::publication::AppId;
use onym_tables::Tick;
use onym_wire::push::Id;

impl ControlPlane {
    /// An application has the last publications of an item of its own retained; its status is an
    /// event with `tag`.
    pub fn retain(
        &mut self,
        now: Tick,
        app: AppId,
        tag: u64,
        id: &Id,
        keep: Keep,
        output: &mut Output,
    ) {
        self.dispatcher.retain(now, app, tag, id, keep, &mut self.outbox);
        self.settle(now, output);
    }

    /// An application has taken everything that it was told before [`Event::Mark`].
    ///
    /// [`Event::Mark`]: crate::Event::Mark
    pub fn took(&mut self, now: Tick, app: AppId, output: &mut Output) {
        self.dispatcher.took(app, &mut self.outbox);
        self.settle(now, output);
    }
}

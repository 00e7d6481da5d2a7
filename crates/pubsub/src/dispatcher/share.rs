//! Shares of the number of scopes and items that applications may assert.

use super::Dispatcher;
use crate::publication::AppId;

/// What an application may always assert.
const SHARE_MIN: usize = 64;

impl Dispatcher {
    /// Whether `app` may assert one more thing: beyond half of the bound who has more than its share
    /// has to give something back first. A rendezvous asks the same of nodes beyond three quarters, so
    /// there is room for the other applications of a node that is alone.
    pub(super) fn has_room_for(&self, app: AppId) -> bool {
        let max = self.config.held_max;
        // One more than there are: room for who comes next.
        let share = (max / (self.apps.len() + 1)).max(SHARE_MIN);
        let own = self.apps.get(&app).map_or(0, |held| held.len());
        if own < share {
            return true;
        }
        let all: usize = self.apps.values().map(|held| held.len()).sum();
        // What is not taken back yet is still there.
        all + self.leaving.len() < max / 2
    }
}

#[cfg(test)]
mod tests {
    use crate::dispatcher::{Config, Dispatcher, Request};
    use crate::publication::{AppId, Event, Notice, Outbox};
    use onym_tables::Tick;
    use onym_wire::push::{Id, Kind, Label, Status, Strategy};

    #[test]
    fn an_application_that_asserts_without_end_leaves_room_for_others() {
        let config = Config { held_max: 1000, ..Config::new(Label::from_u64(1), 1) };
        let mut dispatcher = Dispatcher::new(config);
        let mut statuses = |app: u64, n: u64| {
            let mut out = Outbox::default();
            let request = Request {
                kind: Kind::SUBSCRIBE_SCOPE,
                id: Id::root(Label::from_u64(n)),
                prefix: Id::default(),
                strategy: Strategy::LINK_LOCAL,
            };
            dispatcher.request(Tick(0), AppId(app), n, &request, &mut out);
            out.notices.iter().find_map(|notice| match notice {
                Notice::Tell(_, Event::Status { status, .. }) => Some(*status),
                _ => None,
            })
        };
        let greedy = (1..2000).take_while(|n| statuses(1, *n) == Some(Status::OK)).count();
        assert_eq!(greedy, 500);
        assert_eq!(statuses(1, 5000), Some(Status::FULL));
        for n in 3000..3050 {
            assert_eq!(statuses(2, n), Some(Status::OK), "{n}");
        }
    }
}

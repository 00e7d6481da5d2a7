//! The loop of the push thread: it waits, and works in rounds while it has the state of the push
//! half for itself.

use super::{PushOrder, Shared};
use onym_engine::Bell;
use onym_sys::epoll::{Epoll, Interest, Ready};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// What only the thread itself has.
pub(crate) struct Runner {
    shared: Arc<Shared>,
    epoll: Epoll,
    events: Vec<Ready>,
    bell: Arc<Bell>,
    /// Ends with the thread, so that nobody waits for an answer of one that is gone.
    orders: Receiver<PushOrder>,
    /// The next order, when it was looked for before sleep.
    order: Option<PushOrder>,
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}

impl Runner {
    /// The thread, ready to run.
    ///
    /// # Errors
    /// Out of descriptors.
    pub(crate) fn new(
        shared: Arc<Shared>,
        bell: Arc<Bell>,
        orders: Receiver<PushOrder>,
    ) -> std::io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(bell.waker(), 0, Interest::Read)?;
        Ok(Self { shared, epoll, events: Vec::new(), bell, orders, order: None })
    }

    /// Runs until told to stop.
    pub(crate) fn run(mut self) {
        loop {
            self.wait();
            let orders = self.order.take().into_iter().chain(self.orders.try_iter());
            let mut push = self.shared.lock();
            push.round(orders);
            if !push.running {
                return;
            }
        }
    }

    fn wait(&mut self) {
        let Self { shared, epoll, events, bell, orders, order } = self;
        let mut own = (orders, order, events);
        bell.rest(
            &mut own,
            |(orders, order, _)| -> Duration {
                if order.is_none() {
                    **order = orders.try_recv().ok();
                }
                shared.lock().rest(order.is_some())
            },
            |(_, _, events), rest| {
                events.clear();
                if let Err(error) = epoll.wait(Some(rest), events) {
                    tracing::error!(%error, "waiting for descriptors failed");
                }
                !events.is_empty()
            },
        );
    }
}

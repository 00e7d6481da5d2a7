//! The push half in the daemon.
//!
//! One thread works for dispatcher, rendezvous, topology manager and link state
//! (`onym_pubsub::ControlPlane`). Shards do everything with publications that a look at tables of
//! their own is enough for: they pass frames of neighbours on, publish and hand out. What they
//! cannot do crosses to the thread, and what that tells them crosses back (`lane`).

mod carry;
mod lane;
mod obey;
pub(crate) mod old;
mod order;
mod settings;
mod store;
mod take;
mod thread;
mod trust;
mod view;

pub(crate) use lane::{Answer, Down, Passed, Publishing, PushLanes, ShardLanes, Things, Up, lanes};
pub(crate) use order::{ANSWER_MAX, NewLink, ORDERS_MAX, PushOrder, PushPort, Question};
pub(crate) use settings::Settings;
pub(crate) use store::{Keeper, Store};
pub(crate) use take::status_of;
pub(crate) use thread::{POLICY, Parts, PushEngine, PushThread};
pub(crate) use view::may_use_board;

use onym_tables::FaceId;
use onym_wire::push::Label;

/// A link of the push half, ready to be used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    pub(crate) face: FaceId,
    pub(crate) number: u32,
    pub(crate) cost: u16,
    /// A connection, of which the end is told.
    pub(crate) is_connected: bool,
    /// The domain at its other end, when it is another one.
    pub(crate) domain: Option<Label>,
}

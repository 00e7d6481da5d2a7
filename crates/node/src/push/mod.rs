//! The push half in the daemon.
//!
//! One thread runs dispatcher, rendezvous, topology manager and link state
//! (`onym_pubsub::ControlPlane`). Shards handle publications for which their own tables are enough:
//! they forward frames of neighbours, publish, and deliver. Everything else crosses to the thread,
//! and its results cross back (`lane`).

mod carry;
mod lane;
mod obey;
pub(crate) mod old;
mod order;
mod settings;
mod store;
mod take;
mod thread;
mod trace;
mod trust;
mod view;

pub(crate) use lane::{Answer, Down, Passed, Publishing, PushLanes, ShardLanes, Things, Up, lanes};
pub(crate) use order::{ANSWER_MAX, NewLink, ORDERS_MAX, PushOrder, PushPort, Question, Traced};
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
    /// What it carries, in kilobits per second; 0: nobody knows.
    pub(crate) capacity: u32,
    /// A connection, of which the end is told.
    pub(crate) is_connected: bool,
    /// The domain at its other end, when it is another one.
    pub(crate) domain: Option<Label>,
}

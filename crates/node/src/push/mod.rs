//! The push half in the daemon.
//!
//! One thread works for dispatcher, rendezvous, topology manager and link state
//! (`onym_pubsub::Node`). Shards pass frames of neighbours on by themselves, with copies of the
//! forwarder; what is for this node, and the messages of applications, crosses to the thread in
//! batches, as packets cross between shards, and what it sends crosses back. Data that needs no
//! more than a look at tables is done by the shard itself where nobody else is at it (`in_place`).

mod apps;
mod in_place;
pub(crate) mod old;
mod order;
mod run;
mod settings;
mod store;
mod thread;
mod trust;
mod view;

pub(crate) use in_place::{Rest, Shared, is_data};
pub(crate) use order::{ANSWER_MAX, NewLink, PushOrder, PushPort, Question};
pub(crate) use run::Runner;
pub(crate) use settings::Settings;
pub(crate) use store::{Keeper, Store};
pub(crate) use thread::{Parts, PushThread};
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

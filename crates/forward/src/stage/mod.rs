//! What the stages of the path work on. Each stage is a function over the state that it needs:
//!
//! | state | of | stages |
//! |---|---|---|
//! | [`Pending`] | PIT, dead nonces, faces and their shares | loops, pit_insert, displace, pit_match, fan_out, finalize, emit |
//! | [`Strategies`] | strategy choices, measurements | decide, act, nack, timers |
//! | [`RouteStage`] | the FIB, or whatever stands in for it | fib_lookup |
//! | [`CacheStage`] | the content store, or none | cs_lookup, cs_admit |
//!
//! A [`crate::Forwarder`] has one of each. A service, which does only a part of a node's work, uses the
//! state of that part with the same functions.

mod arrival;
mod attention;
mod cache;
mod offers;
mod pending;
mod routes;
pub mod rules;
mod strategies;
mod watch;

pub use arrival::Arrival;
pub(crate) use attention::Attention;
pub use cache::{Cache, CacheStage, NoCache, query, query_alone};
pub use offers::{OFFERS_MAX, Offer, OfferCounts, Offers, stays_near};
pub use pending::{Pending, Waiting};
pub use routes::{Handed, Hops, RouteStage, Routes, Target, Upstreams, first_delegation};
pub use strategies::Strategies;
pub use watch::{HELD_MAX, Held, Watch, WatchCounts, WatchRule};

//! Configuration: a type for each kind of service, in a file of its own. Their serde form is that
//! of spec/services.md, section 7.

mod backward_router;
mod content_store;
mod name_filter;
mod name_router;
mod packet_dispatcher;
mod signature_verifier;
mod strategy_forwarder;

pub use backward_router::{BackwardRouter, Retransmission, Unsolicited};
pub use content_store::{ContentStore, Mode as CacheMode, Order};
pub use name_filter::{Action, NameFilter};
pub use name_router::{Forwarder, Matching, NameRouter, RegistrationPolicy};
pub use packet_dispatcher::PacketDispatcher;
pub use signature_verifier::{Filter, Mode as VerifierMode, SignatureVerifier};
pub use strategy_forwarder::{Strategy, StrategyForwarder};

use crate::settings::Settings;
use serde::Serialize;

/// Configuration of one service.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    /// What only its kind has.
    #[serde(flatten)]
    pub own: KindConfig,
    /// What all kinds have.
    #[serde(flatten)]
    pub common: Settings,
}

/// Configuration of one kind of service.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum KindConfig {
    /// Of a name router.
    NameRouter(NameRouter),
    /// Of a backward router.
    BackwardRouter(BackwardRouter),
    /// Of a packet dispatcher.
    PacketDispatcher(PacketDispatcher),
    /// Of a content store.
    ContentStore(ContentStore),
    /// Of a strategy forwarder.
    StrategyForwarder(StrategyForwarder),
    /// Of a signature verifier.
    SignatureVerifier(SignatureVerifier),
    /// Of a name filter.
    NameFilter(NameFilter),
    /// Of a merged forwarder.
    Forwarder(Forwarder),
}

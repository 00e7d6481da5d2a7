//! The element of each kind.

use crate::element::Element;
use crate::kind::Kind;
use onym_tables::HashKey;

impl Kind {
    /// An element of this kind that was just made.
    pub(crate) fn element(self, key: &HashKey, seed: u64) -> Box<dyn Element> {
        match self {
            Self::NameRouter => Box::new(crate::name_router::NameRouter::new()),
            Self::BackwardRouter => {
                Box::new(crate::backward_router::BackwardRouter::new(key, seed))
            }
            Self::PacketDispatcher => Box::new(crate::dispatcher::PacketDispatcher::new()),
            Self::ContentStore => Box::new(crate::content_store::ContentCache::new(key)),
            Self::StrategyForwarder => {
                Box::new(crate::strategy_forwarder::StrategyForwarder::new(key, seed))
            }
            Self::SignatureVerifier => Box::new(crate::verifier::SignatureVerifier::new()),
            Self::NameFilter => Box::new(crate::name_filter::NameFilter::new()),
            Self::Forwarder => Box::new(crate::forwarder::MergedForwarder::new(key, seed)),
        }
    }
}

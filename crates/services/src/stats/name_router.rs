//! Statistics of a name router.

use serde::Serialize;

/// A name router.
#[derive(Debug, Clone, Serialize)]
pub struct NameRouter {
    /// Routes in the FIB.
    pub routes: u64,
    /// Registrations by producers.
    pub registrations: Registrations,
    /// Interests without a route.
    pub no_route: u64,
    /// Data outside of the prefixes of their producer.
    pub prefix_rejected: u64,
    /// Interests from consumers.
    pub in_interests: u64,
    /// Data to consumers.
    pub out_data: u64,
}

/// What is counted of registrations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Registrations {
    /// Commands carried out.
    pub accepted: u64,
    /// Commands refused.
    pub refused: u64,
    /// Routes taken back: by command, by expiry or with their face.
    pub removed: u64,
}

//! From a signed packet to a trust anchor: certificates fetched once, chains cached.

mod anchors;
mod cache;
mod claim;
mod refusal;
mod validator;
mod wait;
mod window;

pub use anchors::{AnchorError, Anchors, GroupChange};
pub use claim::Context;
pub use refusal::{Element, Refusal};
pub use validator::{Event, Failure, Fetch, Limits, OldData, Trusted, Validator};

//! From a signed packet to a trust anchor: certificates fetched once, chains cached.

mod anchors;
mod cache;
mod claim;
mod event;
mod refusal;
mod validator;
mod wait;
mod waiting;
mod window;

pub use anchors::{AnchorError, Anchors, GroupChange};
pub use claim::Context;
pub use event::{Event, Failure, Fetch, Trusted};
pub use refusal::{Element, Refusal};
pub use validator::{Limits, OldData, Validator};

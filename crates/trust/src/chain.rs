//! From a signed packet to a trust anchor: certificates fetched once, chains cached.

mod anchors;
mod cache;
mod claim;
mod event;
mod failures;
mod judge;
mod list;
mod listed;
mod record;
mod refusal;
mod revocation;
mod validator;
mod wait;
mod waiting;
mod window;

pub use anchors::{AnchorError, Anchors, GroupChange};
pub use claim::Context;
pub use event::{Event, Failure, Fetch, Trusted};
pub use refusal::{Element, Refusal};
pub use revocation::{
    ListError, Records, Revoked, Revoker, no_record_name, record, record_by, record_name,
};
pub use validator::{Counts, Limits, OldData, Validator};

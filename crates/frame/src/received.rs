//! Frames as faces receive them.

use crate::Buf;

/// One frame as a face received it.
#[derive(Debug, Clone)]
pub struct RxFrame {
    /// Which neighbour sent it, on a face with several (a hash of its address); 0 on point-to-point faces.
    pub endpoint: u64,
    /// The frame: one TLV, whole.
    pub bytes: Buf,
}

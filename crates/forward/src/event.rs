//! What the data path tells the control plane.

use onym_frame::Buf;
use onym_tables::FaceId;
use onym_wire::name::Name;

/// Something that the control plane should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Data brought a prefix announcement over a face: a route could be learned, once validated.
    Learn {
        /// The face.
        face: FaceId,
        /// The announcement, one Data.
        announcement: Buf,
    },
    /// A route learned for this name failed on a face.
    Unlearn {
        /// The face.
        face: FaceId,
        /// Name of the Interest that failed.
        name: Name,
    },
}

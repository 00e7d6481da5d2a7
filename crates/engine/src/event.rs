//! What an engine tells its driver of faces.

/// What happened to a face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaceEvent {
    /// The connection that was being made is there.
    Connected,
    /// The transport had an error. After one that it does not survive, the face has none.
    Failed {
        /// Why, in words.
        reason: String,
        /// Whether the transport can never be used again.
        is_fatal: bool,
    },
    /// The transport has become one of another kind.
    Changed,
    /// The queue was flushed, as [`crate::LocalFace::tell_flushed`] asked to hear.
    Flushed,
}

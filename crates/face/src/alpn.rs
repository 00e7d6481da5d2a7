//! What is carried over QUIC, as TLS negotiates it (ALPN; spec/registry.md).

/// Frames of nodes.
const NODES: &[u8] = b"ndn";
/// HTTP/3, of browsers.
pub(crate) const BROWSERS: &[u8] = b"h3";
/// What is spoken, the better first.
pub(crate) const PROTOCOLS: &[&[u8]] = &[NODES, BROWSERS];

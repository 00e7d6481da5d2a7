//! How far names may go.

/// The component `localhost` as the first of a name's value.
const LOCALHOST: &[u8] = b"\x08\x09localhost";
/// The component `localhop`.
const LOCALHOP: &[u8] = b"\x08\x08localhop";

/// Whether a name (its value) may not leave this host.
#[inline]
pub(crate) fn is_localhost(name: &[u8]) -> bool {
    name.starts_with(LOCALHOST)
}

/// Whether a name (its value) may go one hop only.
#[inline]
pub(crate) fn is_localhop(name: &[u8]) -> bool {
    name.starts_with(LOCALHOP)
}

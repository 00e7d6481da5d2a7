//! In place of QUIC, in programs that were built without it.

use super::Door;
use crate::FaceError;
use crate::bridge::Link;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::CertificateDer;

fn absent<T>() -> Result<T, FaceError> {
    Err(FaceError::Quic("this program was built without it (feature quic)".into()))
}

pub(super) fn connect(
    _remote: SocketAddr,
    _known: Option<Vec<CertificateDer<'static>>>,
    _link: Arc<Link>,
) -> Result<(), FaceError> {
    absent()
}

pub(super) fn listen(_address: SocketAddr, _door: Door) -> Result<SocketAddr, FaceError> {
    absent()
}

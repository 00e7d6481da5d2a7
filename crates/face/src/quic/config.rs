//! How connections are made and what they may hold.

use crate::FaceError;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, ConnectionError, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::crypto::{
    CryptoProvider, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    self, CertificateError, DigitallySignedStruct, Error, SignatureScheme, version,
};

/// A peer that has said nothing for so many seconds is gone.
const IDLE_S: u32 = 30;
/// How often a silent connection is kept open: NATs forget after half a minute.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Datagrams that wait to be read, in octets; the oldest give way.
const DATAGRAMS_IN: usize = 1 << 20;
/// Datagrams that wait to be sent, in octets; the face keeps what does not fit.
const DATAGRAMS_OUT: usize = 256 << 10;
/// What a peer may send on one stream before it is read; the greatest request fits.
const STREAM_WINDOW: u32 = 32 << 10;
/// First packets that wait for their handshake to begin, and what they may hold.
const INCOMING_MAX: usize = 256;
const INCOMING_OCTETS: u64 = 64 << 10;

pub(super) fn refused(error: impl std::fmt::Display) -> FaceError {
    FaceError::Quic(error.to_string())
}

/// Why a connection ended.
pub(super) fn ended(why: ConnectionError) -> FaceError {
    match why {
        ConnectionError::ApplicationClosed(_) | ConnectionError::LocallyClosed => FaceError::Closed,
        ConnectionError::TimedOut => FaceError::Silent(u64::from(IDLE_S)),
        other => refused(other),
    }
}

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let idle = IdleTimeout::from(VarInt::from_u32(IDLE_S * 1000));
    config
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(Some(KEEP_ALIVE))
        // A browser has one request and three streams of HTTP/3; more are for nothing.
        .max_concurrent_bidi_streams(VarInt::from_u32(4))
        .max_concurrent_uni_streams(VarInt::from_u32(8))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(4 * STREAM_WINDOW))
        .send_window(u64::from(STREAM_WINDOW))
        .datagram_receive_buffer_size(Some(DATAGRAMS_IN))
        .datagram_send_buffer_size(DATAGRAMS_OUT);
    Arc::new(config)
}

/// That of a listener which shows what `tls` says.
pub(super) fn server(tls: Arc<rustls::ServerConfig>) -> Result<ServerConfig, FaceError> {
    let crypto = QuicServerConfig::try_from(tls).map_err(refused)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config
        .transport_config(transport())
        .max_incoming(INCOMING_MAX)
        .incoming_buffer_size(INCOMING_OCTETS)
        .incoming_buffer_size_total(16 * INCOMING_OCTETS);
    Ok(config)
}

/// That of a client which speaks `protocols` and believes who shows one of `known`, or anybody.
pub(super) fn client(
    known: Option<Vec<CertificateDer<'static>>>,
    protocols: &[&[u8]],
) -> Result<ClientConfig, FaceError> {
    let provider = Arc::new(default_provider());
    let verifier = Arc::new(Shown { known, provider: Arc::clone(&provider) });
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])
        .map_err(refused)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    tls.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let crypto = QuicClientConfig::try_from(tls).map_err(refused)?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport());
    Ok(config)
}

/// Believes certificates by being known, not by who signed them: the file names nodes, not
/// authorities. That the peer has the key of what it shows is checked in any case.
#[derive(Debug)]
struct Shown {
    known: Option<Vec<CertificateDer<'static>>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Shown {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.known {
            Some(known) if !known.contains(end_entity) => {
                Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

//! The control thread: handshakes, and one task per connection.

use super::config::{self, ended, refused};
use super::{Door, carry, face, h3};
use crate::FaceError;
use crate::alpn::{BROWSERS, PROTOCOLS};
use crate::bridge::{self, Ends, HANDSHAKE_TIMEOUT, Handshakes, Link, Place};
use quinn::crypto::rustls::HandshakeData;
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Incoming, ServerConfig, TokioRuntime,
};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_rustls::rustls::{self, pki_types::CertificateDer};

/// Socket buffers asked for, in octets; the kernel gives at most its own limit.
const BUFFER: usize = 2 << 20;

/// The runtime of the control thread, which lives as long as the process.
fn runtime() -> Result<&'static Handle, FaceError> {
    static RUNTIME: OnceLock<Result<Handle, String>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| bridge::start("onym-quic"));
    runtime.as_ref().map_err(|e| FaceError::Quic(e.clone()))
}

/// What speaks QUIC at `local`, and where that is.
fn endpoint(local: SocketAddr, server: Option<ServerConfig>) -> io::Result<(Endpoint, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
    if local.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    onym_sys::socket::set_recv_buffer(&socket, BUFFER)?;
    onym_sys::socket::set_send_buffer(&socket, BUFFER)?;
    socket.bind(&local.into())?;
    let socket = std::net::UdpSocket::from(socket);
    let address = socket.local_addr()?;
    let config = EndpointConfig::default();
    Ok((Endpoint::new(config, server, socket, Arc::new(TokioRuntime))?, address))
}

/// Whether the handshake found that a browser, or who speaks as one, is at the other end.
fn is_browsers(connection: &Connection) -> bool {
    let data = connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
    data.and_then(|data| data.protocol).as_deref() == Some(BROWSERS)
}

pub(super) fn connect(
    remote: SocketAddr,
    known: Option<Vec<CertificateDer<'static>>>,
    link: Arc<Link>,
) -> Result<(), FaceError> {
    let (runtime, config) = (runtime()?, config::client(known, PROTOCOLS)?);
    let _inside = runtime.enter();
    let (endpoint, _) = endpoint(Ends::towards(remote).local, None)
        .map_err(|e| FaceError::io("making a socket for QUIC", e))?;
    runtime.spawn(client(endpoint, config, remote, link));
    Ok(())
}

/// A client's connection, from the first packet to the last.
async fn client(endpoint: Endpoint, config: ClientConfig, remote: SocketAddr, link: Arc<Link>) {
    let connect = async {
        let name = remote.ip().to_string();
        let connecting = endpoint.connect_with(config, remote, &name).map_err(refused)?;
        let connection = connecting.await.map_err(ended)?;
        let session = match is_browsers(&connection) {
            true => Some(h3::ask(&connection, remote).await?),
            false => None,
        };
        Ok::<_, FaceError>((connection, session))
    };
    match timeout(HANDSHAKE_TIMEOUT, connect).await {
        Ok(Ok((connection, session))) => {
            link.connected();
            carry::carry(&connection, session, &link).await;
        }
        Ok(Err(why)) => link.close(why),
        Err(_) => link.close(FaceError::Silent(HANDSHAKE_TIMEOUT.as_secs())),
    }
    // The peer may be gone; what matters is that it hears of the end if it is not.
    let _ = timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
}

/// Listens at `address`; where that is.
pub(super) fn listen(address: SocketAddr, door: Door) -> Result<SocketAddr, FaceError> {
    let (runtime, shown) = (runtime()?, door.certificate.shown());
    let config = config::server(Arc::clone(&shown))?;
    let _inside = runtime.enter();
    let (endpoint, address) = endpoint(address, Some(config.clone()))
        .map_err(|e| FaceError::io("listening for QUIC connections", e))?;
    runtime.spawn(async move {
        let door = Arc::new(door);
        tokio::select! {
            () = door.stop.notified() => {}
            () = accept(&endpoint, &door, address.port(), shown, Arc::new(config)) => {}
        }
    });
    Ok(address)
}

/// Begins the handshakes of those who come.
async fn accept(
    endpoint: &Endpoint,
    door: &Arc<Door>,
    port: u16,
    mut shown: Arc<rustls::ServerConfig>,
    mut config: Arc<ServerConfig>,
) {
    let handshakes = Handshakes::new();
    while let Some(incoming) = endpoint.accept().await {
        // Addresses of datagrams can be forged: once many have come, who comes must show that it hears
        // us before it gets a place, which costs us nothing to remember.
        if handshakes.are_many() && !incoming.remote_address_validated() && incoming.may_retry() {
            let _ = incoming.retry();
            continue;
        }
        let now = door.certificate.shown();
        if !Arc::ptr_eq(&now, &shown) {
            shown = now;
            match config::server(Arc::clone(&shown)) {
                Ok(made) => config = Arc::new(made),
                Err(error) => tracing::warn!(%error, "the certificate before is shown on"),
            }
        }
        let (door, config) = (Arc::clone(door), Arc::clone(&config));
        handshakes.begin(incoming.remote_address(), |place| async move {
            if let Err(reason) = meet(incoming, config, &door, port, place).await {
                tracing::debug!(%reason, "a QUIC handshake failed");
            }
        });
    }
}

/// A connection, from the handshake to the last packet.
async fn meet(
    incoming: Incoming,
    config: Arc<ServerConfig>,
    door: &Door,
    port: u16,
    place: Place,
) -> Result<(), FaceError> {
    let handshake = async {
        let connection = incoming.accept_with(config).map_err(ended)?.await.map_err(ended)?;
        let remote = connection.remote_address();
        let local = connection.local_ip().unwrap_or(Ends::towards(remote).local.ip());
        let ends = Ends { local: SocketAddr::new(local.to_canonical(), port), remote };
        let session = match is_browsers(&connection) {
            true => Some(h3::greet(&connection, &door.gate, ends).await?),
            false => None,
        };
        Ok::<_, FaceError>((connection, session, ends))
    };
    let done = timeout(HANDSHAKE_TIMEOUT, handshake).await;
    if !place.leave() {
        return Ok(());
    }
    let (connection, session, ends) =
        done.map_err(|_| FaceError::Silent(HANDSHAKE_TIMEOUT.as_secs()))??;
    let too_many = || FaceError::Quic("too many connections at once".into());
    let link = door.arrivals.put(face(Link::new()?, ends)).ok_or_else(too_many)?;
    carry::carry(&connection, session, &link).await;
    Ok(())
}

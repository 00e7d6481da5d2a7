//! The control thread: handshakes, and one task per connection.

use super::{Gate, server_face};
use crate::FaceError;
use crate::bridge::{
    self, Arrivals, BridgedFace, Ends, HANDSHAKE_TIMEOUT, Handshakes, Link, Place,
};
use crate::certificate::Certificate;
use futures_util::{SinkExt, StreamExt};
use onym_wire::PACKET_LEN_MAX;
use onym_wire::mgmt::Scope;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

/// The runtime of the control thread, which lives as long as the process.
pub(super) fn runtime() -> Result<&'static Handle, FaceError> {
    static RUNTIME: OnceLock<Result<Handle, String>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| bridge::start("onym-websocket"));
    runtime.as_ref().map_err(|e| FaceError::WebSocket(e.clone()))
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(PACKET_LEN_MAX))
        .max_frame_size(Some(PACKET_LEN_MAX))
        .read_buffer_size(16 << 10)
}

/// What all connections to one listener share.
pub(super) struct Door {
    pub(super) gate: Gate,
    /// What is shown to those who connect by TLS, where all do.
    pub(super) certificate: Option<Arc<Certificate>>,
    pub(super) arrivals: Arc<Arrivals>,
    pub(super) ping_every: Duration,
}

/// Accepts until told to stop.
pub(super) async fn listen(socket: std::net::TcpListener, door: Arc<Door>, stop: Arc<Notify>) {
    let listener = match TcpListener::from_std(socket) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "WebSocket connections cannot be accepted"),
    };
    let handshakes = Handshakes::new();
    loop {
        let connection = tokio::select! {
            () = stop.notified() => return,
            connection = listener.accept() => connection,
        };
        let (stream, peer) = match connection {
            Ok(connection) => connection,
            Err(error) => {
                tracing::warn!(%error, "a WebSocket connection was not accepted");
                // Out of descriptors, most likely: give others the time to close some.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let door = Arc::clone(&door);
        handshakes.begin(peer, |place| async move {
            if let Err(reason) = meet(stream, &door, place).await {
                tracing::debug!(%reason, "a WebSocket handshake failed");
            }
        });
    }
}

/// A connection, from the handshake to the last packet.
async fn meet(stream: TcpStream, door: &Door, place: Place) -> Result<(), FaceError> {
    let failed = |e| FaceError::io("accepting a WebSocket connection", e);
    let ends = (|| {
        stream.set_nodelay(true)?;
        Ok(Ends { local: stream.local_addr()?, remote: stream.peer_addr()? })
    })()
    .map_err(failed)?;
    let Some(certificate) = &door.certificate else {
        return greet(stream, ends, door, place).await;
    };
    match timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(certificate.shown()).accept(stream)).await {
        Ok(Ok(stream)) => greet(stream, ends, door, place).await,
        Ok(Err(error)) => Err(failed(error)),
        Err(_) => Err(FaceError::Silent(HANDSHAKE_TIMEOUT.as_secs())),
    }
}

/// The same from where octets can be exchanged.
async fn greet<S: Stream>(
    stream: S,
    ends: Ends,
    door: &Door,
    place: Place,
) -> Result<(), FaceError> {
    let done = handshake(stream, ends, &door.gate).await;
    if !place.leave() {
        return Ok(());
    }
    let (socket, face) = done?;
    let too_many = || FaceError::WebSocket("too many connections at once".into());
    let link = door.arrivals.put(face).ok_or_else(too_many)?;
    carry(socket, &link, door.ping_every).await;
    Ok(())
}

/// What a WebSocket goes over.
trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// The server's half of a handshake.
async fn handshake<S: Stream>(
    stream: S,
    ends: Ends,
    gate: &Gate,
) -> Result<(WebSocketStream<S>, BridgedFace), FaceError> {
    let mut scope = Scope::NonLocal;
    #[allow(clippy::result_large_err)] // The library wants this type.
    let admit = |request: &Request, response: Response| {
        match gate.admit(request.headers(), ends) {
            Ok(true) => scope = Scope::Local,
            Ok(false) => {}
            Err(why) => return Err(forbidden(why)),
        }
        Ok(response)
    };
    let shake = tokio_tungstenite::accept_hdr_async_with_config(stream, admit, Some(config()));
    let socket = timeout(HANDSHAKE_TIMEOUT, shake)
        .await
        .map_err(|_| FaceError::Silent(HANDSHAKE_TIMEOUT.as_secs()))?
        .map_err(|e| FaceError::WebSocket(e.to_string()))?;
    Ok((socket, server_face(Link::new()?, ends, scope)))
}

fn forbidden(why: String) -> ErrorResponse {
    let mut response = ErrorResponse::new(Some(why + "\n"));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

/// A client's connection, from the first packet to the last.
pub(super) async fn client(
    remote: SocketAddr,
    path: String,
    link: Arc<Link>,
    ping_every: Duration,
) {
    let connect = async {
        let stream = TcpStream::connect(remote).await.map_err(Error::Io)?;
        stream.set_nodelay(true).map_err(Error::Io)?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let url = format!("ws://{remote}{slash}{path}");
        tokio_tungstenite::client_async_with_config(url, stream, Some(config())).await
    };
    match timeout(HANDSHAKE_TIMEOUT, connect).await {
        Ok(Ok((socket, _))) => {
            link.connected();
            carry(socket, &link, ping_every).await;
        }
        Ok(Err(e)) => link.close(FaceError::WebSocket(e.to_string())),
        Err(_) => link.close(FaceError::Silent(HANDSHAKE_TIMEOUT.as_secs())),
    }
}

/// How long a peer has to take what is sent when the face has gone.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Moves frames both ways until the connection or the face is over.
async fn carry<S: Stream>(mut socket: WebSocketStream<S>, link: &Link, ping_every: Duration) {
    let why = run(&mut socket, link, ping_every).await;
    link.close(why);
    // The peer may be gone; what matters is that the TCP connection ends.
    let _ = timeout(LAST_WORDS, socket.close(None)).await;
}

async fn run<S: Stream>(
    socket: &mut WebSocketStream<S>,
    link: &Link,
    ping_every: Duration,
) -> FaceError {
    let silent = || FaceError::Silent(ping_every.as_secs());
    let mut ping = tokio::time::interval(ping_every);
    ping.reset();
    let mut is_alive = true;
    loop {
        let (is_full, is_over) = {
            let state = link.state();
            (state.inbound.is_full(), state.is_over)
        };
        if is_over {
            // What it had queued before it went, such as the answer to who asked for its end.
            let _ = timeout(LAST_WORDS, send(socket, link)).await;
            return FaceError::Closed;
        }
        tokio::select! {
            message = socket.next(), if !is_full => {
                is_alive = true;
                match message {
                    Some(Ok(message)) => if take(link, message) { return FaceError::Closed },
                    Some(Err(e)) => return FaceError::WebSocket(e.to_string()),
                    None => return FaceError::Closed,
                }
            }
            () = link.drained.notified() => {}
            () = link.queued.notified() => match timeout(ping_every, send(socket, link)).await {
                Ok(Ok(())) => {}
                Ok(Err(e)) => return FaceError::WebSocket(e.to_string()),
                Err(_) => return silent(),
            },
            _ = ping.tick() => {
                // What was not read cannot have answered.
                if !is_alive && !is_full {
                    return silent();
                }
                is_alive = false;
                let asked = socket.send(Message::Ping(Vec::new().into()));
                if timeout(ping_every, asked).await.is_err() {
                    return silent();
                }
            }
        }
    }
}

/// One message from the peer; true when it closes the connection.
fn take(link: &Link, message: Message) -> bool {
    match message {
        Message::Binary(bytes) => link.take_in(&bytes),
        Message::Text(_) => link.state().counters.in_malformed += 1,
        Message::Close(_) => return true,
        Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
    }
    false
}

/// Sends what the face has queued.
async fn send<S: Stream>(socket: &mut WebSocketStream<S>, link: &Link) -> Result<(), Error> {
    while let Some(frame) = link.take_out() {
        socket.feed(Message::Binary(frame.to_vec().into())).await?;
    }
    socket.flush().await
}

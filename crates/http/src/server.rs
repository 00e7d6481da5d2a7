//! An HTTP server for untrusted clients: connections are bounded, shared among peers, and closed when
//! they send nothing.

use crate::places::{Busy, Place, Places, Share, Standing};
use crate::tls::ServerTls;
use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use onym_sys::peer::{Credentials, credentials, tcp_user};
use std::convert::Infallible;
use std::fmt::Display;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Connections at once of one listener.
pub const CONNECTIONS_MAX: usize = 64;

/// How long a client may take for the head of a request; then its connection is closed.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the listener rests when the system refuses a connection (no descriptors left).
const REST: Duration = Duration::from_millis(100);

/// Who asks: an extension of each request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Its address, where it has one.
    pub address: Option<SocketAddr>,
    /// Its user, when it is a process of this machine.
    pub uid: Option<u32>,
    /// By a Unix socket: its user and groups.
    pub credentials: Option<Credentials>,
    standing: Arc<Standing>,
}

impl Caller {
    /// Says that a request of this connection was allowed: it gives way to no stranger.
    pub fn prove(&self) {
        self.standing.prove();
    }
}

/// Serves `app` at `listener` until the future is dropped.
pub async fn serve(listener: TcpListener, app: Router) {
    serve_shaken(listener, app, |socket| async { Ok::<_, Infallible>(socket) }).await;
}

/// The same, with TLS where it is given.
pub async fn serve_by(listener: TcpListener, tls: Option<ServerTls>, app: Router) {
    match tls {
        None => serve(listener, app).await,
        Some(tls) => serve_shaken(listener, app, |socket| tls.clone().accept(socket)).await,
    }
}

/// The same at a Unix socket.
pub async fn serve_unix(listener: UnixListener, app: Router) {
    let places = Places::new(CONNECTIONS_MAX);
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(REST).await;
            continue;
        };
        let who = of_unix(&socket);
        admit(&places, who, &app, async { Ok::<_, Infallible>(socket) });
    }
}

/// The same after a handshake on each connection. The handshake has to end by itself: it holds the
/// place of a connection, and a silent one holds nobody else up.
pub async fn serve_shaken<S, E, F>(
    listener: TcpListener,
    app: Router,
    shake: impl Fn(TcpStream) -> F,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    E: Display + Send,
    F: Future<Output = Result<S, E>> + Send + 'static,
{
    let places = Places::new(CONNECTIONS_MAX);
    loop {
        let Ok((socket, peer)) = listener.accept().await else {
            tokio::time::sleep(REST).await;
            continue;
        };
        let _ = socket.set_nodelay(true);
        let who = of_tcp(&socket, peer);
        admit(&places, who, &app, shake(socket));
    }
}

/// Who is at the other end of a connection.
struct Who {
    address: Option<SocketAddr>,
    uid: Option<u32>,
    credentials: Option<Credentials>,
    share: Share,
}

fn of_tcp(socket: &TcpStream, peer: SocketAddr) -> Who {
    let uid = tcp_user(socket);
    let share = uid.map_or_else(|| Share::of_address(peer.ip()), Share::User);
    Who { address: Some(peer), uid, credentials: None, share }
}

fn of_unix(socket: &UnixStream) -> Who {
    let credentials = credentials(socket).ok();
    let uid = credentials.as_ref().map(|c| c.uid);
    let share = uid.map_or(Share::Unknown, Share::User);
    Who { address: None, uid, credentials, share }
}

/// Gives a connection a place and serves it there; one that gets none is closed.
fn admit<S, E, F>(places: &Arc<Places>, who: Who, app: &Router, shaking: F)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    E: Display + Send,
    F: Future<Output = Result<S, E>> + Send + 'static,
{
    let Some(place) = places.take(who.share) else { return };
    let (id, app) = (place.id(), app.clone());
    let caller = Caller {
        address: who.address,
        uid: who.uid,
        credentials: who.credentials,
        standing: Arc::clone(&place.standing),
    };
    let task = tokio::spawn(async move {
        match shaking.await {
            Ok(socket) => converse(socket, app, caller, place).await,
            Err(error) => tracing::info!(peer = ?caller.address, %error, "a TLS handshake failed"),
        }
    });
    places.hold(id, task.abort_handle());
}

/// Answers the requests of one connection.
async fn converse<S>(socket: S, app: Router, caller: Caller, place: Place)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let app = TowerToHyperService::new(app);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(caller.clone());
        let busy = place.busy();
        let answer = app.call(request);
        async move { answer.await.map(|r| r.map(|body| Body::new(Answering { body, _busy: busy }))) }
    });
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(socket), service)
        .await;
}

/// The body of an answer; the connection is busy until it is out.
struct Answering {
    body: Body,
    _busy: Busy,
}

impl hyper::body::Body for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

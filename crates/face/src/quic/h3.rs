//! WebTransport over HTTP/3, as much of it as one session of datagrams needs.
//!
//! The peer's control streams are left unread: they hold settings that change nothing here, and a
//! QPACK table that it may not use, as we announce none. Streams inside the session are not for frames.

use super::config::refused;
use super::qpack;
use crate::FaceError;
use crate::bridge::Ends;
use crate::websocket::Gate;
use quinn::{Connection, RecvStream, SendStream};
use std::net::SocketAddr;
use tokio_tungstenite::tungstenite::http::{HeaderMap, HeaderName, HeaderValue, header};

/// Octets of frames up to the end of a request's or an answer's head.
const HEAD_MAX: usize = 16 << 10;

const FRAME_DATA: u64 = 0x0;
const FRAME_HEADERS: u64 = 0x1;
const FRAME_SETTINGS: u64 = 0x4;
const STREAM_CONTROL: u64 = 0x0;

/// What we can: extended CONNECT, datagrams (RFC 9297 and the draft before it), WebTransport of draft
/// 2, which browsers speak, and of draft 7.
const SETTINGS: [(u64, u64); 5] =
    [(0x8, 1), (0x33, 1), (0xFF_D277, 1), (0x2B60_3742, 1), (0xC671_706A, 1)];

/// By which a client says, and a server confirms, that both speak draft 2.
const DRAFT_ASKED: &str = "sec-webtransport-http3-draft02";
const DRAFT: (&str, &str) = ("sec-webtransport-http3-draft", "draft02");

/// The path that NDN's servers of WebTransport have.
const PATH: &str = "/ndn";

/// A session, for as long as its stream is open.
#[derive(Debug)]
pub(super) struct Session {
    /// What its datagrams begin with.
    pub(super) number: u64,
    /// The end of this stream would end the connection.
    control: SendStream,
    answer: SendStream,
    request: RecvStream,
}

/// The number at the front of `bytes`, and what follows it.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let len = 1_usize << (bytes.first()? >> 6);
    let (head, rest) = bytes.split_at_checked(len)?;
    let value = head.iter().fold(0, |value, octet| value << 8 | u64::from(*octet));
    Some((value & (u64::MAX >> (66 - 8 * len)), rest))
}

pub(super) fn put_varint(out: &mut Vec<u8>, value: u64) {
    let (len, mark) = match value {
        0..0x40 => (1, 0),
        0x40..0x4000 => (2, 0x40),
        0x4000..0x4000_0000 => (4, 0x80),
        _ => (8, 0xC0),
    };
    let at = out.len();
    out.extend_from_slice(&value.to_be_bytes()[8 - len..]);
    if let Some(first) = out.get_mut(at) {
        *first |= mark;
    }
}

fn put_frame(out: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    put_varint(out, kind);
    put_varint(out, payload.len() as u64);
    out.extend_from_slice(payload);
}

async fn read_varint(stream: &mut RecvStream) -> Result<u64, FaceError> {
    let mut octets = [0; 8];
    let (first, more) = octets.split_at_mut(1);
    stream.read_exact(first).await.map_err(refused)?;
    let len = 1_usize << (first[0] >> 6);
    stream.read_exact(&mut more[..len - 1]).await.map_err(refused)?;
    let (value, _) = varint(&octets[..len]).ok_or_else(|| refused("a number without end"))?;
    Ok(value)
}

/// The head of a request or answer. Frames of kinds that nobody knows may come before it.
async fn read_head(stream: &mut RecvStream) -> Result<Vec<qpack::Field>, FaceError> {
    let mut left = HEAD_MAX;
    loop {
        let (kind, len) = (read_varint(stream).await?, read_varint(stream).await?);
        let len = usize::try_from(len).ok().filter(|len| len + 2 <= left);
        let len = len.ok_or_else(|| refused("the head of an HTTP message is too long"))?;
        left -= len + 2;
        let mut payload = vec![0; len];
        stream.read_exact(&mut payload).await.map_err(refused)?;
        match kind {
            FRAME_HEADERS => {
                let fields = qpack::decode(&payload);
                return fields.ok_or_else(|| refused("a head that cannot be read"));
            }
            FRAME_DATA | FRAME_SETTINGS => return Err(refused("an HTTP message without head")),
            _ => {}
        }
    }
}

async fn open_control(connection: &Connection) -> Result<SendStream, FaceError> {
    let mut settings = Vec::new();
    for (key, value) in SETTINGS {
        put_varint(&mut settings, key);
        put_varint(&mut settings, value);
    }
    let mut opening = Vec::new();
    put_varint(&mut opening, STREAM_CONTROL);
    put_frame(&mut opening, FRAME_SETTINGS, &settings);
    let mut control = connection.open_uni().await.map_err(refused)?;
    control.write_all(&opening).await.map_err(refused)?;
    Ok(control)
}

/// The server's half of a handshake: the first request opens the session, if the gate lets it in.
pub(super) async fn greet(
    connection: &Connection,
    gate: &Gate,
    ends: Ends,
) -> Result<Session, FaceError> {
    let control = open_control(connection).await?;
    let (mut answer, mut request) = connection.accept_bi().await.map_err(refused)?;
    let fields = read_head(&mut request).await?;
    let mut head = qpack::Encoder::new();
    if let Err((status, why)) = admit(&fields, gate, ends) {
        head.status(status);
        let mut out = Vec::new();
        put_frame(&mut out, FRAME_HEADERS, &head.end());
        put_frame(&mut out, FRAME_DATA, format!("{why}\n").as_bytes());
        answer.write_all(&out).await.map_err(refused)?;
        let _ = answer.finish();
        // Until the peer has it: the connection ends behind this.
        let _ = answer.stopped().await;
        return Err(refused(why));
    }
    head.status(qpack::Status::Ok);
    head.field(DRAFT.0, DRAFT.1);
    let mut out = Vec::new();
    put_frame(&mut out, FRAME_HEADERS, &head.end());
    answer.write_all(&out).await.map_err(refused)?;
    Ok(Session { number: answer.id().index(), control, answer, request })
}

/// Whether a request may open a session.
fn admit(fields: &[qpack::Field], gate: &Gate, ends: Ends) -> Result<(), (qpack::Status, String)> {
    let bad = |why: &str| (qpack::Status::BadRequest, why.to_owned());
    let has = |name: &str, value: &str| {
        let mut all = fields.iter().filter(|field| field.name == name.as_bytes());
        all.next().is_some_and(|f| f.value == value.as_bytes()) && all.next().is_none()
    };
    if !has(":method", "CONNECT") || !has(":protocol", "webtransport") {
        return Err(bad("only WebTransport sessions are served here"));
    }
    let mut headers = HeaderMap::new();
    for field in fields {
        let name: HeaderName = match field.name.as_slice() {
            b":authority" | b"host" => header::HOST,
            b"origin" => header::ORIGIN,
            _ => continue,
        };
        let value = HeaderValue::from_bytes(&field.value);
        headers.append(name, value.map_err(|_| bad("a header field cannot be read"))?);
    }
    let admitted = gate.admit(&headers, ends);
    admitted.map(drop).map_err(|why| (qpack::Status::Forbidden, why))
}

/// The client's half: asks the server for a session.
pub(super) async fn ask(connection: &Connection, remote: SocketAddr) -> Result<Session, FaceError> {
    let control = open_control(connection).await?;
    let (mut answer, mut request) = connection.open_bi().await.map_err(refused)?;
    let mut head = qpack::Encoder::new();
    head.connect(&remote.to_string(), PATH);
    head.field(DRAFT_ASKED, "1");
    let mut out = Vec::new();
    put_frame(&mut out, FRAME_HEADERS, &head.end());
    answer.write_all(&out).await.map_err(refused)?;
    let fields = read_head(&mut request).await?;
    let status = fields.iter().find(|field| field.name == b":status");
    match status.map(|field| field.value.as_slice()) {
        Some(b"200") => Ok(Session { number: answer.id().index(), control, answer, request }),
        other => {
            let said = other.map(String::from_utf8_lossy).unwrap_or_default();
            Err(refused(format!("the server opens no session (status {said})")))
        }
    }
}

/// Waits for the end of a session, for ever where there is none.
pub(super) async fn over(session: Option<Session>) {
    let Some(mut session) = session else { return std::future::pending().await };
    let mut waste = [0; 1024];
    // Capsules: what they say beside the end is nothing to us.
    while let Ok(Some(_)) = session.request.read(&mut waste).await {}
    let Session { control: _control, mut answer, .. } = session;
    let _ = answer.finish();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_the_shortest_form_and_read_back() {
        for (value, len) in [
            (0, 1),
            (63, 1),
            (64, 2),
            (16_383, 2),
            (16_384, 4),
            ((1 << 30) - 1, 4),
            (1 << 30, 8),
            ((1 << 62) - 1, 8),
        ] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), len);
            out.push(0xAA);
            assert_eq!(varint(&out), Some((value, &[0xAA][..])));
            for cut in 0..len {
                assert_eq!(varint(&out[..cut]), None, "{value} cut at {cut}");
            }
        }
        // RFC 9000, A.1: a longer form of the same number.
        assert_eq!(varint(&[0x40, 0x25]), Some((37, &[][..])));
    }
}

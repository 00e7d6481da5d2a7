//! Frames of a face as datagrams of a connection.

use super::config::ended;
use super::h3::{self, Session};
use crate::FaceError;
use crate::bridge::Link;
use quinn::{Connection, SendDatagramError, VarInt};

/// Moves frames both ways until the connection, the session or the face is over.
pub(super) async fn carry(connection: &Connection, session: Option<Session>, link: &Link) {
    let number = session.as_ref().map(|session| session.number);
    let why = tokio::select! {
        why = receive(connection, number, link) => why,
        why = send(connection, number, link) => why,
        () = h3::over(session) => FaceError::Closed,
    };
    link.close(why);
    connection.close(VarInt::from_u32(0), b"");
}

/// Takes datagrams while there is room; beyond, the oldest of those that wait give way.
async fn receive(connection: &Connection, session: Option<u64>, link: &Link) -> FaceError {
    loop {
        if link.state().inbound.is_full() {
            link.drained.notified().await;
            continue;
        }
        let datagram = match connection.read_datagram().await {
            Ok(datagram) => datagram,
            Err(why) => return ended(why),
        };
        match session {
            None => link.take_in(&datagram),
            Some(number) => match h3::varint(&datagram) {
                Some((to, frame)) if to == number => link.take_in(frame),
                _ => link.state().counters.in_malformed += 1,
            },
        }
    }
}

/// Sends what the face has queued, as fast as the path takes it.
async fn send(connection: &Connection, session: Option<u64>, link: &Link) -> FaceError {
    loop {
        while let Some(frame) = link.take_out() {
            let mut datagram = Vec::with_capacity(8 + frame.len());
            if let Some(number) = session {
                h3::put_varint(&mut datagram, number);
            }
            datagram.extend_from_slice(&frame);
            match connection.send_datagram_wait(datagram.into()).await {
                Ok(()) => {}
                Err(SendDatagramError::TooLarge) => link.state().counters.out_too_long += 1,
                Err(SendDatagramError::ConnectionLost(why)) => return ended(why),
                Err(other) => return FaceError::Quic(other.to_string()),
            }
        }
        if link.state().is_over {
            return FaceError::Closed;
        }
        link.queued.notified().await;
    }
}

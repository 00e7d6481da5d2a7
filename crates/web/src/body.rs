//! Content on its way into the body of an answer: piece by piece, each verified before.

use hyper::body::{Body, Bytes, Frame, SizeHint};
use onym_client::Error;
use onym_client::aio::Fetch;
use onym_client::fetch::Part;
use onym_frame::Buf;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The octets of a fetch that are wanted.
#[derive(Debug)]
pub(crate) struct Content {
    fetch: Option<Fetch>,
    /// Which octets; all without it.
    part: Option<Part>,
    /// What came before the head of the answer was sent.
    first: Option<Bytes>,
}

/// Why a body ends before its end: the connection is closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error(transparent)]
    Fetch(#[from] Error),
    #[error("the object is shorter than it says")]
    Short,
}

impl Content {
    /// The octets of `fetch`, or those of `part`.
    pub(crate) fn new(fetch: Fetch, part: Option<Part>) -> Self {
        Self { fetch: Some(fetch), part, first: None }
    }

    /// Waits for the first octets, so that what goes wrong before them can still be told.
    pub(crate) async fn begun(mut self) -> Result<Self, Broken> {
        self.first = std::future::poll_fn(|cx| self.poll_octets(cx)).await.transpose()?;
        Ok(self)
    }

    /// The next octets that are wanted.
    fn poll_octets(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        loop {
            let Some(fetch) = &mut self.fetch else { return Poll::Ready(None) };
            let piece = match fetch.poll_piece(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(piece))) => piece,
                Poll::Ready(end) => {
                    self.fetch = None;
                    let is_short = self.part.as_ref().is_some_and(|part| part.left() > 0);
                    let error = match end {
                        Some(Err(error)) => Some(Broken::Fetch(error)),
                        _ if is_short => Some(Broken::Short),
                        _ => None,
                    };
                    return Poll::Ready(error.map(Err));
                }
            };
            let wanted = match &mut self.part {
                None => 0..piece.len(),
                Some(part) => part.cut(&piece),
            };
            if !wanted.is_empty() {
                return Poll::Ready(Some(Ok(Bytes::from_owner(Shared { piece, wanted }))));
            }
        }
    }
}

/// Octets of a piece, without a copy.
struct Shared {
    piece: Buf,
    wanted: Range<usize>,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.piece[self.wanted.clone()]
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        let octets = self.poll_octets(cx);
        octets.map(|octets| octets.map(|octets| octets.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.part {
            None => SizeHint::default(),
            Some(part) => {
                let first = self.first.as_ref().map_or(0, |first| first.len() as u64);
                SizeHint::with_exact(part.left() + first)
            }
        }
    }
}

//! A Unix socket at which subscribers ask for admission.

use crate::{BoardError, Publisher, Subscriber};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The place where subscribers of a blackboard come in; removed when it is dropped.
#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
}

impl Door {
    /// Opens a door at `path`. Who may come in is decided by the permissions of its folder.
    ///
    /// # Errors
    /// [`BoardError::Io`]: something is there already, or the folder is not ours.
    pub fn open(path: &Path) -> Result<Self, BoardError> {
        let opening = |e| BoardError::io("opening the door of a blackboard", e);
        let listener = match UnixListener::bind(path) {
            // Left by a publisher that was killed: nobody answers there.
            Err(e) if e.kind() == io::ErrorKind::AddrInUse && is_abandoned(path) => {
                std::fs::remove_file(path).map_err(opening)?;
                UnixListener::bind(path)
            }
            other => other,
        };
        let listener = listener.map_err(opening)?;
        listener.set_nonblocking(true).map_err(opening)?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Admits everybody who waits; how many came in. Who is refused was told why.
    ///
    /// # Errors
    /// [`BoardError::Io`] when accepting fails.
    pub fn admit(&self, publisher: &mut Publisher) -> Result<usize, BoardError> {
        let mut admitted = 0;
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => admitted += usize::from(publisher.admit(socket.into()).is_ok()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(admitted),
                Err(e) if e.raw_os_error() == Some(Errno::INTR.raw_os_error()) => {}
                Err(e) => return Err(BoardError::io("admitting subscribers", e)),
            }
        }
    }

    /// Readable when somebody waits.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn is_abandoned(path: &Path) -> bool {
    matches!(UnixStream::connect(path), Err(e) if e.kind() == io::ErrorKind::ConnectionRefused)
}

/// Goes in by the door at `path` and waits, for `patience` at most, to be admitted.
///
/// # Errors
/// [`BoardError::Io`] when nobody is there; as [`Subscriber::attach`].
pub fn connect(path: &Path, patience: Duration) -> Result<Subscriber, BoardError> {
    let socket = UnixStream::connect(path)
        .map_err(|e| BoardError::io("knocking at the door of a blackboard", e))?;
    Subscriber::attach(socket.into(), patience)
}

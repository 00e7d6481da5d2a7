//! Unix stream sockets: the place where NDN applications look for their forwarder.

use super::{StreamFace, Uris};
use crate::face::{Face, Ready, Transport};
use crate::listen::{Incoming, Listener, Reserve};
use crate::shm::{AppFace, RingPolicy};
use crate::unix_socket::{address, connect_socket, new_socket};
use crate::{FaceError, FaceUri, uri};
use onym_frame::BufPool;
use onym_wire::mgmt::Scope;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Connects to the forwarder at `path`.
///
/// # Errors
/// [`FaceError::Io`] when nobody answers there.
pub fn connect(path: &Path) -> Result<StreamFace, FaceError> {
    let socket = connect_socket(path)?;
    let uris = Uris { local: uri::fd(socket.as_raw_fd()), remote: uri::unix(path) };
    Ok(StreamFace::new(socket, uris, Transport::Unix, Scope::Local))
}

/// Connects to the socket that `path` leads to now, if `allows` says so of where that really is.
///
/// What is connected to is what was looked at: a link that is turned round in between leads nowhere
/// else. Needs `/proc`.
///
/// # Errors
/// The refusal of `allows`; [`FaceError::Io`] when nobody answers there.
pub fn connect_within(
    path: &Path,
    allows: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<StreamFace, FaceError> {
    let looked = |e: io::Error| FaceError::io("looking where the Unix socket is", e);
    // A handle to the file itself, held until the connection stands.
    let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(|e| FaceError::io("connecting", e))?;
    let handle = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let there = fs::read_link(&handle).map_err(looked)?;
    allows(&there).map_err(|why| FaceError::Address { what: path.display().to_string(), why })?;
    let socket = connect_socket(&handle)?;
    let uris = Uris { local: uri::fd(socket.as_raw_fd()), remote: uri::unix(path) };
    Ok(StreamFace::new(socket, uris, Transport::Unix, Scope::Local))
}

/// Makes a face of one connected Unix stream socket.
///
/// # Errors
/// [`FaceError::Io`] when it cannot be made non-blocking.
pub fn from_stream(stream: UnixStream) -> Result<StreamFace, FaceError> {
    stream.set_nonblocking(true).map_err(|e| FaceError::io("making a socket non-blocking", e))?;
    let socket = OwnedFd::from(stream);
    let uri = uri::fd(socket.as_raw_fd());
    let uris = Uris { local: uri.clone(), remote: uri };
    Ok(StreamFace::new(socket, uris, Transport::Unix, Scope::Local))
}

/// Accepts applications on a Unix socket that everybody may connect to (mode 0666).
#[derive(Debug)]
pub struct UnixListener {
    fd: OwnedFd,
    path: PathBuf,
    uri: FaceUri,
    /// Device and inode of the socket file, so that only our own is removed; none when it is that of the
    /// service manager.
    file: Option<(u64, u64)>,
    rings: RingPolicy,
    reserve: Reserve,
}

/// Connections waiting to be accepted.
const BACKLOG: i32 = 128;

impl UnixListener {
    /// Listens at `path`, making its parent directories. A socket file left by a program that no
    /// longer runs is replaced. A socket that a service manager opened there for this process is used
    /// as it is, and stays.
    ///
    /// # Errors
    /// [`FaceError::InUse`] when somebody answers there; [`FaceError::Address`] when the path is
    /// too long or something else than a socket; [`FaceError::Io`].
    pub fn bind(path: &Path) -> Result<Self, FaceError> {
        Self::bind_with(path, RingPolicy::none())
    }

    /// As [`UnixListener::bind`], for applications that may also ask for shared memory.
    ///
    /// # Errors
    /// As [`UnixListener::bind`].
    pub fn bind_with(path: &Path, rings: RingPolicy) -> Result<Self, FaceError> {
        let address = address(path)?;
        if let Some(handed) = onym_sys::handed::unix_listener(path) {
            handed
                .set_nonblocking(true)
                .map_err(|e| FaceError::io("making a socket non-blocking", e))?;
            return Ok(Self::of(handed.into(), path, None, rings));
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)
                .map_err(|e| FaceError::io("making the directory of the Unix socket", e))?;
        }
        remove_stale(path)?;
        let fd = new_socket()?;
        rustix::net::bind(&fd, &address)
            .map_err(|e| FaceError::io("binding the Unix socket", e))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o666))
            .map_err(|e| FaceError::io("opening the Unix socket to all users", e))?;
        rustix::net::listen(&fd, BACKLOG)
            .map_err(|e| FaceError::io("listening on the Unix socket", e))?;
        let meta = fs::metadata(path).map_err(|e| FaceError::io("looking at the socket", e))?;
        Ok(Self::of(fd, path, Some((meta.dev(), meta.ino())), rings))
    }

    fn of(fd: OwnedFd, path: &Path, file: Option<(u64, u64)>, rings: RingPolicy) -> Self {
        let (path, uri) = (path.to_owned(), uri::unix(path));
        Self { fd, path, uri, file, rings, reserve: Reserve::new() }
    }
}

/// Removes a socket file when nobody answers on it.
fn remove_stale(path: &Path) -> Result<(), FaceError> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(FaceError::io("looking at the Unix socket path", e)),
    };
    if !meta.file_type().is_socket() {
        let what = path.display().to_string();
        return Err(FaceError::Address {
            what,
            why: "something else than a socket is there".into(),
        });
    }
    match UnixStream::connect(path) {
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|e| FaceError::io("removing a stale Unix socket", e))
        }
        // Whatever else happens (accepted, backlog full, no permission): it belongs to somebody.
        _ => Err(FaceError::InUse(path.to_owned())),
    }
}

impl Drop for UnixListener {
    fn drop(&mut self) {
        let Some(file) = self.file else { return };
        if fs::symlink_metadata(&self.path).is_ok_and(|m| (m.dev(), m.ino()) == file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Listener for UnixListener {
    fn local_uri(&self) -> &FaceUri {
        &self.uri
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn accept(
        &mut self,
        _pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<Incoming>,
    ) -> Result<Ready, FaceError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        for _ in 0..budget {
            match rustix::net::accept_with(&self.fd, flags) {
                Ok(socket) => {
                    let uris =
                        Uris { local: self.uri.clone(), remote: uri::fd(socket.as_raw_fd()) };
                    let face = AppFace::new(socket, uris, self.rings.clone());
                    out.push(Incoming::Face(Box::new(face) as Box<dyn Face>));
                }
                Err(Errno::AGAIN) => return Ok(Ready::Idle),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(e) => {
                    if Reserve::is_for(e) {
                        self.reserve.turn_away(|| drop(rustix::net::accept_with(&self.fd, flags)));
                    }
                    return Err(FaceError::io("accepting on the Unix socket", e));
                }
            }
        }
        Ok(Ready::More)
    }
}

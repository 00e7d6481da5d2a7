//! The default access to a manager: a Unix socket for operators, and a token for TCP in a file that
//! only the manager's user can read.

use crate::exit::{Exit, Failure};
use anyhow::Result;
use onym_crypto::Entropy as _;
use onym_sys::peer::{Operators, own_uid};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Folders in which a manager has its doors, and in which its clients look, the first one first:
/// that of the session, that of the system, that of the state.
pub(crate) fn folders() -> Vec<PathBuf> {
    let session = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let session = session.map(|folder| PathBuf::from(folder).join("onym"));
    session.into_iter().chain([PathBuf::from("/run/onym"), super::usual_state()]).collect()
}

/// The socket in `folder` of the manager that listens at TCP port `port`.
pub(crate) fn socket(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!("manager-{port}.sock"))
}

/// They are closed when this is dropped.
#[derive(Debug)]
pub(super) struct Doors {
    pub(super) listener: UnixListener,
    pub(super) operators: Operators,
    pub(super) token: String,
    pub(super) socket: PathBuf,
    /// Where the token is, unless the caller has one.
    pub(super) token_file: Option<PathBuf>,
}

impl Doors {
    /// Opens the doors of the manager at TCP port `port`; `token` is that of its configuration,
    /// `group` the one whose members may command it.
    pub(super) fn open(
        state: &Path,
        port: u16,
        token: Option<String>,
        group: &str,
    ) -> Result<Self> {
        let folder = usable(state).ok_or_else(|| {
            let failure = Failure::new(Exit::Failed, "no folder for the manager's socket");
            failure
                .why("none of $XDG_RUNTIME_DIR, /run and --state belongs to this user alone")
                .next("give the manager a folder of its own: --state DIR")
        })?;
        sweep(&folder);
        let socket = socket(&folder, port);
        let cannot = |path: &Path, e: io::Error| {
            let shown = path.display();
            Failure::new(Exit::Failed, format!("{shown}: the manager's socket cannot be created"))
                .why(e)
                .next("fix it, or choose another --state")
        };
        let operators = Operators::of_group(group);
        let listener = listen(&socket, operators.group()).map_err(|e| cannot(&socket, e))?;
        let token_file = token.is_none().then(|| folder.join(format!("manager-{port}.token")));
        let token = token.unwrap_or_else(secret);
        if let Some(path) = &token_file {
            write(path, &token).map_err(|e| cannot(path, e))?;
        }
        Ok(Self { listener, operators, token, socket, token_file })
    }
}

impl Drop for Doors {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
        if let Some(path) = &self.token_file {
            let _ = fs::remove_file(path);
        }
    }
}

/// The first folder that is this user's alone, made if need be.
fn usable(state: &Path) -> Option<PathBuf> {
    let all = folders();
    let candidates = all.iter().map(PathBuf::as_path).chain([state]);
    candidates.filter(|folder| is_own(folder).is_ok_and(|own| own)).map(Path::to_owned).next()
}

/// Whether nobody else could put something into `folder` or take its place.
fn is_own(folder: &Path) -> io::Result<bool> {
    let alone = |path: &Path| -> io::Result<bool> {
        let meta = fs::metadata(path)?;
        Ok(meta.is_dir() && meta.uid() == own_uid() && meta.mode() & 0o022 == 0)
    };
    if !folder.exists() {
        let parent = folder.parent().unwrap_or(Path::new("/"));
        // A folder of the state is made with those above it, which are the user's.
        if parent.exists() && !alone(parent)? {
            return Ok(false);
        }
        // Members of the group pass through that of the system.
        let mode = if folder == Path::new("/run/onym") { 0o755 } else { 0o700 };
        fs::DirBuilder::new().recursive(true).mode(mode).create(folder)?;
    }
    alone(folder)
}

/// Removes what managers left that were killed: sockets at which nobody answers, their tokens.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let ours = name.starts_with("manager-") && name.ends_with(".sock");
        let refused = |e: io::Error| e.kind() == io::ErrorKind::ConnectionRefused;
        if ours && UnixStream::connect(&path).is_err_and(refused) {
            let _ = fs::remove_file(path.with_extension("token"));
            let _ = fs::remove_file(path);
        }
    }
}

/// Listens at `path` for this user, root and the group.
fn listen(path: &Path, group: Option<u32>) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    let given = group.filter(|gid| std::os::unix::fs::chown(path, None, Some(*gid)).is_ok());
    let mode = if given.is_some() { 0o660 } else { 0o600 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn secret() -> String {
    let mut octets = [0; 16];
    onym_crypto::SystemEntropy.fill(&mut octets);
    onym_crypto::digest::hex(&octets)
}

/// Writes a file that only this user reads, whatever was there.
fn write(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{text}")
}

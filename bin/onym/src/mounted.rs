//! A folder of the network as one of this machine, to be read: several threads answer the kernel, each
//! with a connection of its own, so that a name that nobody answers keeps up its reader only.

mod nodes;
mod wire;

use crate::exit::{self, Exit};
use crate::remote::Remote;
use nodes::{Handles, Node, Nodes};
use onym_repo::file::{FileMetadata, Listed};
use onym_sys::fuse::Owner;
use onym_wire::Name;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::{Attributes, Call, READ_MAX, REQUEST_MAX, Request};

/// What all threads know.
#[derive(Debug)]
pub(crate) struct Mounted {
    nodes: Mutex<Nodes>,
    handles: Mutex<Handles>,
    /// To whom everything belongs.
    owner: Owner,
    /// Octets of a file, at most.
    size_max: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One thread's part.
pub(crate) struct Worker<F> {
    mounted: Arc<Mounted>,
    /// Makes a connection.
    connect: F,
    /// The connection; a new one is made after a fault.
    remote: Option<Remote>,
}

impl Mounted {
    /// The folder `name`, which `metadata` describes.
    pub(crate) fn new(name: Name, metadata: FileMetadata, owner: Owner, size_max: u64) -> Self {
        let nodes = Nodes::new(Node { name, metadata: Arc::new(metadata) });
        Self { nodes: Mutex::new(nodes), handles: Mutex::default(), owner, size_max }
    }

    fn attributes(&self, node: u64, metadata: &FileMetadata) -> Attributes {
        Attributes {
            node,
            is_folder: metadata.is_folder(),
            is_executable: metadata.mode & 0o111 != 0,
            // The kernel counts octets of a file in 63 bits.
            size: metadata.size.unwrap_or(0).min(u64::MAX >> 1),
            mtime_ns: metadata.mtime_ns,
            owner: self.owner,
        }
    }

    fn node(&self, number: u64) -> Result<Node, Errno> {
        lock(&self.nodes).get(number).ok_or(Errno::STALE)
    }
}

impl<F: Fn() -> anyhow::Result<Remote>> Worker<F> {
    pub(crate) fn new(mounted: &Arc<Mounted>, connect: F) -> Self {
        Self { mounted: Arc::clone(mounted), connect, remote: None }
    }

    /// Answers requests of the kernel until it is mounted no more.
    pub(crate) fn run(mut self, kernel: &OwnedFd) {
        let mut room = vec![0; REQUEST_MAX];
        loop {
            let octets = match rustix::io::read(kernel, room.as_mut_slice()) {
                Ok(len) => room.get(..len).unwrap_or_default(),
                // A request that was taken back.
                Err(Errno::INTR | Errno::AGAIN | Errno::NOENT) => continue,
                Err(_) => return,
            };
            let Some(request) = Request::parse(octets) else { continue };
            let unique = request.unique;
            if let Some(said) = self.answer(request) {
                // Whoever asked may have gone.
                let _ = rustix::io::write(kernel, &wire::answer(unique, said));
            }
        }
    }

    fn answer(&mut self, request: Request<'_>) -> Option<Result<Vec<u8>, Errno>> {
        let Request { node, call, .. } = request;
        Some(match call {
            Call::Init { major, readahead, flags } => wire::init(major, readahead, flags),
            Call::LookUp(name) => self.look_up(node, name),
            Call::Attributes => self.attributes(node),
            Call::Open => self.open(node),
            Call::OpenFolder => self.open_folder(node),
            Call::Read { offset, size } => self.read(node, offset, size),
            Call::ReadFolder { handle, offset, size } => self.read_folder(handle, offset, size),
            Call::Release(handle) => {
                lock(&self.mounted.handles).close(handle);
                Ok(Vec::new())
            }
            Call::Space => Ok(wire::space()),
            Call::Nothing => Ok(Vec::new()),
            Call::Other => Err(Errno::NOSYS),
            Call::Forget(list) => {
                let mut nodes = lock(&self.mounted.nodes);
                list.into_iter().for_each(|(node, look_ups)| nodes.forget(node, look_ups));
                return None;
            }
            Call::Interrupt => return None,
        })
    }

    /// Asks the network. After a fault the next question has a new connection.
    fn ask<T>(&mut self, ask: impl FnOnce(&mut Remote) -> anyhow::Result<T>) -> Result<T, Errno> {
        let mut remote = match self.remote.take() {
            Some(remote) => remote,
            None => (self.connect)().map_err(errno)?,
        };
        let said = ask(&mut remote).map_err(errno)?;
        self.remote = Some(remote);
        Ok(said)
    }

    fn metadata(&mut self, name: &Name) -> Result<FileMetadata, Errno> {
        self.ask(|remote| remote.metadata(name))?.ok_or(Errno::NOENT)
    }

    fn look_up(&mut self, parent: u64, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut child = self.mounted.node(parent)?.name;
        child.append_generic(name);
        let metadata = Arc::new(self.metadata(&child)?);
        let node = Node { name: child, metadata: Arc::clone(&metadata) };
        let number = lock(&self.mounted.nodes).look_up(node).ok_or(Errno::NFILE)?;
        Ok(self.mounted.attributes(number, &metadata).entry())
    }

    fn attributes(&mut self, number: u64) -> Result<Vec<u8>, Errno> {
        let Node { name, metadata } = self.mounted.node(number)?;
        let is_folder = metadata.is_folder();
        // A folder may have changed; a version of a file does not.
        let metadata = if is_folder { Arc::new(self.metadata(&name)?) } else { metadata };
        if metadata.is_folder() != is_folder {
            return Err(Errno::STALE);
        }
        Ok(self.mounted.attributes(number, &metadata).told())
    }

    fn open(&self, number: u64) -> Result<Vec<u8>, Errno> {
        let size = self.mounted.node(number)?.metadata.size.unwrap_or(0);
        if size > self.mounted.size_max { Err(Errno::FBIG) } else { Ok(wire::opened(0)) }
    }

    fn open_folder(&mut self, number: u64) -> Result<Vec<u8>, Errno> {
        let name = self.mounted.node(number)?.name;
        let listed = self.ask(|remote| remote.list(&name))?.ok_or(Errno::NOTDIR)?;
        lock(&self.mounted.handles).open(listed).map(wire::opened).ok_or(Errno::NFILE)
    }

    fn read(&mut self, number: u64, offset: u64, size: u32) -> Result<Vec<u8>, Errno> {
        let metadata = self.mounted.node(number)?.metadata;
        let end = metadata.size.unwrap_or(0).min(offset.saturating_add(size.min(READ_MAX).into()));
        if offset >= end {
            return Ok(Vec::new());
        }
        self.ask(|remote| remote.octets(&metadata, offset..=end - 1))
    }

    fn read_folder(&self, handle: u64, offset: u64, size: u32) -> Result<Vec<u8>, Errno> {
        let listed = lock(&self.mounted.handles).get(handle).ok_or(Errno::BADF)?;
        let own = [&b"."[..], b".."].map(|name| Listed { name: name.to_vec(), is_folder: true });
        let mut out = Vec::new();
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for (one, next) in own.iter().chain(&*listed).zip(1..).skip(from) {
            if wire::is_short(&one.name)
                && !wire::push_name(&mut out, size.min(READ_MAX), next, one)
            {
                break;
            }
        }
        Ok(out)
    }
}

/// What is said to a program of this machine.
fn errno(error: anyhow::Error) -> Errno {
    let (exit, what, _) = exit::told(&error);
    tracing::debug!(what, "mount-not-read");
    match exit {
        Exit::NotFound => Errno::NOENT,
        Exit::Refused => Errno::ACCESS,
        Exit::NoNode => Errno::NETDOWN,
        _ => Errno::IO,
    }
}

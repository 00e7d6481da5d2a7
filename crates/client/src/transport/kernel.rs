//! The kernel stack as the node: one RAW socket of `AF_NNET` carries the frames. The kernel does not
//! take registration Interests: they become bindings of the socket.

use onym_crypto::Signer;
use onym_face::{Face, FaceError, FaceUri, Flush, Ready, Transport};
use onym_frame::{Buf, BufPool, RxFrame, TxQueue};
use onym_kernel::KernelError;
use onym_kernel::control::Control;
use onym_kernel::socket::RawSocket;
use onym_wire::interest::Interest;
use onym_wire::lp::LpPacket;
use onym_wire::mgmt::{self, Block as _, ControlParameters, ControlResponse, Scope};
use onym_wire::name::{Name, NameRef};
use onym_wire::{DataBuilder, PACKET_LEN_MAX};
use rustix::event::epoll;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// The entrance to the applications, to which routes of served prefixes lead.
const LOCAL_FACE: u32 = 1;

/// Answers to commands that wait to be received, at most; a command beyond is not answered, and
/// the endpoint asks again. It sends fewer at a time.
const ANSWERS_MAX: usize = 64;

/// A face to the kernel stack of this network namespace.
#[derive(Debug)]
pub struct KernelFace {
    uri: FaceUri,
    socket: RawSocket,
    /// Readable when the socket is, or when answers wait.
    ready: OwnedFd,
    bell: OwnedFd,
    answers: VecDeque<Buf>,
    /// Head and body of a frame together, kept for the next.
    frame: Vec<u8>,
    /// What is bound.
    bound: Vec<Name>,
    /// Prefixes for which this face made the route.
    routed: Vec<Name>,
}

fn failed(what: &'static str, error: KernelError) -> FaceError {
    match error {
        KernelError::Io(source) => FaceError::Io { doing: what, source },
        other => FaceError::Address { what: "kernel://".to_owned(), why: other.to_string() },
    }
}

fn sys(what: &'static str) -> impl Fn(Errno) -> FaceError {
    move |error| FaceError::Io { doing: what, source: error.into() }
}

impl KernelFace {
    /// Opens a socket.
    ///
    /// # Errors
    /// [`FaceError::Address`] when the module is not loaded; [`FaceError::Io`] otherwise.
    pub fn open() -> Result<Self, FaceError> {
        let socket = RawSocket::open_lp().map_err(|e| failed("opening a kernel socket", e))?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(sys("making an event"))?;
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(sys("making an epoll"))?;
        for fd in [socket.as_fd(), bell.as_fd()] {
            let data = epoll::EventData::new_u64(0);
            epoll::add(&ready, fd, data, epoll::EventFlags::IN)
                .map_err(sys("watching a socket"))?;
        }
        Ok(Self {
            uri: FaceUri::Internal,
            socket,
            ready,
            bell,
            answers: VecDeque::new(),
            frame: Vec::with_capacity(PACKET_LEN_MAX),
            bound: Vec::new(),
            routed: Vec::new(),
        })
    }

    fn flush_by(&mut self, queue: &mut TxQueue, frame: &mut Vec<u8>) -> Result<Flush, FaceError> {
        loop {
            frame.clear();
            let Some((head, body)) = queue.iter().next() else { return Ok(Flush::Done) };
            frame.extend_from_slice(head);
            frame.extend_from_slice(body);
            match self.take(frame) {
                Ok(()) => queue.pop(1),
                Err(KernelError::Io(e)) if e.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Flush::Blocked);
                }
                Err(error) => {
                    queue.pop(1);
                    return Err(failed("sending to the kernel", error));
                }
            }
        }
    }

    /// Sends a frame, or carries out the command in it.
    fn take(&mut self, frame: &[u8]) -> Result<(), KernelError> {
        let command = LpPacket::parse(frame).ok().and_then(|lp| {
            let interest = Interest::parse(lp.fragment?).ok()?;
            Command::of(interest.name).map(|command| (interest.name.to_name(), command))
        });
        let Some((name, command)) = command else { return self.socket.send(frame) };
        let response = match self.carry_out(&command) {
            Ok(()) => ControlResponse::ok(command.parameters),
            Err(error) => ControlResponse::new(403, error.to_string()),
        };
        self.answer(name.as_ref(), &response)
    }

    fn carry_out(&mut self, command: &Command) -> Result<(), KernelError> {
        let prefix = command.prefix()?;
        if !command.registers {
            self.socket.unbind(prefix.value())?;
            return self.unroute(prefix);
        }
        // Registrations are repeated every few minutes.
        if self.bound.iter().any(|b| b.as_ref() == prefix) {
            return Ok(());
        }
        self.socket.bind(prefix.value())?;
        self.bound.push(prefix.to_name());
        self.lead_here(prefix)
    }

    /// Sees that Interests for a bound prefix come: by a route that is there, or by one of ours,
    /// which takes privilege.
    fn lead_here(&mut self, prefix: NameRef<'_>) -> Result<(), KernelError> {
        if self.socket.has_route()? {
            return Ok(());
        }
        let made = Control::open()?.add_route(prefix.value(), LOCAL_FACE, 0);
        if let Err(error) = made {
            let _ = self.socket.unbind(prefix.value());
            self.bound.retain(|b| b.as_ref() != prefix);
            return Err(error);
        }
        self.routed.push(prefix.to_name());
        Ok(())
    }

    fn unroute(&mut self, prefix: NameRef<'_>) -> Result<(), KernelError> {
        self.bound.retain(|b| b.as_ref() != prefix);
        let Some(at) = self.routed.iter().position(|p| p.as_ref() == prefix) else { return Ok(()) };
        self.routed.swap_remove(at);
        Control::open()?.remove_route(prefix.value(), LOCAL_FACE)
    }

    fn answer(&mut self, name: NameRef<'_>, response: &ControlResponse) -> Result<(), KernelError> {
        if self.answers.len() >= ANSWERS_MAX {
            return Ok(());
        }
        let mut packet = Vec::with_capacity(512);
        let content = response.to_wire();
        Signer::digest().sign_data(&DataBuilder::new(name, &content), &mut packet)?;
        self.answers.push_back(Buf::copy_from(&packet));
        rustix::io::write(&self.bell, &1_u64.to_ne_bytes())?;
        Ok(())
    }
}

impl Drop for KernelFace {
    /// Bindings go with the socket; routes are taken back here.
    fn drop(&mut self) {
        for prefix in std::mem::take(&mut self.routed) {
            let gone = Control::open()
                .and_then(|mut c| c.remove_route(prefix.as_ref().value(), LOCAL_FACE));
            if let Err(error) = gone {
                tracing::warn!(%prefix, %error, "a route of the kernel stays");
            }
        }
    }
}

/// A registration or its end, as clients sign it.
#[derive(Debug)]
struct Command {
    registers: bool,
    parameters: ControlParameters,
}

impl Command {
    fn of(name: NameRef<'_>) -> Option<Self> {
        let word = |at: usize| name.get(at).map(|c| c.value);
        if word(0)? != b"localhost" || word(1)? != b"nfd" || word(2)? != b"rib" {
            return None;
        }
        let registers = match word(3)? {
            b"register" => true,
            b"unregister" => false,
            _ => return None,
        };
        let parameters = mgmt::parameters_of(name.get(4)?).ok()?;
        Some(Self { registers, parameters })
    }

    fn prefix(&self) -> Result<NameRef<'_>, KernelError> {
        self.parameters.name.as_ref().map(Name::as_ref).ok_or(KernelError::Malformed)
    }
}

impl Face for KernelFace {
    fn local_uri(&self) -> &FaceUri {
        &self.uri
    }

    fn remote_uri(&self) -> &FaceUri {
        &self.uri
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    fn receive(
        &mut self,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        if !self.answers.is_empty() {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.bell, &mut count);
            out.extend(self.answers.drain(..).map(|bytes| RxFrame { endpoint: 0, bytes }));
        }
        for _ in 0..budget {
            let mut chunk = pool.take();
            let received = self.socket.receive(&mut chunk[..], Duration::ZERO);
            match received.map_err(|e| failed("receiving from the kernel", e)) {
                Ok(Some(len)) => {
                    let bytes = pool.freeze(chunk).slice(0..len);
                    out.push(RxFrame { endpoint: 0, bytes });
                }
                Ok(None) => {
                    pool.put_back(chunk);
                    return Ok(Ready::Idle);
                }
                Err(error) => {
                    pool.put_back(chunk);
                    return Err(error);
                }
            }
        }
        Ok(Ready::More)
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        let mut frame = std::mem::take(&mut self.frame);
        let flushed = self.flush_by(queue, &mut frame);
        self.frame = frame;
        flushed
    }

    fn mtu(&self) -> usize {
        PACKET_LEN_MAX
    }

    fn transport(&self) -> Transport {
        Transport::Kernel
    }

    fn scope(&self) -> Scope {
        Scope::Local
    }

    fn room_is_writable(&self) -> bool {
        false
    }
}

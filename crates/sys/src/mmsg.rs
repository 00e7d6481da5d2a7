//! Many datagrams with one system call, with UDP segmentation offload in both directions.

use rustix::fd::{AsFd, AsRawFd};
use std::io::{self, IoSlice};
use std::mem::{MaybeUninit, size_of};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ops::DerefMut;

/// Most messages that one call moves.
pub const BATCH_MAX: usize = 64;

/// Most datagrams that one segmented send may hold (the kernel's `UDP_MAX_SEGMENTS` of old).
pub const SEGMENTS_MAX: usize = 64;

/// Room for one control message that holds an int, aligned as `cmsghdr` wants it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Who sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// The kernel did not say (connected stream or Unix sockets).
    #[default]
    Unknown,
    /// A UDP peer.
    Inet(SocketAddr),
    /// A station on the link of a packet socket.
    Link {
        /// Its address.
        mac: [u8; 6],
        /// How the frame was addressed (`PACKET_HOST`, `PACKET_MULTICAST`, …).
        packet_type: u8,
    },
}

/// What was received into one buffer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Received {
    /// Octets in the buffer.
    pub len: usize,
    /// Length of each datagram but the last, when the kernel joined several (GRO); else 0.
    pub segment_len: usize,
    /// The message was longer than the buffer.
    pub truncated: bool,
    /// Who sent it; all joined datagrams have the same sender.
    pub source: Source,
}

impl Received {
    /// The single datagrams within a buffer that holds this.
    pub fn datagrams<'a>(&self, buffer: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let step = if self.segment_len == 0 { self.len.max(1) } else { self.segment_len };
        buffer[..self.len].chunks(step)
    }
}

/// Makes a UDP socket join datagrams of one sender into one message.
///
/// # Errors
/// As `setsockopt`: the kernel is older than 5.0.
pub fn enable_gro(fd: impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open for the call; the value is one int that outlives it.
    let rc = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_GRO,
            (&raw const on).cast(),
            int_len(),
        )
    };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn int_len() -> libc::socklen_t {
    size_of::<libc::c_int>() as libc::socklen_t
}

/// Receives up to `buffers.len()` messages (at most [`BATCH_MAX`]) without waiting and describes
/// message `i`, which is in `buffers[i]`, in `out[i]`. Returns how many.
///
/// # Errors
/// As `recvmmsg`: `WouldBlock` when nothing waits; an ICMP error of a connected socket.
pub fn receive<B: DerefMut<Target = [u8]>>(
    fd: impl AsFd,
    buffers: &mut [B],
    out: &mut [Received],
) -> io::Result<usize> {
    let n = buffers.len().min(out.len()).min(BATCH_MAX);
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH_MAX];
    let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH_MAX];
    let mut names = [const { MaybeUninit::<libc::sockaddr_storage>::uninit() }; BATCH_MAX];
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; BATCH_MAX];
    for i in 0..n {
        let buffer = &mut *buffers[i];
        let part = parts[i]
            .write(libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() });
        let header = headers[i].write(empty_header());
        header.msg_hdr.msg_iov = part;
        header.msg_hdr.msg_iovlen = 1;
        header.msg_hdr.msg_name = names[i].as_mut_ptr().cast();
        header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        header.msg_hdr.msg_control = controls[i].as_mut_ptr().cast();
        header.msg_hdr.msg_controllen = size_of::<Control>() as _;
    }
    let raw = fd.as_fd().as_raw_fd();
    // SAFETY: the first `n` headers are initialised and point to buffers, names and controls that
    // live until the end of this function and to which nothing else refers meanwhile.
    let got = retry(|| unsafe {
        libc::recvmmsg(
            raw,
            headers.as_mut_ptr().cast(),
            n as libc::c_uint,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
        )
    })?;
    for (header, out) in headers.iter().zip(out.iter_mut()).take(got) {
        // SAFETY: `got <= n`, and the first `n` headers were initialised above.
        let header = unsafe { header.assume_init_ref() };
        *out = describe(header);
    }
    Ok(got)
}

fn empty_header() -> libc::mmsghdr {
    // SAFETY: an mmsghdr of zeroes is valid: null pointers with zero lengths.
    unsafe { std::mem::zeroed() }
}

fn describe(header: &libc::mmsghdr) -> Received {
    Received {
        len: header.msg_len as usize,
        segment_len: gro_len(&header.msg_hdr),
        truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        source: source(&header.msg_hdr),
    }
}

fn gro_len(header: &libc::msghdr) -> usize {
    // SAFETY: the kernel filled this header; its control buffer lives in the caller's frame.
    let mut cmsg = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !cmsg.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR give null or a whole header inside the buffer.
        let c = unsafe { cmsg.read_unaligned() };
        if c.cmsg_level == libc::SOL_UDP && c.cmsg_type == libc::UDP_GRO {
            // SAFETY: `cmsg` is a valid header, see above.
            let data = unsafe { libc::CMSG_DATA(cmsg) };
            // SAFETY: a UDP_GRO message of the kernel holds one int.
            let len = unsafe { data.cast::<libc::c_int>().read_unaligned() };
            return usize::try_from(len).unwrap_or(0);
        }
        // SAFETY: `cmsg` is a header within the buffer of `header`.
        cmsg = unsafe { libc::CMSG_NXTHDR(header, cmsg) };
    }
    0
}

fn source(header: &libc::msghdr) -> Source {
    if header.msg_name.is_null() || (header.msg_namelen as usize) < size_of::<libc::sa_family_t>() {
        return Source::Unknown;
    }
    let name = header.msg_name;
    // SAFETY: the name buffer holds at least a family, as its length says.
    let family = i32::from(unsafe { name.cast::<libc::sa_family_t>().read() });
    let len = header.msg_namelen as usize;
    if family == libc::AF_INET && len >= size_of::<libc::sockaddr_in>() {
        // SAFETY: the family and the length say that this is a sockaddr_in.
        let a = unsafe { name.cast::<libc::sockaddr_in>().read() };
        let ip = Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr));
        Source::Inet(SocketAddrV4::new(ip, u16::from_be(a.sin_port)).into())
    } else if family == libc::AF_INET6 && len >= size_of::<libc::sockaddr_in6>() {
        // SAFETY: the family and the length say that this is a sockaddr_in6.
        let a = unsafe { name.cast::<libc::sockaddr_in6>().read() };
        let ip = Ipv6Addr::from(a.sin6_addr.s6_addr);
        let port = u16::from_be(a.sin6_port);
        Source::Inet(SocketAddrV6::new(ip, port, 0, a.sin6_scope_id).into())
    } else if family == libc::AF_PACKET && len >= 18 {
        // SAFETY: the buffer is a whole sockaddr_storage, larger than a sockaddr_ll; the family and
        // the length (18 for a 6-octet address) say that it is one.
        let a = unsafe { name.cast::<libc::sockaddr_ll>().read() };
        let [m0, m1, m2, m3, m4, m5, ..] = a.sll_addr;
        Source::Link { mac: [m0, m1, m2, m3, m4, m5], packet_type: a.sll_pkttype }
    } else {
        Source::Unknown
    }
}

/// One message to send on a connected or bound socket.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// The octets, in pieces.
    pub parts: &'a [IoSlice<'a>],
    /// Length of each datagram but the last when the message holds several (GSO); else 0.
    pub segment_len: u16,
}

/// Sends up to [`BATCH_MAX`] messages without waiting. Returns how many were taken.
///
/// # Errors
/// As `sendmmsg`, for the first message: `WouldBlock`, `EMSGSIZE`, an ICMP error of before.
pub fn send(fd: impl AsFd, messages: &[Message<'_>]) -> io::Result<usize> {
    let n = messages.len().min(BATCH_MAX);
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH_MAX];
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; BATCH_MAX];
    for (i, message) in messages.iter().take(n).enumerate() {
        let header = headers[i].write(empty_header());
        // `IoSlice` has the layout of `iovec`, and sendmmsg does not write through it.
        header.msg_hdr.msg_iov = message.parts.as_ptr().cast_mut().cast();
        header.msg_hdr.msg_iovlen = message.parts.len() as _;
        if message.segment_len != 0 {
            let control = controls[i].write(Control([0; 64]));
            put_gso(&mut header.msg_hdr, control, message.segment_len);
        }
    }
    let raw = fd.as_fd().as_raw_fd();
    // SAFETY: the first `n` headers are initialised; what they point to lives during the call.
    retry(|| unsafe {
        libc::sendmmsg(
            raw,
            headers.as_mut_ptr().cast(),
            n as libc::c_uint,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    })
}

fn put_gso(header: &mut libc::msghdr, control: &mut Control, segment_len: u16) {
    header.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: CMSG_SPACE only computes.
    let space = unsafe { libc::CMSG_SPACE(2) };
    // SAFETY: CMSG_LEN only computes.
    let len = unsafe { libc::CMSG_LEN(2) };
    header.msg_controllen = space as _;
    // SAFETY: the control buffer is set and longer than one header.
    let first = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: it is aligned (`Control`), zeroed and borrowed by this function alone.
    let cmsg = unsafe { &mut *first };
    cmsg.cmsg_level = libc::SOL_UDP;
    cmsg.cmsg_type = libc::UDP_SEGMENT;
    cmsg.cmsg_len = len as _;
    // SAFETY: the data of the header above, within the buffer.
    let data = unsafe { libc::CMSG_DATA(cmsg) };
    // SAFETY: CMSG_SPACE(2) octets are in the buffer, so two octets of data are.
    unsafe { data.cast::<u16>().write_unaligned(segment_len) };
}

fn retry(mut call: impl FnMut() -> libc::c_int) -> io::Result<usize> {
    loop {
        if let Ok(n) = usize::try_from(call()) {
            return Ok(n);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn pair() -> (UdpSocket, UdpSocket) {
        let a = UdpSocket::bind("127.0.0.1:0").unwrap();
        let b = UdpSocket::bind("127.0.0.1:0").unwrap();
        a.connect(b.local_addr().unwrap()).unwrap();
        b.connect(a.local_addr().unwrap()).unwrap();
        (a, b)
    }

    #[test]
    fn a_segmented_send_arrives_as_single_datagrams_with_their_sender() {
        let (a, b) = pair();
        enable_gro(&b).unwrap();
        let bytes: Vec<u8> = (0..250_u8).collect();
        let parts = [IoSlice::new(&bytes[..130]), IoSlice::new(&bytes[130..])];
        assert_eq!(send(&a, &[Message { parts: &parts, segment_len: 100 }]).unwrap(), 1);
        let mut buffers = vec![vec![0_u8; 65536]; 4];
        let mut out = [Received::default(); 4];
        let mut datagrams = Vec::new();
        while datagrams.len() < 3 {
            let n = receive(&b, &mut buffers, &mut out).unwrap();
            for (received, buffer) in out.iter().zip(&buffers).take(n) {
                assert_eq!(received.source, Source::Inet(a.local_addr().unwrap()));
                datagrams.extend(received.datagrams(buffer).map(<[u8]>::to_vec));
            }
        }
        assert_eq!(datagrams, bytes.chunks(100).collect::<Vec<_>>());
    }

    #[test]
    fn a_datagram_longer_than_the_buffer_is_said_to_be_cut() {
        let (a, b) = pair();
        a.send(&[1; 100]).unwrap();
        let mut buffers = [vec![0_u8; 10]];
        let mut out = [Received::default()];
        assert_eq!(receive(&b, &mut buffers, &mut out).unwrap(), 1);
        assert!(out[0].truncated && out[0].len == 10);
        let none = receive(&b, &mut buffers, &mut out).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn many_messages_leave_with_one_call() {
        let (a, b) = pair();
        let parts = [IoSlice::new(b"x")];
        let messages = [Message { parts: &parts, segment_len: 0 }; BATCH_MAX];
        assert_eq!(send(&a, &messages).unwrap(), BATCH_MAX);
        let mut buffers = vec![vec![0_u8; 16]; BATCH_MAX];
        let mut out = [Received::default(); BATCH_MAX];
        assert_eq!(receive(&b, &mut buffers, &mut out).unwrap(), BATCH_MAX);
        assert!(out.iter().all(|r| r.len == 1 && r.segment_len == 0));
    }
}

//! Packet sockets: whole Ethernet frames of one protocol on one interface. Needs `CAP_NET_RAW`.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use socket2::{SockFilter, SockRef};
use std::io;
use std::mem::size_of;

/// Octets of an Ethernet header: destination, source, EtherType.
pub const HEADER_LEN: usize = 14;

/// A bound packet socket, non-blocking.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    index: u32,
}

/// Which frames of the interface a socket wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Those sent to this group.
    Group([u8; 6]),
    /// Those sent to a single station (us) by this one.
    From([u8; 6]),
    /// Those sent to a single station (us) by anybody.
    Unicast,
}

// Classic BPF: load absolute word, half, byte; jump if equal; jump if bits set; return.
const LD_W: u16 = 0x20;
const LD_H: u16 = 0x28;
const LD_B: u16 = 0x30;
const JEQ: u16 = 0x15;
const JSET: u16 = 0x45;
const RET: u16 = 0x06;

/// One instruction: code, jump if true, jump if false, operand.
#[derive(Debug, Clone, Copy)]
struct Step(u16, u8, u8, u32);

/// Drops a frame unless the address at `at` is `mac`; a jump of `to_drop + n` ends at the drop.
fn match_mac(at: u32, mac: [u8; 6], to_drop: u8) -> [Step; 4] {
    let [a, b, c, d, e, f] = mac;
    [
        Step(LD_W, 0, 0, at),
        Step(JEQ, 0, to_drop + 2, u32::from_be_bytes([a, b, c, d])),
        Step(LD_H, 0, 0, at + 4),
        Step(JEQ, 0, to_drop, u32::from(u16::from_be_bytes([e, f]))),
    ]
}

fn program(want: Want) -> Vec<Step> {
    let accept = Step(RET, 0, 0, u32::MAX);
    let drop = Step(RET, 0, 0, 0);
    let group_bit = Step(LD_B, 0, 0, 0);
    let mut out = Vec::new();
    match want {
        Want::Group(mac) => out.extend(match_mac(0, mac, 1)),
        Want::From(mac) => {
            out.extend(match_mac(6, mac, 3));
            out.extend([group_bit, Step(JSET, 1, 0, 1)]);
        }
        Want::Unicast => out.extend([group_bit, Step(JSET, 1, 0, 1)]),
    }
    out.extend([accept, drop]);
    out
}

impl PacketSocket {
    /// Opens a socket for frames with `ethertype` on the interface numbered `index`.
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_NET_RAW`; as `socket` and `bind`.
    pub fn open(index: u32, ethertype: u16, want: Want) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Without a protocol nothing is received until the filter is there and the socket is bound.
        let fd = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        let step = |s: Step| SockFilter::new(s.0, s.1, s.2, s.3);
        let filter: Vec<SockFilter> = program(want).into_iter().map(step).collect();
        SockRef::from(&fd).attach_filter(&filter)?;
        // SAFETY: a sockaddr_ll of zeroes is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as libc::sa_family_t;
        address.sll_protocol = ethertype.to_be();
        address.sll_ifindex = index.cast_signed();
        let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address is a whole sockaddr_ll of the length said, alive during the call.
        let rc = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) };
        if rc < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = Self { fd, index };
        if let Want::Group(mac) = want {
            socket.join(mac)?;
        }
        Ok(socket)
    }

    /// Lets the interface receive frames sent to the group `mac`, while the socket lives.
    fn join(&self, mac: [u8; 6]) -> io::Result<()> {
        let mut address = [0; 8];
        address[..6].copy_from_slice(&mac);
        let request = libc::packet_mreq {
            mr_ifindex: self.index.cast_signed(),
            mr_type: libc::PACKET_MR_MULTICAST as u16,
            mr_alen: 6,
            mr_address: address,
        };
        // SAFETY: the option is a whole packet_mreq of the length said, alive during the call.
        let rc = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const request).cast(),
                size_of::<libc::packet_mreq>() as libc::socklen_t,
            )
        };
        if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program of the instructions above on `frame`, as the kernel would.
    fn accepts(program: &[Step], frame: &[u8]) -> bool {
        let (mut at, mut a) = (0, 0_u32);
        loop {
            let Step(code, jt, jf, k) = program[at];
            at += 1;
            let load =
                |n| frame[k as usize..k as usize + n].iter().fold(0, |v, &b| v << 8 | u32::from(b));
            let jump = |yes| usize::from(if yes { jt } else { jf });
            match code {
                LD_W => a = load(4),
                LD_H => a = load(2),
                LD_B => a = load(1),
                JEQ => at += jump(a == k),
                JSET => at += jump(a & k != 0),
                RET => return k != 0,
                other => panic!("instruction {other}"),
            }
        }
    }

    #[test]
    fn filters_keep_what_is_wanted_and_nothing_else() {
        let (group, us, peer, other) = (
            [1, 0, 0x5E, 0, 0x17, 0xAA],
            [2, 0, 0, 0, 0, 1],
            [2, 0, 0, 0, 0, 2],
            [2, 0, 0, 0, 0, 3],
        );
        let frame = |to: [u8; 6], from: [u8; 6]| [to.as_slice(), &from, &[0x86, 0x24]].concat();
        for (want, to, from, kept) in [
            (Want::Group(group), group, peer, true),
            (Want::Group(group), us, peer, false),
            (Want::Group(group), [1, 0, 0x5E, 0, 0x17, 0xAB], peer, false),
            (Want::From(peer), us, peer, true),
            (Want::From(peer), us, other, false),
            (Want::From(peer), group, peer, false),
            (Want::Unicast, us, other, true),
            (Want::Unicast, group, other, false),
        ] {
            assert_eq!(accepts(&program(want), &frame(to, from)), kept, "{want:?} {to:?} {from:?}");
        }
    }
}

//! Faces that need a link of their own: two network namespaces joined by a veth pair.
//!
//! The namespaces are made and removed by the test; without the right to make them it says so and
//! does nothing.

#![allow(clippy::unwrap_used)] // in the helpers of tests

use onym_face::ether::{EtherFace, EtherListener, GROUP};
use onym_face::udp::{Loopback, UdpFace, UdpListener, UdpMulticastFace, UdpOptions};
use onym_face::{CHUNK_LEN, Face, Incoming, Listener};
use onym_frame::{BufPool, RxFrame, TxQueue};
use onym_sys::netdev::{Interface, interface};
use onym_wire::mgmt::LinkType;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(10);

/// Two namespaces, `a` with 10.81.0.1 and `b` with 10.81.0.2, each on its end of a veth pair.
struct Link {
    names: [String; 2],
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .map_err(|e| format!("ip cannot be run: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("ip {arguments}: {said}")) }
}

impl Link {
    /// Prints why and returns nothing where namespaces cannot be made.
    fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |end| format!("onym-face-{}-{number}{end}", std::process::id());
        let link = Self { names: [name('a'), name('b')] };
        match link.set_up() {
            Ok(()) => Some(link),
            Err(why) => {
                eprintln!("skipped: no network namespaces here: {why}");
                None
            }
        }
    }

    fn set_up(&self) -> Result<(), String> {
        let [a, b] = &self.names;
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!("-n {a} link add va type veth peer name vb netns {b}"))?;
        for (ns, dev, number) in [(a, "va", 1), (b, "vb", 2)] {
            ip(&format!("-n {ns} address add 10.81.0.{number}/24 dev {dev}"))?;
            ip(&format!("-n {ns} address add fe80::8:{number}/64 dev {dev} nodad"))?;
            ip(&format!("-n {ns} link set {dev} up"))?;
        }
        Ok(())
    }

    /// Runs `work` on a thread inside an end's namespace; sockets made there stay there.
    fn inside<T: Send>(&self, end: usize, work: impl FnOnce(&Interface) -> T + Send) -> T {
        let ns = File::open(format!("/run/netns/{}", self.names[end])).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(ns.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                let dev = interface(["va", "vb"][end]).unwrap();
                work(&dev)
            });
            thread.join().unwrap()
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

fn frame(number: u8, len: usize) -> Vec<u8> {
    let mut out = vec![6, 0xFD];
    out.extend(u16::try_from(len).unwrap().to_be_bytes());
    out.resize(4 + len, number);
    out
}

/// Sends `frames` from `a` until all have arrived at `b` (a link may need time to come up: what is
/// lost before the first arrives is sent again).
fn transfer(a: &mut dyn Face, b: &mut dyn Face, frames: &[Vec<u8>]) -> Vec<RxFrame> {
    let mut pool = BufPool::new(CHUNK_LEN, 16);
    let (mut queue, mut out) = (TxQueue::new(1 << 30), Vec::new());
    let start = Instant::now();
    while out.len() < frames.len() {
        assert!(start.elapsed() < DEADLINE, "{} of {} arrived", out.len(), frames.len());
        if out.is_empty() && queue.is_empty() {
            queue.push(b"\x05\x00", None).unwrap();
            if a.flush(&mut queue).is_err() {
                queue.pop(1);
            }
        }
        b.receive(&mut pool, 64, &mut out).unwrap();
        if out.iter().any(|f| f.bytes.len() == 2) {
            break;
        }
    }
    out.clear();
    for f in frames {
        queue.push(f, None).unwrap();
    }
    while out.len() < frames.len() {
        assert!(start.elapsed() < DEADLINE, "{} of {} arrived", out.len(), frames.len());
        a.flush(&mut queue).unwrap();
        b.receive(&mut pool, 64, &mut out).unwrap();
        out.retain(|f| f.bytes.len() > 2);
    }
    out
}

fn check(a: &mut dyn Face, b: &mut dyn Face, len_max: usize) -> u64 {
    let frames: Vec<_> =
        (0..100).map(|i| frame(i, 253 + usize::from(i) * 97 % (len_max - 260))).collect();
    let arrived = transfer(a, b, &frames);
    assert!(arrived.iter().zip(&frames).all(|(r, f)| *r.bytes == **f));
    arrived[0].endpoint
}

#[test]
fn ethernet_faces_carry_frames_between_two_stations_without_the_padding() {
    let Some(link) = Link::new() else { return };
    let mac = |end| link.inside(end, |dev| dev.mac.unwrap());
    let (mac_a, mac_b) = (mac(0), mac(1));
    let open = |end, remote| link.inside(end, |dev| EtherFace::open(dev, remote, 1 << 20).unwrap());
    let (mut a, mut b) = (open(0, mac_b), open(1, mac_a));
    assert_eq!((a.mtu(), a.link()), (1500, LinkType::PointToPoint));
    assert_eq!(check(&mut a, &mut b, 1500), 0);
    assert_eq!(check(&mut b, &mut a, 1500), 0);
    let mut queue = TxQueue::new(1 << 20);
    queue.push(&frame(1, 1497), None).unwrap();
    a.flush(&mut queue).unwrap();
    assert_eq!(a.counters().out_too_long, 1, "4 + 1497 octets do not fit into 1500");
}

#[test]
fn an_ethernet_group_tells_its_senders_apart() {
    let Some(link) = Link::new() else { return };
    let open = |end| link.inside(end, |dev| EtherFace::open(dev, GROUP, 1 << 20).unwrap());
    let (mut a, mut b) = (open(0), open(1));
    assert_eq!(a.link(), LinkType::MultiAccess);
    let (of_a, of_b) = (check(&mut a, &mut b, 1500), check(&mut b, &mut a, 1500));
    assert!(of_a != of_b && of_a != 0 && of_b != 0);
}

#[test]
fn an_unknown_station_comes_to_the_listener_until_it_has_a_face() {
    let Some(link) = Link::new() else { return };
    let mac_b = link.inside(1, |dev| dev.mac.unwrap());
    let mut a = link.inside(0, |dev| EtherFace::open(dev, mac_b, 1 << 20).unwrap());
    let mut listener = link.inside(1, |dev| EtherListener::open(dev, 1 << 20).unwrap());
    let mut pool = BufPool::new(CHUNK_LEN, 16);
    let (mut queue, mut out, start) = (TxQueue::new(1 << 20), Vec::new(), Instant::now());
    while out.is_empty() {
        assert!(start.elapsed() < DEADLINE);
        queue.push(b"\x05\x00", None).unwrap();
        if a.flush(&mut queue).is_err() {
            queue.pop(1);
        }
        listener.accept(&mut pool, 8, &mut out).unwrap();
    }
    let Some(Incoming::Frame { peer, frame }) = out.pop() else { panic!("{out:?}") };
    assert_eq!(&*frame.bytes, b"\x05\x00", "without padding");
    let mut b = link.inside(1, |_| listener.face_for(peer).unwrap());
    check(&mut a, &mut *b, 1500);
    out.clear();
    listener.accept(&mut pool, 1000, &mut out).unwrap();
    assert!(out.len() < 100, "the face took them, not the listener");
}

#[test]
fn a_udp_group_of_either_family_reaches_the_other_end_of_the_link() {
    let Some(link) = Link::new() else { return };
    for group in ["224.0.23.170:56363", "[ff02::1234]:56363"] {
        let group = group.parse().unwrap();
        let options = UdpOptions::default();
        let open = |end| {
            link.inside(end, |dev| {
                UdpMulticastFace::open(group, dev, &options, Loopback::Off).unwrap()
            })
        };
        let (mut a, mut b) = (open(0), open(1));
        assert!(
            a.remote_uri().is_canonical() && a.local_uri().to_string().ends_with("+dev://va:56363")
        );
        let (of_a, of_b) = (check(&mut a, &mut b, 8800), check(&mut b, &mut a, 8800));
        assert!(of_a != of_b && of_a != 0 && of_b != 0);
    }
}

#[test]
fn udp_frames_longer_than_the_path_takes_cross_as_fragments() {
    let Some(link) = Link::new() else { return };
    let options = UdpOptions::default();
    let at = "10.81.0.2:6363".parse().unwrap();
    let mut listener = link.inside(1, |_| UdpListener::bind(at, &options).unwrap());
    let from = "10.81.0.1:6363".parse().unwrap();
    let mut a = link.inside(0, |_| UdpFace::connect(Some(from), at, &options).unwrap());
    let mut b = link.inside(1, |_| listener.face_for(onym_face::Peer::Udp(from)).unwrap());
    check(&mut a, &mut *b, 8800);
    check(&mut *b, &mut a, 1400);
}

/// Tells the end `a` that what it sent from and to these ports was too long for a router: 600 octets
/// would fit. To be called inside of `b`, whose address it bears.
fn forge_too_long(ports: u16) {
    let (a, b) = ([10, 81, 0, 1], [10, 81, 0, 2]);
    let mut message = vec![3, 4, 0, 0, 0, 0];
    message.extend(600_u16.to_be_bytes());
    message.extend([0x45, 0, 0x05, 0xDC, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    message.extend(a.into_iter().chain(b));
    message.extend(
        [ports.to_be_bytes(), ports.to_be_bytes(), 1480_u16.to_be_bytes(), [0, 0]].concat(),
    );
    let sum: u32 = message.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    let check = !u16::try_from((folded & 0xFFFF) + (folded >> 16)).unwrap();
    message[2..4].copy_from_slice(&check.to_be_bytes());
    let kind = Some(socket2::Protocol::ICMPV4);
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::RAW, kind).unwrap();
    let to = std::net::SocketAddr::from((a, 0));
    socket.send_to(&message, &to.into()).unwrap();
}

/// Waits until the kernel has an error for the face.
fn await_error(face: &dyn Face) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let (fd, time) = (face.fd(), Timespec { tv_sec: 10, tv_nsec: 0 });
    let mut waits = [PollFd::new(&fd, PollFlags::empty())];
    assert_eq!(poll(&mut waits, Some(&time)).unwrap(), 1, "no error came");
    assert!(waits[0].revents().contains(PollFlags::ERR));
}

#[test]
fn frames_leave_whole_where_asked_and_a_forged_word_about_their_length_loses_none() {
    let Some(link) = Link::new() else { return };
    let (options, port) = (UdpOptions::default(), 6363);
    let at = [[10, 81, 0, 1], [10, 81, 0, 2]].map(|at| std::net::SocketAddr::from((at, port)));
    let open = |end: usize| {
        link.inside(end, |_| UdpFace::connect(Some(at[end]), at[1 - end], &options).unwrap())
    };
    let (mut a, mut b) = (open(0), open(1));
    assert_eq!(a.send_whole(true), Some(1472));
    check(&mut a, &mut b, 1472);
    let mut queue = TxQueue::new(1 << 20);
    queue.push(&frame(1, 1469), None).unwrap();
    a.flush(&mut queue).unwrap();
    assert_eq!(a.counters().out_too_long, 1, "4 + 1469 octets do not leave whole");
    // Whether the face hears of it by receiving or by sending.
    link.inside(1, |_| forge_too_long(port));
    await_error(&a);
    let mut pool = BufPool::new(CHUNK_LEN, 4);
    a.receive(&mut pool, 8, &mut Vec::new()).unwrap();
    link.inside(1, |_| forge_too_long(port));
    await_error(&a);
    check(&mut a, &mut b, 1472);
    assert_eq!(a.counters().out_too_long, 1);
    a.send_whole(false);
    check(&mut a, &mut b, 8800);
}

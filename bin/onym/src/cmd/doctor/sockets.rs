//! Whether the sockets of the configuration can be opened, and with which buffers.

use super::Finding;
use super::node::Running;
use crate::human;
use onym_node::config::{Config, OneOrMany};
use onym_sys::socket::{BufferSize, set_recv_buffer, set_send_buffer};
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

pub(super) fn check(config: &Config, running: Option<&Running>, checks: &mut Vec<Finding>) {
    checks.extend(unix(config));
    let faces = &config.faces;
    let udp = |a| UdpSocket::bind(a).map(drop);
    let tcp = |a| TcpListener::bind(a).map(drop);
    checks.extend(listen("udp", "faces.udp.listen", &faces.udp.listen, running, &udp));
    checks.extend(listen("tcp", "faces.tcp.listen", &faces.tcp.listen, running, &tcp));
    let websocket = &faces.websocket.listen;
    checks.extend(listen("websocket", "faces.websocket.listen", websocket, running, &tcp));
    checks.extend(listen("quic", "faces.quic.listen", &faces.quic.listen, running, &udp));
    checks.extend(listen("metrics", "metrics.listen", &config.metrics.listen, running, &tcp));
    buffers(config, checks);
    if faces.shm.enabled {
        checks.push(shared_memory());
    }
}

/// The Unix socket of applications.
fn unix(config: &Config) -> Option<Finding> {
    const CHECK: &str = "unix socket";
    let places = match config.faces.unix.path.0.as_str() {
        "" => return Some(Finding::ok(CHECK, "off (faces.unix.path is empty)")),
        "auto" => onym_node::unix_places(),
        path => vec![PathBuf::from(path)],
    };
    let mut refused = Vec::new();
    for place in &places {
        match unix_place(place) {
            Ok(found) => {
                let found = format!("{}: {found}", place.display());
                return Some(match refused.is_empty() {
                    true => Finding::ok(CHECK, found),
                    false => Finding::ok(CHECK, format!("{found} ({})", refused.join("; "))),
                });
            }
            Err(why) => refused.push(format!("not {}: {why}", place.display())),
        }
    }
    let mend = "create the directory and give it to the node's user, or set faces.unix.path";
    Some(Finding::failed(CHECK, refused.join("; "), mend))
}

fn unix_place(place: &Path) -> Result<&'static str, String> {
    if UnixStream::connect(place).is_ok() {
        return Ok("a node listens there");
    }
    let stale = fs::symlink_metadata(place).is_ok();
    // The nearest directory that exists: the node makes those below it.
    let directory = place.ancestors().skip(1).find(|d| d.exists() || d.as_os_str().is_empty());
    let directory = directory.filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    match rustix::fs::access(directory, wanted) {
        Ok(()) if stale => Ok("left behind by a node that is gone; the next one takes it over"),
        Ok(()) => Ok("can be made"),
        Err(error) => Err(format!("{} is not writable: {error}", directory.display())),
    }
}

type Bind<'a> = &'a dyn Fn(SocketAddr) -> io::Result<()>;

/// The addresses of one `listen` key; nothing to say when it is off.
fn listen(
    check: &'static str,
    key: &str,
    list: &OneOrMany,
    running: Option<&Running>,
    bind: Bind<'_>,
) -> Option<Finding> {
    if list.0.is_empty() {
        return None;
    }
    let mut free = Vec::new();
    let mut taken = false;
    for text in &list.0 {
        let Ok(address) = text.parse::<SocketAddr>() else { continue };
        match bind(address) {
            Ok(()) => free.push(text.clone()),
            Err(error) if error.kind() == ErrorKind::AddrInUse && is_ours(running, check, text) => {
                taken = true;
                free.push(text.clone());
            }
            Err(error) if is_absent_ipv6(address, &error) => {
                free.push(format!("{text} left out: this machine has no IPv6"));
            }
            Err(error) => return Some(not_bound(check, key, address, &error)),
        }
    }
    let state = if taken { "in use by the node that answers" } else { "free" };
    Some(Finding::ok(check, format!("{}: {state}", free.join(", "))))
}

/// Whether the node that answered listens there. Metrics are no face, so they are in no list.
fn is_ours(running: Option<&Running>, check: &str, address: &str) -> bool {
    let Some(running) = running else { return false };
    let scheme = if check == "websocket" { "ws" } else { check };
    let end = format!("://{address}");
    let listens = running.channels.iter().any(|c| c.starts_with(scheme) && c.ends_with(&end));
    listens || (running.is_onym && check == "metrics")
}

fn is_absent_ipv6(address: SocketAddr, error: &io::Error) -> bool {
    use rustix::io::Errno;
    let is_any = address.is_ipv6() && address.ip().is_unspecified();
    let errno = Errno::from_io_error(error);
    is_any && matches!(errno, Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL))
}

fn not_bound(check: &'static str, key: &str, address: SocketAddr, error: &io::Error) -> Finding {
    let port = address.port();
    let mend = match error.kind() {
        ErrorKind::AddrInUse => {
            let kind = if check == "udp" { "u" } else { "t" };
            format!("`ss -ln{kind}p 'sport = :{port}'` shows who has it: stop that, or set {key}")
        }
        ErrorKind::AddrNotAvailable => {
            format!("no interface has this address (`ip address`): give it to one, or set {key}")
        }
        ErrorKind::PermissionDenied => format!(
            "ports below 1024 need CAP_NET_BIND_SERVICE: choose a higher port in {key}, or start with the privilege"
        ),
        _ => format!("set {key} to another address, or to [] for none"),
    };
    Finding::failed(check, format!("{address}: {error}"), mend)
}

/// Buffers as the kernel grants them to this user.
fn buffers(config: &Config, checks: &mut Vec<Finding>) {
    let udp = &config.faces.udp;
    let Ok(socket) = UdpSocket::bind("127.0.0.1:0").or_else(|_| UdpSocket::bind("[::1]:0")) else {
        let mend = "is the loopback interface up? `ip link set lo up`";
        checks.push(Finding::failed("buffers", "no UDP socket can be opened on loopback", mend));
        return;
    };
    let sides = [
        ("receive buffer", "rmem_max", set_recv_buffer(&socket, udp.receive_buffer_bytes)),
        ("send buffer", "wmem_max", set_send_buffer(&socket, udp.send_buffer_bytes)),
    ];
    for (check, limit, granted) in sides {
        checks.push(match granted {
            Ok(size) => buffer(check, limit, size),
            Err(error) => Finding::failed(check, error.to_string(), "lower faces.udp.*_bytes"),
        });
    }
    checks.push(match onym_sys::mmsg::enable_gro(&socket) {
        Ok(()) => Finding::ok("udp offload", "the kernel joins and splits datagrams (GRO, GSO)"),
        Err(error) => Finding::warning(
            "udp offload",
            format!("datagrams come one by one: {error}"),
            "a kernel from 5.0 on joins them, which costs less for each",
        ),
    });
}

fn buffer(check: &'static str, limit: &str, size: BufferSize) -> Finding {
    let path = format!("/proc/sys/net/core/{limit}");
    let max = fs::read_to_string(&path).ok().and_then(|t| t.trim().parse::<u64>().ok());
    let (asked, got) = (human::bytes(size.asked as u64), human::bytes(size.got as u64));
    let max_text = max.map_or_else(|| "unknown".into(), human::bytes);
    if size.got < size.asked {
        return Finding::warning(
            check,
            format!(
                "{got} of the {asked} asked for: net.core.{limit} is {max_text}; bursts may be lost"
            ),
            format!(
                "as root: sysctl -w net.core.{limit}={} (and in /etc/sysctl.d/onym.conf, to keep it)",
                size.asked
            ),
        );
    }
    if max.is_some_and(|max| max < size.asked as u64) {
        return Finding::ok(
            check,
            format!("{got}, by privilege (net.core.{limit} is {max_text}; other users get that)"),
        );
    }
    Finding::ok(check, format!("{got} (net.core.{limit} is {max_text})"))
}

fn shared_memory() -> Finding {
    const CHECK: &str = "shared memory";
    match onym_sys::shm::SharedMemory::create("onym-doctor", 4096) {
        Ok(_) => Finding::ok(CHECK, "rings for local applications can be made"),
        Err(error) => Finding::warning(
            CHECK,
            format!("cannot be created: {error}; applications fall back to the Unix socket"),
            "raise the limits of memory and descriptors, or set faces.shm.enabled=false",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::doctor::Grade;

    #[test]
    fn a_taken_port_fails_unless_the_node_that_answers_has_it() {
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = held.local_addr().unwrap().to_string();
        let list = OneOrMany::of(&[&address]);
        let bind = |a| TcpListener::bind(a).map(drop);
        let alone = listen("tcp", "faces.tcp.listen", &list, None, &bind).unwrap();
        assert_eq!(alone.result, Grade::Failed);
        assert!(alone.mend.unwrap().contains("ss -lntp"), "how to see whose it is");
        let channels = vec![format!("tcp4://{address}")];
        let running = Running { is_onym: true, channels, clock_ahead_ms: 0 };
        let ours = listen("tcp", "faces.tcp.listen", &list, Some(&running), &bind).unwrap();
        assert_eq!(ours.result, Grade::Ok, "{ours:?}");
    }

    #[test]
    fn a_buffer_smaller_than_asked_for_is_a_warning_with_the_command_that_raises_it() {
        let small = buffer("receive buffer", "rmem_max", BufferSize { asked: 100, got: 50 });
        assert_eq!(small.result, Grade::Warning);
        assert!(small.mend.unwrap().contains("sysctl -w net.core.rmem_max=100"));
    }

    #[test]
    fn a_socket_is_made_where_its_directory_can_be() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(unix_place(&dir.path().join("a/b/nfd.sock")), Ok("can be made"));
        let path = dir.path().join("nfd.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(unix_place(&path), Ok("a node listens there"));
        drop(listener);
        assert!(unix_place(&path).unwrap().starts_with("left behind"));
    }
}

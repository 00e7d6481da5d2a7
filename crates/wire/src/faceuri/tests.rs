use super::*;
use std::net::Ipv6Addr;

#[test]
fn canonical_forms_survive_and_others_are_completed() {
    for uri in [
        "udp4://1.2.3.4:6363",
        "udp6://[2001:db8::1]:6363",
        "udp6://[fe80::1%eth0]:6363",
        "tcp4://127.0.0.1:6363",
        "tcp6://[::1]:6363",
        "unix:///run/nfd/nfd.sock",
        "shm:///run/nfd/nfd.sock",
        "fd://7",
        "ether://[08:00:27:01:01:01]",
        "dev://eth0",
        "udp4+dev://eth0:6363",
        "ws://0.0.0.0:9696",
        "wsclient://1.2.3.4:5678",
        "wsclient://[::1]:5678",
        "quic://1.2.3.4:6367",
        "quic://[fe80::1%eth0]:443",
        "internal://",
        "null://",
        "contentstore://",
    ] {
        assert_eq!(FaceUri::parse_canonical(uri).map(|u| u.to_string()), Ok(uri.to_owned()));
    }
    for (uri, canonical) in [
        ("udp://1.2.3.4", "udp4://1.2.3.4:6363"),
        ("udp://224.0.23.170", "udp4://224.0.23.170:56363"),
        ("udp6://[FE80:0::1%25eth0]:7", "udp6://[fe80::1%eth0]:7"),
        ("tcp://[::1]/", "tcp6://[::1]:6363"),
        ("ether://[08:00:27:01:01:AA]", "ether://[08:00:27:01:01:aa]"),
        ("ws://1.2.3.4/", "ws://1.2.3.4:9696"),
        ("quic://1.2.3.4/", "quic://1.2.3.4:6367"),
    ] {
        assert!(FaceUri::parse_canonical(uri).is_err(), "{uri}");
        let completed = uri.parse::<FaceUri>().unwrap().canonical().unwrap();
        assert_eq!(completed.to_string(), canonical);
    }
}

#[test]
fn a_host_name_is_left_to_be_resolved() {
    let uri: FaceUri = "udp4://router.example:7".parse().unwrap();
    assert!(!uri.is_canonical() && uri.canonical().is_none());
    assert_eq!(uri.to_string(), "udp4://router.example:7");
    let resolved = uri.resolved(IpAddr::from([192, 0, 2, 1])).unwrap();
    assert_eq!(resolved.to_string(), "udp4://192.0.2.1:7");
    assert!(uri.resolved(IpAddr::V6(Ipv6Addr::LOCALHOST)).is_none());
}

#[test]
fn a_multicast_address_is_no_tcp_face() {
    assert!(FaceUri::parse_canonical("tcp4://224.0.23.170:6363").is_err());
}

#[test]
fn what_is_no_face_uri_is_refused() {
    for uri in [
        "",
        "udp4",
        "://x",
        "udp4://",
        "udp4://[::1]:1",
        "udp6://1.2.3.4:1",
        "udp4://1.2.3.4:x",
        "udp4://1.2.3.4:65536",
        "udp6://[::1]x",
        "udp6://[::1",
        "udp6://[fe80::1%]:1",
        "fd://x",
        "unix://",
        "unix:///",
        "unix://rel",
        "ether://08:00:27:01:01:01",
        "ether://[08:00]",
        "dev://",
        "dev://a/b",
        "udp4+dev://eth0",
        "internal://x",
        "udp4://a b:1",
    ] {
        assert!(uri.parse::<FaceUri>().is_err(), "{uri}");
    }
}

//! What names and servers say about hubs: SRV records, and the service that knows the nearest hub.

use onym_http::client::{Body, Client, Method};
use onym_ndncert::dns;
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// One question is waited for so long, twice.
const DNS_TIME: Duration = Duration::from_secs(1);
const DNS_TRIES: u32 = 2;
const ANSWER_MAX: usize = 4096;
/// As nfd-autoconfig waits for the service.
const FCH_TIME: Duration = Duration::from_secs(3);
/// Servers and domains of resolv.conf that are used, at most.
const SERVERS_MAX: usize = 3;
const DOMAINS_MAX: usize = 6;
/// Longest answer of the service: a host.
const HOST_MAX: usize = 253;

/// What the system says about looking up names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Resolver {
    pub(super) servers: Vec<SocketAddr>,
    pub(super) domains: Vec<String>,
}

impl Resolver {
    /// That of `/etc/resolv.conf`; where there is none, nothing can be looked up.
    pub(super) fn of_system() -> Self {
        fs::read_to_string("/etc/resolv.conf").map(|text| Self::read(&text)).unwrap_or_default()
    }

    fn read(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let server = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                    found.servers.extend(server.map(|ip| SocketAddr::from((ip, 53))));
                }
                // The last one counts.
                Some("search" | "domain") => {
                    found.domains = words.map(|d| d.trim_end_matches('.').to_owned()).collect();
                }
                _ => {}
            }
        }
        found.servers.truncate(SERVERS_MAX);
        found.domains.truncate(DOMAINS_MAX);
        found
    }

    /// The first service of `name`, as a URI; none when there is none, or nobody answers.
    pub(super) fn service(&self, name: &str) -> Option<String> {
        let mut servers = self.servers.iter();
        let services =
            servers.find_map(|server| (0..DNS_TRIES).find_map(|_| asked(*server, name)))?;
        let first = services.into_iter().next()?;
        dns::is_domain(&first.host).then(|| format!("udp://{}:{}", first.host, first.port))
    }
}

fn asked(server: SocketAddr, name: &str) -> Option<Vec<dns::Service>> {
    let id = u16::try_from(onym_crypto::edge::random_u64() & 0xFFFF).ok()?;
    let question = dns::service_question(id, name)?;
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(server).ok()?;
    socket.send(&question).ok()?;
    let until = Instant::now() + DNS_TIME;
    let mut answer = vec![0; ANSWER_MAX];
    loop {
        let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        socket.set_read_timeout(Some(left)).ok()?;
        let len = socket.recv(&mut answer).ok()?;
        if let Some(services) = dns::services(&question, answer.get(..len)?) {
            return Some(services);
        }
    }
}

/// The name of the SRV records of an identity's home: its components reversed, joined by dots.
pub(super) fn home_of(identity: &onym_wire::Name) -> Option<String> {
    let words: Option<Vec<String>> = identity
        .components()
        .map(|c| String::from_utf8(c.value.to_vec()).ok().filter(|word| is_label(word)))
        .collect();
    let mut words = words.filter(|words| !words.is_empty())?;
    words.reverse();
    Some(format!("_ndn._udp.{}._homehub._autoconf.named-data.net", words.join(".")))
}

fn is_label(word: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (1..=63).contains(&word.len()) && word.chars().all(good)
}

/// The host that the service at `url` names.
pub(super) fn nearest(url: &str) -> Result<String, String> {
    let rest = url.strip_prefix("http://").ok_or("only http:// is spoken here")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    let client =
        Client::of_url(&format!("http://{host}"), None, FCH_TIME).map_err(|e| e.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| e.to_string())?;
    let path = format!("/{path}");
    let asked = client.octets(Method::GET, &path, Body::None);
    let (_, octets) = runtime.block_on(asked).map_err(|e| e.to_string())?;
    host_in(&octets).ok_or_else(|| "its answer is no host".to_owned())
}

/// The one host, or the first of several, in an answer: `host`, or a URI with a scheme.
fn host_in(octets: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(octets.get(..octets.len().min(8 * HOST_MAX))?).ok()?;
    let first = text.split([',', '\n']).next()?.trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || "-.:[]%".contains(c);
    let good = !first.is_empty() && first.len() <= HOST_MAX && first.chars().all(fits);
    good.then(|| format!("udp://{first}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolv_conf_gives_servers_and_the_last_search_list() {
        let text = "# c\nnameserver 192.0.2.53\nnameserver nonsense\nnameserver 2001:db8::53\n\
                    domain old.example\nsearch a.example. b.example\noptions ndots:1\n";
        let found = Resolver::read(text);
        let servers: Vec<String> = found.servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["192.0.2.53:53", "[2001:db8::53]:53"]);
        assert_eq!(found.domains, ["a.example", "b.example"]);
    }

    #[test]
    fn homes_are_identities_backward_and_hosts_are_hosts() {
        let name = |uri: &str| uri.parse().unwrap();
        assert_eq!(
            home_of(&name("/edu/site/alice")).unwrap(),
            "_ndn._udp.alice.site.edu._homehub._autoconf.named-data.net"
        );
        assert_eq!(home_of(&name("/edu/a b")), None);
        assert_eq!(host_in(b"hub.example.net\n").unwrap(), "udp://hub.example.net");
        assert_eq!(host_in(b"192.0.2.1:6363,other").unwrap(), "udp://192.0.2.1:6363");
        for bad in [&b""[..], b"<html>", b"\xff", b"a b"] {
            assert_eq!(host_in(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_name_server_and_a_service_on_this_machine_are_asked() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let resolver = Resolver { servers: vec![server.local_addr().unwrap()], domains: vec![] };
        let answering = std::thread::spawn(move || {
            let mut question = vec![0; 512];
            let (len, from) = server.recv_from(&mut question).unwrap();
            let mut answer = question[..len].to_vec();
            answer[2] |= 0x80;
            answer[7] = 1;
            answer.extend_from_slice(b"\xc0\x0c\x00\x21\x00\x01\x00\x00\x00\x3c\x00\x10");
            answer.extend_from_slice(b"\x00\x00\x00\x00\x18\xdb\x03hub\x04test\x00");
            server.send_to(&answer, from).unwrap();
        });
        let found = resolver.service("_ndn._udp.example.net").unwrap();
        answering.join().unwrap();
        assert_eq!(found, "udp://hub.test:6363");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let answering = std::thread::spawn(move || {
            use std::io::{Read as _, Write as _};
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 512];
            let len = stream.read(&mut request).unwrap();
            assert!(request[..len].starts_with(b"GET / HTTP/1.1\r\n"));
            write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: 8\r\n\r\nhub.test").unwrap();
        });
        let found = nearest(&url).unwrap();
        answering.join().unwrap();
        assert_eq!(found, "udp://hub.test");
        assert!(nearest("https://fch.example.net").is_err());
    }
}

//! Checks that addresses are free, before services are stopped for a change.

use super::DriverError;
use crate::network::Function;
use std::collections::BTreeSet;
use std::net::{TcpListener, ToSocketAddrs as _, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Refuses functions whose listeners could not be opened on this machine. What `freed` names is
/// taken by who is stopped before they start.
pub(super) fn listeners(
    functions: &[(&str, &Function)],
    freed: &BTreeSet<String>,
) -> Result<(), DriverError> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (name, function) in functions {
        for uri in function.listen.values().flatten() {
            let fixed = !uri.ends_with(":0");
            if let Some((other, _)) = seen.iter().find(|(_, had)| had == uri).filter(|_| fixed) {
                return Err(DriverError::start(name, format!("{uri}: {other} listens there too")));
            }
            seen.push((name, uri));
            if !freed.contains(uri) {
                is_free(uri).map_err(|why| DriverError::start(name, format!("{uri}: {why}")))?;
            }
        }
    }
    Ok(())
}

fn is_free(uri: &str) -> Result<(), String> {
    let (scheme, rest) = uri.split_once("://").unwrap_or_default();
    let text = |e: std::io::Error| e.to_string();
    match scheme {
        "tcp4" | "tcp6" => {
            let at: Vec<_> = rest.to_socket_addrs().map_err(text)?.collect();
            TcpListener::bind(at.as_slice()).map(drop).map_err(text)
        }
        "udp4" | "udp6" => {
            let at: Vec<_> = rest.to_socket_addrs().map_err(text)?.collect();
            UdpSocket::bind(at.as_slice()).map(drop).map_err(text)
        }
        "unix" if UnixStream::connect(rest).is_ok() => Err("another program answers there".into()),
        "unix" if !Path::new(rest).parent().is_some_and(Path::is_dir) => {
            Err("the folder does not exist; create it first".into())
        }
        "ether" if !Path::new("/sys/class/net").join(rest).exists() => {
            Err("the interface does not exist".into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;

    fn at(uri: &str) -> Function {
        let mut function = Function::new(Kind::BackwardRouter);
        function.listen.insert("in".into(), vec![uri.into()]);
        function
    }

    #[test]
    fn what_is_taken_is_told_and_what_will_be_free_is_not() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let tcp_at = format!("tcp4://{}", tcp.local_addr().unwrap());
        let udp_at = format!("udp4://{}", udp.local_addr().unwrap());
        let none = BTreeSet::new();
        for uri in [&tcp_at, &udp_at, "unix:///no/such/folder/x", "ether://no-such-interface"] {
            let error = listeners(&[("br", &at(uri))], &none).unwrap_err().to_string();
            assert!(error.contains("br") && error.contains(uri), "{error}");
        }
        assert!(listeners(&[("br", &at(&udp_at))], &BTreeSet::from([udp_at.clone()])).is_ok());
        drop(tcp);
        assert!(listeners(&[("br", &at(&tcp_at))], &none).is_ok());
        let twice = [("a", &at(&tcp_at)), ("b", &at(&tcp_at))];
        assert!(listeners(&twice, &none).unwrap_err().to_string().contains("a listens there too"));
        let any = "tcp4://127.0.0.1:0";
        assert!(listeners(&[("a", &at(any)), ("b", &at(any))], &none).is_ok());
    }
}

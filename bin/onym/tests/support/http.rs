//! `onym gateway http`, and a client of it that adds nothing by itself.

use super::{Place, Running};
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// An answer: its status, headers in small letters, body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// A gateway, and where it listens.
pub(crate) struct Gateway {
    _process: Running,
    pub(crate) address: String,
}

impl Gateway {
    pub(crate) fn start(place: &Place, more: &[&str]) -> Self {
        let mut args = vec!["gateway", "http", "--listen", "127.0.0.1:0"];
        args.extend(more);
        let mut process = place.start(&args);
        process.wait_for("ready: http://");
        let said = process.out.text();
        let address = said.trim().strip_prefix("ready: http://").unwrap();
        Self { address: address.strip_suffix("/ndn/").unwrap().to_owned(), _process: process }
    }

    /// One request on a connection of its own.
    pub(crate) fn ask(&self, method: &str, path: &str, lines: &[&str]) -> Answer {
        ask(&self.address, method, path, lines)
    }

    pub(crate) fn get(&self, path: &str, lines: &[&str]) -> Answer {
        self.ask("GET", path, lines)
    }
}

/// One request to `address` on a connection of its own.
pub(crate) fn ask(address: &str, method: &str, path: &str, lines: &[&str]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for line in lines {
        head += line;
        head += "\r\n";
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(all[..end].to_vec()).unwrap();
    let (line, rest) = head.split_once("\r\n").unwrap_or((&head, ""));
    let headers = rest.lines().filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(n, v)| (n.to_lowercase(), v.to_owned())).collect();
    let status = line.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, headers, body: all[end + 4..].to_vec() }
}

//! Those who look at the node that is counted: `onym top`, `onym dump` of one prefix, and a collector of
//! spans.

use crate::link::connect_unix;
use anyhow::{Context, Result};
use onym_client::{Client, mgmt};
use onym_wire::name::Name;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

/// Questions of a run, whatever its rounds: so they are in both runs, and subtracted.
pub(super) const POLLS: u32 = 5;

/// A collector that takes everything.
#[derive(Debug)]
pub(super) struct Collector(SocketAddr);

impl Collector {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                std::thread::spawn(move || answer(socket));
            }
        });
        Ok(Self(address))
    }

    /// What the node's configuration says of it: one Interest in a hundred is recorded, however fast
    /// they come.
    pub(super) fn section(&self) -> String {
        format!(
            "[telemetry]\ncollector = \"http://{}\"\nsample = 100\nspans_per_second = 1000000\n",
            self.0
        )
    }
}

/// Answers requests until the other end closes.
fn answer(socket: TcpStream) -> Option<()> {
    let mut socket = BufReader::new(socket);
    loop {
        let mut len = 0;
        loop {
            let mut line = String::new();
            socket.read_line(&mut line).ok().filter(|octets| *octets > 0)?;
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                len = value.trim().parse().ok()?;
            }
        }
        std::io::copy(&mut socket.by_ref().take(len), &mut std::io::sink()).ok()?;
        socket.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").ok()?;
    }
}

/// Somebody who runs `onym top` and `onym dump`.
#[derive(Debug)]
pub(super) struct Viewer {
    client: Client,
    asked: u32,
}

impl Viewer {
    pub(super) fn connect(socket: &Path) -> Result<Self> {
        Ok(Self { client: Client::over(connect_unix(socket)?), asked: 0 })
    }

    /// One look: what `onym top` asks once a second, and the packets of one place of the window.
    pub(super) fn look(&mut self) -> Result<()> {
        self.poll()?;
        let prefix = "/onym/bench/load/alpha/bravo/charlie/%00%00%00%07";
        self.ask("dump", &format!("viewer=1&n={}&prefix={prefix}", self.asked))
    }

    /// As `onym top` alone.
    pub(super) fn poll(&mut self) -> Result<()> {
        self.asked += 1;
        let n = self.asked;
        self.ask("top", &format!("viewer=1&n={n}&faces=50&order=packets&depth=3"))
    }

    fn ask(&mut self, what: &str, question: &str) -> Result<()> {
        let mut name: Name = format!("/localhost/onym/{what}").parse()?;
        name.append_generic(question);
        mgmt::fetch_dataset(&mut self.client, name).with_context(|| format!("asking {what}"))?;
        Ok(())
    }
}

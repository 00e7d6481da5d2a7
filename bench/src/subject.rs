//! What is measured: starting a forwarder, whatever it is, with one Unix socket and perhaps UDP.

use anyhow::{Context, Result, bail, ensure};
use onym_client::ClientOptions;
use onym_client::RouteOptions;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_wire::mgmt::ControlParameters;
use onym_wire::name::Name;
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A forwarder, or the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The bare relay.
    Relay,
    /// This project's node.
    Onym,
    /// The same with its defences off (`forward.fairness = false`).
    OnymOpen,
    /// YaNFD, of the ndnd distribution.
    Ndnd,
    /// NFD.
    Nfd,
    /// The forwarder of ndn-rs.
    NdnFwd,
}

/// Those that are compared throughout, in the order of the tables.
pub const ALL: [Subject; 5] =
    [Subject::Relay, Subject::Onym, Subject::Ndnd, Subject::Nfd, Subject::NdnFwd];

/// How one node is to be started.
#[derive(Debug, Clone)]
pub struct NodeSpec {
    /// Where its files go.
    pub folder: PathBuf,
    /// Its name within the run, such as `a`.
    pub name: &'static str,
    /// Our UDP port and that of the other node, on 127.0.0.1.
    pub udp: Option<(u16, u16)>,
    /// Whether these ports are spoken to by QUIC.
    pub quic: bool,
    /// Packets that the content store keeps.
    pub cs_packets: usize,
    /// Receive buffer of UDP sockets, where it can be set.
    pub recv_buffer: Option<usize>,
    /// The core it runs on.
    pub core: usize,
}

impl NodeSpec {
    /// Its Unix socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!("{}.sock", self.name))
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{}.{kind}", self.name))
    }
}

/// A running node; ended when dropped.
#[derive(Debug)]
pub struct Node {
    child: Child,
    socket: PathBuf,
}

impl Node {
    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its Unix socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Finds a program on PATH.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|p| p.is_file())
}

impl Subject {
    /// The word in tables and rows.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Onym => "onym",
            Self::OnymOpen => "onym-open",
            Self::Ndnd => "ndnd",
            Self::Nfd => "nfd",
            Self::NdnFwd => "ndn-fwd",
        }
    }

    /// Whether it is somebody else's program.
    #[must_use]
    pub fn is_foreign(self) -> bool {
        matches!(self, Self::Ndnd | Self::Nfd | Self::NdnFwd)
    }

    /// Its program: ours from beside this one, foreign ones from PATH.
    #[must_use]
    pub fn program(self) -> Option<PathBuf> {
        let own = std::env::current_exe().ok()?;
        match self {
            Self::Relay => Some(own),
            Self::Onym | Self::OnymOpen => Some(own.with_file_name("onym")).filter(|p| p.is_file()),
            _ => on_path(self.name()),
        }
    }

    /// Starts a node and waits until its Unix socket answers.
    ///
    /// # Errors
    /// When it does not, with what it said.
    pub fn start(self, spec: &NodeSpec) -> Result<Node> {
        let program = self.program().with_context(|| format!("no program {}", self.name()))?;
        let mut command = Command::new("taskset");
        command.arg("-c").arg(spec.core.to_string()).arg(program);
        self.arguments(&mut command, spec)?;
        self.spawn(command, spec.socket(), &spec.file("log"))
    }

    /// Runs `command`, which starts a node, and waits until its Unix `socket` answers.
    ///
    /// # Errors
    /// When it does not, with what it said.
    pub(crate) fn spawn(self, mut command: Command, socket: PathBuf, said: &Path) -> Result<Node> {
        let log = File::create(said)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("{command:?} cannot be run"))?;
        let mut node = Node { child, socket };
        let start = Instant::now();
        // The relay takes each connection as one of its ends, so it is only looked at.
        while match self {
            Self::Relay => !node.socket.exists(),
            _ => UnixStream::connect(&node.socket).is_err(),
        } {
            if start.elapsed() > Duration::from_secs(15) || node.child.try_wait()?.is_some() {
                let said = fs::read_to_string(said)?;
                bail!("{} does not open {}:\n{said}", self.name(), node.socket.display());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(node)
    }

    fn arguments(self, command: &mut Command, spec: &NodeSpec) -> Result<()> {
        let (config, socket) = (spec.file("conf"), spec.socket());
        let text = match self {
            Self::Relay => {
                command.arg("relay").arg("--unix").arg(&socket);
                if let Some((own, peer)) = spec.udp {
                    command.arg(format!("--udp-local=127.0.0.1:{own}"));
                    command.arg(format!("--udp-peer=127.0.0.1:{peer}"));
                }
                if let Some(octets) = spec.recv_buffer {
                    command.arg(format!("--recv-buffer={octets}"));
                }
                return Ok(());
            }
            Self::Onym | Self::OnymOpen => {
                if spec.quic {
                    certify(&spec.folder)?;
                }
                command.args(["daemon", "--config"]).arg(&config);
                if self == Self::OnymOpen {
                    command.args(["--set", "forward.fairness=false"]);
                }
                onym_config(spec)
            }
            Self::Ndnd => {
                command.args(["fw", "run"]).arg(&config);
                ndnd_config(spec)
            }
            Self::Nfd => {
                command.arg("--config").arg(&config);
                nfd_config(spec)
            }
            Self::NdnFwd => {
                command.arg("--config").arg(&config);
                ndn_fwd_config(spec)
            }
        };
        fs::write(&config, text)?;
        Ok(())
    }

    /// Makes `node` send Interests under `prefix` to the node at `peer`, a face URI.
    ///
    /// # Errors
    /// When the node refuses.
    pub fn connect(self, node: &Node, prefix: &str, peer: &str) -> Result<()> {
        if self == Self::Relay {
            return Ok(());
        }
        let uri = format!("unix://{}", node.socket.display());
        let options = ClientOptions { node: Some(uri), ..ClientOptions::default() };
        let mut client = Client::open(options)?;
        let wanted =
            ControlParameters { uri: Some(peer.to_owned()), ..ControlParameters::default() };
        let face = mgmt::create_face(&mut client, &wanted)?.face;
        let route = ControlParameters {
            name: Some(prefix.parse()?),
            face_id: face.face_id,
            ..ControlParameters::default()
        };
        client.command(["rib", "register"], &route)?;
        Ok(())
    }
}

/// Makes the certificate that nodes of QUIC show, once in a folder.
fn certify(folder: &Path) -> Result<()> {
    let (chain, key) = (folder.join("quic.pem"), folder.join("quic.key"));
    if chain.exists() {
        return Ok(());
    }
    let made = Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=n".split(' '))
        .arg("-out")
        .arg(&chain)
        .arg("-keyout")
        .arg(&key)
        .output()
        .context("openssl, which makes a certificate for QUIC, cannot be run")?;
    ensure!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}

fn onym_config(spec: &NodeSpec) -> String {
    let ours = spec.udp.map_or(String::new(), |(own, _)| format!("\"127.0.0.1:{own}\""));
    let quic = if spec.quic {
        let file = |kind| spec.folder.join(format!("quic.{kind}")).display().to_string();
        let (chain, key) = (file("pem"), file("key"));
        format!("[faces.quic]\nlisten = [{ours}]\ncertificate = \"{chain}\"\nkey = \"{key}\"\n")
    } else {
        String::new()
    };
    let listen = if spec.quic { "" } else { &ours };
    let buffer =
        spec.recv_buffer.map_or(String::new(), |o| format!("receive_buffer_bytes = {o}\n"));
    format!(
        "shards = 1\n\
         [cs]\npackets_max = {cs}\n\
         [faces.unix]\npath = \"{socket}\"\n\
         [faces.udp]\nlisten = [{listen}]\n{buffer}\
         [faces.tcp]\nlisten = []\n\
         [faces.websocket]\nlisten = []\n{quic}",
        cs = spec.cs_packets,
        socket = spec.socket().display(),
    )
}

fn ndnd_config(spec: &NodeSpec) -> String {
    let (udp, port) = (spec.udp.is_some(), spec.udp.map_or(6363, |(own, _)| own));
    format!(
        "core:\n  log_level: ERROR\n\
         faces:\n  udp:\n    enabled_unicast: {udp}\n    enabled_multicast: false\n    \
         port_unicast: {port}\n    default_mtu: 8800\n  tcp:\n    enabled: false\n  \
         unix:\n    enabled: true\n    socket_path: {socket}\n  websocket:\n    enabled: false\n\
         fw:\n  threads: 1\n\
         tables:\n  content_store:\n    capacity: {cs}\n    admit: {on}\n    serve: {on}\n",
        socket = spec.socket().display(),
        cs = spec.cs_packets.clamp(1, 65_000),
        on = spec.cs_packets > 0,
    )
}

fn nfd_config(spec: &NodeSpec) -> String {
    let udp = spec.udp.map_or_else(
        || "listen no\n".to_owned(),
        |(own, _)| format!("listen yes\nport {own}\nenable_v6 no\nmcast no\n"),
    );
    format!(
        "log {{ default_level ERROR }}\n\
         tables {{\n cs_max_packets {cs}\n strategy_choice {{ / /localhost/nfd/strategy/best-route }}\n}}\n\
         face_system {{\n unix {{ path {socket} }}\n udp {{ {udp} }}\n}}\n\
         authorizations {{ authorize {{ certfile any privileges {{ faces fib cs strategy-choice }} }} }}\n\
         rib {{ localhost_security {{ trust-anchor {{ type any }} }} }}\n",
        cs = spec.cs_packets,
        socket = spec.socket().display(),
    )
}

fn ndn_fwd_config(spec: &NodeSpec) -> String {
    let udp = spec.udp.map_or_else(String::new, |(own, _)| {
        format!("[[face]]\nkind = \"udp\"\nbind = \"127.0.0.1:{own}\"\n")
    });
    let variant = if spec.cs_packets > 0 { "lru" } else { "null" };
    format!(
        "[cs]\nvariant = \"{variant}\"\ncapacity_mb = 64\n{udp}\
         [management]\nface_socket = \"{}\"\n[logging]\nlevel = \"error\"\n",
        spec.socket().display(),
    )
}

/// Registers `prefix` for the face of `client`, where the subject knows what that is.
///
/// # Errors
/// When the node refuses.
pub fn register(client: &mut Client, prefix: &Name) -> Result<()> {
    client.register(prefix.clone(), RouteOptions::default())?;
    Ok(())
}

//! The configuration in force, and the settings of a face.

use super::target::ip_of;
use crate::config::Config;
use crate::mgmt::Options;
use crate::mgmt::host::User;
use crate::subnet::{Subnet, includes};
use onym_face::{Face, Transport};
use onym_link::ReassemblyLimits;
use onym_sys::peer::Operators;
use onym_wire::faceuri::FaceUri;
use onym_wire::mgmt::{LinkType, Scope};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The configuration in force, with what follows from it.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) config: Config,
    /// The file of the configuration, for errors and relative paths.
    origin: PathBuf,
    /// Where TCP peers are local.
    tcp_local: Vec<Subnet>,
    operators: Operators,
}

fn local_subnets(config: &Config) -> Vec<Subnet> {
    config.faces.tcp.local.0.iter().filter_map(|s| Subnet::parse(s)).collect()
}

impl Settings {
    pub(super) fn new(config: Config, origin: PathBuf) -> Self {
        Self {
            tcp_local: local_subnets(&config),
            operators: Operators::of_group(&config.management.group),
            config,
            origin,
        }
    }

    /// Puts `config` in force; the one before.
    pub(super) fn replace(&mut self, config: Config) -> Config {
        self.tcp_local = local_subnets(&config);
        self.operators = Operators::of_group(&config.management.group);
        std::mem::replace(&mut self.config, config)
    }

    /// Who may do what by `config`, which may name files.
    ///
    /// # Errors
    /// A sentence with the key and what is wrong.
    pub(super) fn management_options(&self, config: &Config) -> Result<Options, String> {
        let origin = self.origin.display().to_string();
        let base = self.origin.parent().unwrap_or(Path::new("."));
        Options::from_config(config, &origin, base).map_err(|e| e.to_string())
    }

    /// Faces there may be.
    pub(super) fn faces_max(&self) -> usize {
        self.config.faces.count_max as usize
    }

    /// How long an on-demand datagram face lives without traffic.
    pub(super) fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.config.faces.idle_timeout_s)
    }

    /// TCP faces are local by the subnets of the configuration, WebSockets where that is on, others
    /// by their kind.
    pub(super) fn scope_of(&self, io: &dyn Face) -> Scope {
        if io.transport() == Transport::WebSocket && !self.config.faces.websocket.local {
            return Scope::NonLocal;
        }
        if io.transport() == Transport::Tcp {
            let ends = [io.remote_uri(), io.local_uri()].map(ip_of);
            let local = |ip: &Option<IpAddr>| {
                ip.is_some_and(|ip| self.tcp_local.iter().any(|net| net.contains(ip)))
            };
            return if ends.iter().all(local) { Scope::Local } else { Scope::NonLocal };
        }
        io.scope()
    }

    /// Who is at the other end of a transport, as its door tells.
    pub(super) fn user_of(&self, io: Option<&dyn Face>) -> User {
        let Some(io) = io else { return User::UNKNOWN };
        if io.transport() == Transport::Mem {
            // A part of this process.
            return User { uid: Some(onym_sys::peer::own_uid()), is_operator: true };
        }
        io.credentials().map_or(User::UNKNOWN, |peer| User {
            // What the kernel cannot name is nobody.
            uid: (peer.uid != u32::MAX).then_some(peer.uid),
            is_operator: self.operators.include(&peer),
        })
    }

    pub(super) fn link_type_of(&self, io: Option<&dyn Face>) -> LinkType {
        match io.map_or(LinkType::PointToPoint, Face::link) {
            LinkType::MultiAccess if self.config.faces.udp.multicast_ad_hoc => LinkType::AdHoc,
            link => link,
        }
    }

    /// Whether traces of Interests are taken up from a face and passed on to it.
    pub(super) fn shares_traces(&self, scope: Scope, remote: &str) -> bool {
        let telemetry = &self.config.telemetry;
        if telemetry.collector.is_empty() {
            return false;
        }
        let address = remote.parse::<FaceUri>().ok().and_then(|uri| ip_of(&uri));
        includes(&telemetry.trusted.0, scope, address)
    }

    pub(super) fn reassembly(&self) -> ReassemblyLimits {
        let config = &self.config.reassembly;
        ReassemblyLimits {
            messages_max: config.partial_max,
            octets_max: config.bytes_max,
            timeout: Duration::from_millis(config.timeout_ms),
        }
    }
}

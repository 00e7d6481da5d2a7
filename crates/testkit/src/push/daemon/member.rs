//! A node of a push script: a whole daemon in this process, which can die and start anew.

use super::super::script::Line;
use onym_node::config::{Config, PushLink};
use onym_node::{Node, NodeHandle};
use onym_tables::bloom::{Kind as SchemeKind, Scheme};
use onym_wire::push::Label;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A node of the script.
pub(super) struct Member {
    /// None while it is dead.
    handle: Option<NodeHandle>,
    pub(super) label: Label,
    pub(super) inside: u32,
    /// The domain, as written.
    pub(super) domain: String,
    /// Rendezvous or topology manager.
    pub(super) is_home: bool,
    pub(super) is_standby: bool,
    is_manager: bool,
    sets: Vec<String>,
    links: Vec<PushLink>,
    udp: SocketAddr,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Member {
    /// Starts a node with the options of `line` and the settings of all nodes, `common`.
    pub(super) fn start(
        line: &Line,
        label: Label,
        inside: u32,
        scheme: Scheme,
        common: &[String],
    ) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let socket = folder.path().join("nfd.sock");
        let has = |word: &str| line.words.iter().any(|w| w == word);
        let roles = [("rv", "\"rendezvous\""), ("tm", "\"topology\"")];
        let roles: Vec<&str> =
            roles.iter().filter(|(word, _)| has(word)).map(|(_, role)| *role).collect();
        let mut sets = vec![
            format!("faces.unix.path={}", socket.display()),
            "faces.tcp.listen=".into(),
            "faces.websocket.listen=".into(),
            "shards=1".into(),
            "push.enabled=true".into(),
            format!("push.node={label}"),
            format!("push.inside={inside}"),
            format!("push.roles=[{}]", roles.join(", ")),
            format!("push.seed={}", scheme.seed),
            format!("push.discover={}", if has("standby") { "standby" } else { "off" }),
        ];
        sets.extend(common.iter().cloned());
        if line.options.contains_key("backups") {
            sets.push("push.backups=true".into());
        }
        match scheme.kind {
            SchemeKind::Bits => sets.push("push.scheme=bits".into()),
            SchemeKind::Tags { k, tables } => {
                sets.extend([format!("push.k={k}"), format!("push.tables={tables}")]);
            }
        }
        let texts = [("key", "key"), ("domain", "domain"), ("between", "domain_key")];
        let numbers = [
            ("frame", "frame_bytes_max"),
            ("fill", "fill_max"),
            ("hold", "hold_ms"),
            ("lease", "lease_ms"),
        ];
        for (keys, quote) in [(&texts[..], "\""), (&numbers, "")] {
            for (option, key) in keys {
                if let Some(value) = line.options.get(*option) {
                    sets.push(format!("push.{key}={quote}{value}{quote}"));
                }
            }
        }
        let mut member = Self {
            handle: None,
            label,
            inside,
            domain: line.options.get("domain").cloned().unwrap_or_default(),
            is_home: !roles.is_empty(),
            is_standby: has("standby"),
            is_manager: has("tm"),
            sets,
            links: Vec::new(),
            udp: SocketAddr::from(([127, 0, 0, 1], 0)),
            socket,
            _folder: folder,
        };
        member.restart()?;
        let bound = member.handle()?.bound().udp.first().copied();
        member.udp = bound.ok_or("no UDP listener")?;
        Ok(member)
    }

    fn config(&self) -> Result<Config, String> {
        let listen = format!("faces.udp.listen={}", self.udp);
        let sets: Vec<String> = self.sets.iter().cloned().chain([listen]).collect();
        let mut config = Config::load(None, &sets).map_err(|e| e.to_string())?;
        config.push.link.clone_from(&self.links);
        Ok(config)
    }

    fn handle(&self) -> Result<&NodeHandle, String> {
        self.handle.as_ref().ok_or_else(|| "the node is dead".into())
    }

    pub(super) fn is_alive(&self) -> bool {
        self.handle.is_some()
    }

    /// Where it listens for neighbours, in this life and the next.
    pub(super) fn udp(&self) -> SocketAddr {
        self.udp
    }

    /// Where it listens for applications.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The node is gone at once. What it still has to say has to be kept from others by who calls.
    pub(super) fn crash(&mut self) {
        self.handle = None;
    }

    /// Starts it anew, with the same configuration and places.
    pub(super) fn restart(&mut self) -> Result<(), String> {
        self.handle = Some(Node::start(self.config()?).map_err(|e| e.to_string())?);
        Ok(())
    }

    pub(super) fn link_add(&mut self, link: PushLink) -> Result<(), String> {
        self.links.push(link.clone());
        self.handle()?.push_link_add(link).map_err(|e| e.to_string())
    }

    /// The link with this number is one no more, and the node knows it.
    pub(super) fn link_remove(&mut self, number: u32) -> Result<(), String> {
        self.links.retain(|link| link.number != number);
        self.handle()?.reload(self.config()?).map(drop).map_err(|e| e.to_string())
    }

    /// What it tells of its push half.
    pub(super) fn told(&self, what: &str, id: &[u8]) -> Result<Value, String> {
        let told = self.handle()?.push_dataset(what, id).map_err(|e| e.to_string())?;
        told.ok_or_else(|| format!("the node tells no {what}"))
    }

    /// Whether it knows its neighbours, `homes` rendezvous nodes and topology managers, and, where
    /// it is a manager, `domains` other domains.
    pub(super) fn is_ready(&self, homes: usize, domains: usize) -> Option<bool> {
        let told = self.told("status", &[]).ok()?;
        let is_known = |l: &Value| l["neighbour"].is_string() || l["domain"].is_string();
        let is_near = told["links"].as_array()?.iter().all(is_known);
        let reached = match domains {
            0 => 0,
            _ if !self.is_manager => domains,
            _ => self.told("topology", &[]).ok()?["domains"].as_array()?.len(),
        };
        Some(is_near && told["homes"].as_array()?.len() == homes && reached == domains)
    }
}

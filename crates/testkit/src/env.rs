//! What a running script knows: labels, captured values, numbers of faces.

use crate::script::Value;
use crate::wire::name::{Component, Part};
use crate::wire::tlv::sha256;
use std::collections::{BTreeMap, HashMap};

/// A value that `$x` keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// A number.
    Number(u64),
    /// Octets.
    Bytes(Vec<u8>),
    /// A name component.
    Component(Component),
    /// Text.
    Text(String),
}

/// What a running script knows.
#[derive(Debug, Clone, Default)]
pub struct Env {
    /// Network-layer octets of the packets that `let` built.
    pub labels: HashMap<String, Vec<u8>>,
    /// Values of `$x`.
    pub kept: BTreeMap<String, Kept>,
    /// FaceIds by face name.
    pub face_ids: HashMap<String, u64>,
    /// A component put in front of every name, where the forwarder outlives the script.
    pub apart: Option<Component>,
    /// The last Nonce made.
    pub nonce: u32,
}

impl Env {
    /// A new Nonce.
    pub fn next_nonce(&mut self) -> [u8; 4] {
        self.nonce = self.nonce.wrapping_add(0x9e37_79b9);
        self.nonce.to_be_bytes()
    }

    /// The octets of a labelled packet.
    ///
    /// # Errors
    /// There is no such label.
    pub fn packet(&self, label: &str) -> Result<&[u8], String> {
        self.labels.get(label).map(Vec::as_slice).ok_or(format!("no packet is labelled {label:?}"))
    }

    /// The FaceId of a face.
    ///
    /// # Errors
    /// There is no such face.
    pub fn face(&self, name: &str) -> Result<u64, String> {
        self.face_ids.get(name).copied().ok_or(format!("no face is called {name:?}"))
    }

    /// The name that the parts say, to be sent.
    ///
    /// # Errors
    /// A wildcard, or a capture that holds nothing.
    pub fn name(&self, parts: &[Part]) -> Result<Vec<Component>, String> {
        let mut out = Vec::with_capacity(parts.len() + 1);
        for part in parts {
            out.push(match part {
                Part::Fixed(c) => c.clone(),
                Part::DigestOf(label) => (1, sha256(&[self.packet(label)?]).to_vec()),
                Part::Capture(label) => match self.kept.get(label) {
                    Some(Kept::Component(c)) => c.clone(),
                    _ => return Err(format!("${label} holds no component")),
                },
                Part::Any | Part::Rest => return Err("a wildcard in a name to be sent".into()),
            });
        }
        self.set_apart(&mut out);
        Ok(out)
    }

    /// Puts the component that keeps runs apart into a name.
    pub fn set_apart(&self, name: &mut Vec<Component>) {
        if let Some(c) = &self.apart
            && let Some(at) = apart_at(|i| name.get(i))
        {
            name.insert(at, c.clone());
        }
    }

    /// Whether a name fits the parts; keeps what `$x` captures.
    pub fn match_name(&mut self, parts: &[Part], name: &[Component]) -> bool {
        let mut parts = parts.to_vec();
        if let Some(c) = self.apart.clone() {
            let fixed = |p: Option<&Part>| match p {
                Some(Part::Fixed(c)) => Some(c.clone()),
                _ => None,
            };
            let heads = [fixed(parts.first()), fixed(parts.get(1))];
            if parts.first() != Some(&Part::Rest)
                && let Some(at) = apart_at(|i| heads.get(i).and_then(Option::as_ref))
            {
                parts.insert(at, Part::Fixed(c));
            }
        }
        for (i, part) in parts.iter().enumerate() {
            if *part == Part::Rest {
                return true;
            }
            let Some(component) = name.get(i) else { return false };
            let fits = match part {
                Part::Any | Part::Rest => true,
                Part::Fixed(c) => c == component,
                Part::DigestOf(label) => match self.packet(label) {
                    Ok(bytes) => component.0 == 1 && component.1 == sha256(&[bytes]),
                    Err(_) => false,
                },
                Part::Capture(label) => self.keep(label, Kept::Component(component.clone())),
            };
            if !fits {
                return false;
            }
        }
        parts.len() == name.len()
    }

    /// Keeps a value under a label, or compares with what is kept.
    pub fn keep(&mut self, label: &str, value: Kept) -> bool {
        match self.kept.get(label) {
            Some(old) => *old == value,
            None => {
                self.kept.insert(label.into(), value);
                true
            }
        }
    }

    /// The number that a value says, to be sent; `None` for `-`.
    ///
    /// # Errors
    /// It says no number.
    pub fn number(&self, value: &Value) -> Result<Option<u64>, String> {
        match value {
            Value::Number(n) => Ok(Some(*n)),
            Value::Absent => Ok(None),
            Value::Face(f) => self.face(f).map(Some),
            Value::Capture(label) => match self.kept.get(label) {
                Some(Kept::Number(n)) => Ok(Some(*n)),
                _ => Err(format!("${label} holds no number")),
            },
            other => Err(format!("{other:?} is no number")),
        }
    }

    /// The text kept under a label.
    ///
    /// # Errors
    /// None is.
    pub fn text(&self, label: &str) -> Result<String, String> {
        match self.kept.get(label) {
            Some(Kept::Text(text)) => Ok(text.clone()),
            _ => Err(format!("${label} holds no text")),
        }
    }

    /// The octets that a value says, to be sent; `None` for `-`.
    ///
    /// # Errors
    /// It says no octets.
    pub fn bytes(&self, value: &Value) -> Result<Option<Vec<u8>>, String> {
        match value {
            Value::Bytes(b) => Ok(Some(b.clone())),
            Value::Text(t) => Ok(Some(t.clone().into_bytes())),
            Value::Absent => Ok(None),
            Value::Label(label) => self.packet(label).map(|b| Some(b.to_vec())),
            Value::Capture(label) => match self.kept.get(label) {
                Some(Kept::Bytes(b)) => Ok(Some(b.clone())),
                _ => Err(format!("${label} holds no octets")),
            },
            other => Err(format!("{other:?} are no octets")),
        }
    }
}

/// Where in a name the component goes that keeps runs apart: in front, behind a scope component,
/// nowhere in the names of management.
fn apart_at<'a>(component: impl Fn(usize) -> Option<&'a Component>) -> Option<usize> {
    let text = |i| component(i).map(|(_, v): &Component| v.as_slice());
    match (text(0), text(1)) {
        (Some(b"localhost" | b"localhop"), Some(b"nfd")) => None,
        (Some(b"localhost" | b"localhop"), _) => Some(1),
        _ => Some(0),
    }
}

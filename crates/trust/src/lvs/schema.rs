//! A model with its user functions, ready to judge.

use super::functions::Functions;
use super::load::LoadError;
use super::matcher::{BoundAgain, Elements, STEPS_MAX, TooCostly, Walk, elements};
use super::model::Model;
use crate::policy::{Cause, Denial};
use onym_wire::NameRef;
use onym_wire::cert::CertName;

/// Most matches of a packet that an explanation looks at.
const EXPLAINED_MAX: usize = 16;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The model does not hold together.
    #[error(transparent)]
    Model(#[from] LoadError),
    /// It calls a function that nobody gave.
    #[error("the schema calls {0}, which is not known here")]
    UnknownFunction(String),
}

/// A LightVerSec schema: which key names may sign which packet names.
#[derive(Debug, Clone)]
pub struct Schema {
    pub(super) model: Model,
    pub(super) functions: Functions,
    bound_again: BoundAgain,
    without_segments: bool,
}

impl Schema {
    /// Takes a model; every function that it calls must be known.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn new(model: Model, functions: Functions) -> Result<Self, SchemaError> {
        model.check()?;
        if let Some(unknown) = model.functions().into_iter().find(|name| !functions.has(name)) {
            return Err(SchemaError::UnknownFunction(unknown.to_owned()));
        }
        Ok(Self {
            model,
            functions,
            bound_again: BoundAgain::EqualityOnly,
            without_segments: false,
        })
    }

    /// Evaluates constraints of variables that are bound already, too. python-ndn and ndnd do not:
    /// a strict schema denies some of what they accept, never the reverse.
    #[must_use]
    pub const fn strict(mut self) -> Self {
        self.bound_again = BoundAgain::Constraints;
        self
    }

    /// Judges objects in place of packets, as ndnd does: one segment, then one version, then one
    /// `32=metadata` is taken off the end of a packet's name, unless it is a certificate's.
    #[must_use]
    pub const fn without_segments(mut self) -> Self {
        self.without_segments = true;
        self
    }

    /// The model.
    #[must_use]
    pub const fn model(&self) -> &Model {
        &self.model
    }

    pub(super) fn subject<'a>(&self, name: NameRef<'a>) -> NameRef<'a> {
        // The version of a certificate is part of its name everywhere.
        let is_object = self.without_segments && CertName::parse(name).is_none();
        if is_object { object(name) } else { name }
    }

    pub(super) fn walk<'a>(&'a self) -> Walk<'a> {
        Walk::new(&self.model, &self.functions, self.bound_again)
    }

    /// The node by which `key` may sign `packet`, if one does.
    pub(super) fn signs(
        &self,
        packet: NameRef<'_>,
        key: NameRef<'_>,
    ) -> Result<Option<u32>, TooCostly> {
        let (packet, key) = (elements(self.subject(packet)), elements(key));
        self.signs_elements(&packet, &key)
    }

    fn signs_elements<'a>(
        &'a self,
        packet: &Elements<'a>,
        key: &Elements<'a>,
    ) -> Result<Option<u32>, TooCostly> {
        let model = &self.model;
        let mut by = None;
        self.walk().visit(model.start, packet, &mut |walk, at| {
            let Some(node) = model.node(at).filter(|node| !node.signers.is_empty()) else {
                return Ok(false);
            };
            let signers = &node.signers;
            let allowed = walk.visit(model.start, key, &mut |_, key| Ok(signers.contains(&key)))?;
            if allowed {
                by = Some(at);
            }
            Ok(allowed)
        })?;
        Ok(by)
    }

    /// The nodes that `name` leads to.
    pub(super) fn matches(&self, name: NameRef<'_>) -> Result<Vec<u32>, TooCostly> {
        let mut found = Vec::new();
        let elements = elements(self.subject(name));
        self.walk().visit(self.model.start, &elements, &mut |walk, at| {
            let is_end = walk.model.node(at).is_some_and(|node| !node.rules.is_empty());
            if is_end {
                found.push(at);
            }
            Ok(found.len() >= EXPLAINED_MAX)
        })?;
        Ok(found)
    }

    pub(super) fn rules_of(&self, node: u32) -> String {
        let rules = self.model.node(node).map(|node| node.rules.as_slice()).unwrap_or_default();
        let mut rules: Vec<&str> = rules.iter().map(|rule| shown(rule)).collect();
        rules.dedup();
        rules.join(", ")
    }
}

/// The identifier without the number that makes a temporary one unique.
fn shown(rule: &str) -> &str {
    let end = rule.get(1..).and_then(|tail| tail.find('#')).map_or(rule.len(), |at| at + 1);
    rule.get(..end).unwrap_or(rule)
}

/// The name of the object that a packet is a part of.
fn object(name: NameRef<'_>) -> NameRef<'_> {
    let mut name = name;
    if name.last().is_some_and(|last| last.as_segment().is_some()) {
        name = name.drop_last(1);
    }
    if name.last().is_some_and(|last| last.as_version().is_some()) {
        name = name.drop_last(1);
    }
    if name.last().is_some_and(|last| last.is_keyword(b"metadata")) {
        name = name.drop_last(1);
    }
    name
}

pub(super) fn too_costly() -> Denial {
    let text = format!("the schema needs more than {STEPS_MAX} steps for these names");
    Denial { cause: Cause::TooCostly, rule: None, text }
}

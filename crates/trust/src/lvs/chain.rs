//! What the steps of the compiler hand on: numbered rules, and chains of their components.

use super::load::LoadError;
use super::model::Choice;
use super::text::TextError;
use std::rc::Rc;

/// What to do where the other compiler loses a constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Keep a constraint of a temporary variable whose rule is inlined twice, refuse constraints
    /// without effect and rules that sign each other. All other schemas compile as in
    /// [`Mode::Exact`].
    #[default]
    Strict,
    /// Write exactly what python-ndn 0.5 writes.
    Exact,
}

/// Why a schema cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The text cannot be read.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The rules do not go together.
    #[error("line {line}: {what}")]
    Rule {
        /// Line of the rule, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// The rules expand to more than a model may hold.
    #[error("the rules expand to more than {0}")]
    TooLarge(&'static str),
    /// The model would be refused by every loader that checks it.
    #[error(transparent)]
    Model(#[from] LoadError),
}

pub(super) fn fault<T>(line: usize, what: String) -> Result<T, CompileError> {
    Err(CompileError::Rule { line, what })
}

/// Whether an identifier, after its sign, is of the kind that is not shared.
pub(super) fn is_temporary(id: &str) -> bool {
    id.trim_start_matches('#').starts_with('_')
}

/// A component with its variables numbered: named ones from 1, temporary ones from -1 down.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Literal(Vec<u8>),
    Tag(i64),
    Rule(String),
}

/// Where in the source a constraint comes from, each counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    pub(super) rule: usize,
    /// Set of constraints of the rule.
    pub(super) set: usize,
    /// Term of the set.
    pub(super) term: usize,
}

/// A constraint on a variable, with the text that edges are ordered by.
#[derive(Debug)]
pub(super) struct Constraint {
    pub(super) source: Source,
    pub(super) line: usize,
    pub(super) variable: String,
    pub(super) tags: Vec<i64>,
    pub(super) choices: Vec<Choice>,
    pub(super) order: String,
}

/// A rule with its variables numbered.
#[derive(Debug)]
pub(super) struct Numbered {
    pub(super) id: String,
    pub(super) line: usize,
    pub(super) name: Vec<Step>,
    pub(super) sets: Vec<Vec<Rc<Constraint>>>,
    pub(super) signers: Vec<String>,
}

/// One way to write a name of a rule.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    /// Number of the rule's definition.
    pub(super) rule: usize,
    pub(super) id: Rc<str>,
    pub(super) name: Vec<Step>,
    pub(super) constraints: Vec<Rc<Constraint>>,
}

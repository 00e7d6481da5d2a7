//! The rules of management as the configuration states them.

use super::Requester;
use super::authorize::is_own;
use super::command::{Command, Module};
use onym_crypto::Certificate;
use onym_crypto::store::KeyStore;
use onym_wire::name::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a rule can grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Privilege {
    /// `cs`: configure, erase.
    Cs,
    /// `faces`: create, update, destroy.
    Faces,
    /// `fib`: add and remove next hops.
    Fib,
    /// `log`: set the filter of the log.
    Log,
    /// `rib`: register, unregister, announce; for the requester's own face only.
    Register,
    /// `rib`: register, unregister, announce; for any face.
    Rib,
    /// `strategy-choice`: set, unset.
    StrategyChoice,
}

/// Everything that can be granted.
pub const ALL_PRIVILEGES: [Privilege; 6] = [
    Privilege::Cs,
    Privilege::Faces,
    Privilege::Fib,
    Privilege::Log,
    Privilege::Rib,
    Privilege::StrategyChoice,
];

/// To whom a rule grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// Everybody who reaches management: local faces, and others through `/localhop` when that is
    /// on (their commands must be signed, with whatever key).
    Any,
    /// Applications on this machine.
    Local,
    /// Whoever signs with the key of this certificate, wherever it is.
    Certificate(Box<Certificate>),
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// To whom.
    pub who: Who,
    /// What.
    pub may: Vec<Privilege>,
    /// Limits commands that carry a name to names under these; empty: no limit.
    pub prefixes: Vec<Name>,
}

/// A rule that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// Neither a known word nor a readable certificate.
    #[error(
        "who = {who:?}: {why}; allowed are \"local\", \"any\", \"key:/NAME\" (a key whose certificate is in the key store) and the path of a certificate file"
    )]
    Who {
        /// What was written.
        who: String,
        /// What is wrong.
        why: String,
    },
    /// Not a name.
    #[error("prefixes: {0}")]
    Prefix(#[from] onym_wire::name::UriError),
}

impl Rule {
    /// Reads a rule as the configuration writes it. `who` is `local`, `any`, `key:/NAME` or the
    /// path of a certificate; relative paths start at `base`.
    ///
    /// # Errors
    /// [`RuleError`].
    pub fn parse(
        who: &str,
        may: &[Privilege],
        prefixes: &[String],
        base: &Path,
    ) -> Result<Self, RuleError> {
        let who = match who {
            "any" => Who::Any,
            "local" => Who::Local,
            other => Who::Certificate(Box::new(
                certificate(other, base)
                    .map_err(|why| RuleError::Who { who: other.to_owned(), why })?,
            )),
        };
        let prefixes = prefixes.iter().map(|p| p.parse()).collect::<Result<_, _>>()?;
        Ok(Self { who, may: may.to_vec(), prefixes })
    }

    pub(super) fn grants(&self, command: &Command<'_>, requester: Requester) -> bool {
        let has = |p| self.may.contains(&p);
        let module = match command.module {
            Module::Cs => has(Privilege::Cs),
            Module::Faces => has(Privilege::Faces),
            Module::Fib => has(Privilege::Fib),
            Module::Log => has(Privilege::Log),
            Module::Rib => {
                has(Privilege::Rib) || has(Privilege::Register) && is_own(command, requester)
            }
            Module::StrategyChoice => has(Privilege::StrategyChoice),
        };
        let under = |name| self.prefixes.iter().any(|p| p.as_ref().is_prefix_of(name));
        module && (self.prefixes.is_empty() || command.subject().is_none_or(under))
    }
}

/// Reads the certificate that `text` means: `key:/NAME` or the path of a file.
///
/// # Errors
/// What is wrong, as a sentence.
pub fn certificate(text: &str, base: &Path) -> Result<Certificate, String> {
    if let Some(uri) = text.strip_prefix("key:") {
        let name: Name = uri.parse().map_err(|e| format!("{e}"))?;
        let store = KeyStore::of_user().map_err(|e| e.to_string())?;
        let found = store.certificates().map_err(|e| e.to_string())?;
        let mut of_key = found.into_iter().rev().filter(|c| name.as_ref().is_prefix_of(c.name()));
        return of_key.next().ok_or_else(|| format!("the key store has no certificate of {name}"));
    }
    let path = base.join(text);
    let said = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Certificate::from_text(&said).map_err(|e| format!("{}: {e}", path.display()))
}

/// Registrations of others than local applications, under `/localhop/nfd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Localhop {
    /// Any signed command counts, whoever signed it.
    Any,
    /// The signer's certificate must lead to one of these, and its identity must be a prefix of
    /// the name it registers.
    Anchors(Vec<Certificate>),
}

/// All rules of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Who may use which module.
    pub rules: Vec<Rule>,
    /// Registration by others than local applications; `None` turns it off.
    pub localhop: Option<Localhop>,
    /// Anchors of prefix announcements that others than local applications send. Empty: those of
    /// `localhop`.
    pub announcement_anchors: Vec<Certificate>,
}

impl Default for Policy {
    /// Local faces may do everything, others nothing.
    fn default() -> Self {
        let all = Rule { who: Who::Local, may: ALL_PRIVILEGES.into(), prefixes: Vec::new() };
        Self { rules: vec![all], localhop: None, announcement_anchors: Vec::new() }
    }
}

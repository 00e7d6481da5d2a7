//! The rules of management as the configuration states them.

use super::Requester;
use super::command::{Command, Module, Verb};
use super::host::User;
use onym_crypto::Certificate;
use onym_crypto::store::KeyStore;
use onym_wire::name::{Name, NameRef};
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
    /// `log`: read the log, set its filter.
    Log,
    /// `faces`: update, destroy; for the requester's own face only.
    OwnFace,
    /// `rib`: register, unregister, announce; for the requester's own face only. Who is no
    /// operator is refused names of the node and of other users (`is_reserved`).
    Register,
    /// `rib`: register, unregister, announce; for any face.
    Rib,
    /// `strategy-choice`: set, unset.
    StrategyChoice,
    /// See packets of others, and which names are asked for: `onym dump`, `onym top`.
    Watch,
}

/// Everything that can be granted.
pub const ALL_PRIVILEGES: [Privilege; 7] = [
    Privilege::Cs,
    Privilege::Faces,
    Privilege::Fib,
    Privilege::Log,
    Privilege::Rib,
    Privilege::StrategyChoice,
    Privilege::Watch,
];

/// What applications of everybody need: to register prefixes for themselves, and to have their own
/// face as they like.
pub const OWN_PRIVILEGES: [Privilege; 2] = [Privilege::Register, Privilege::OwnFace];

/// To whom a rule grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// Everybody who reaches management: local faces, and others through `/localhop` when that is
    /// on (their commands must be signed, with whatever key).
    Any,
    /// Applications on this machine.
    Local,
    /// Applications of root, of the node's user and of members of the group `management.group`, on
    /// the Unix socket.
    Operators,
    /// Whoever signs with the key of this certificate, wherever it is.
    Certificate(Box<Certificate>),
    /// Whoever signs with a key that the rules of this entry of `trust` let sign the command.
    Trusted(String),
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
        "who = {who:?}: {why}; allowed are \"local\", \"operators\", \"any\", \"trust:NAME\" (an entry of trust), \"key:/NAME\" (a key whose certificate is in the key store) and the path of a certificate file"
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
    /// `who` may use these for every name.
    fn of(who: Who, may: &[Privilege]) -> Self {
        Self { who, may: may.to_vec(), prefixes: Vec::new() }
    }

    /// Reads a rule as the configuration writes it. `who` is `local`, `operators`, `any`, `trust:NAME`,
    /// `key:/NAME` or the path of a certificate; relative paths start at `base`.
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
            "operators" => Who::Operators,
            trust if trust.starts_with("trust:") => {
                Who::Trusted(trust["trust:".len()..].to_owned())
            }
            other => Who::Certificate(Box::new(
                certificate(other, base)
                    .map_err(|why| RuleError::Who { who: other.to_owned(), why })?,
            )),
        };
        let prefixes = prefixes.iter().map(|p| p.parse()).collect::<Result<_, _>>()?;
        Ok(Self { who, may: may.to_vec(), prefixes })
    }

    pub(super) fn grants(&self, command: &Command<'_>, requester: Requester) -> bool {
        let module = match command.module {
            Module::Cs => self.has(Privilege::Cs),
            Module::Faces => {
                let own = self.has(Privilege::OwnFace) && command.is_about(requester.face);
                self.has(Privilege::Faces) || own && command.verb != Verb::FacesCreate
            }
            Module::Fib => self.has(Privilege::Fib),
            Module::Log => self.has(Privilege::Log),
            Module::Rib => {
                let own = self.has(Privilege::Register) && command.is_about(requester.face);
                self.has(Privilege::Rib) || own
            }
            Module::StrategyChoice => self.has(Privilege::StrategyChoice),
        };
        let under = |name| self.prefixes.iter().any(|p| p.as_ref().is_prefix_of(name));
        module && (self.prefixes.is_empty() || command.subject().is_none_or(under))
    }

    pub(super) fn has(&self, privilege: Privilege) -> bool {
        self.may.contains(&privilege)
    }

    /// Whether it grants to an application on this machine without a signature.
    pub(super) fn is_for(&self, user: User) -> bool {
        match self.who {
            Who::Any | Who::Local => true,
            Who::Operators => user.is_operator,
            Who::Certificate(_) | Who::Trusted(_) => false,
        }
    }
}

/// Whether a name is kept from who is no operator: the empty one, which takes everything, and what
/// is of this node or this link.
pub(crate) fn is_reserved(name: NameRef<'_>) -> bool {
    name.get(0).is_none_or(|c| c.is_generic() && matches!(c.value, b"localhost" | b"localhop"))
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
    /// The signer's certificate must lead to one of `rib.localhop_anchors`, and its identity must be
    /// a prefix of the name it registers.
    Anchors,
    /// The rules of this entry of `trust` must let the signer sign the command.
    Trust(String),
}

/// Whose prefix announcements count that others than local applications send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announcers {
    /// Of whoever may register by [`Policy::localhop`].
    Localhop,
    /// Of whoever `rib.announcement_anchors` vouch for, under its identity.
    Anchors,
    /// Of whom the rules of this entry of `trust` let sign the announcement.
    Trust(String),
}

/// All rules of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Who may use which module.
    pub rules: Vec<Rule>,
    /// The group whose members are operators, for sentences; empty: there is none.
    pub group: String,
    /// Registration by others than local applications; `None` turns it off.
    pub localhop: Option<Localhop>,
    /// Whose prefix announcements count that others than local applications send.
    pub announcers: Announcers,
}

impl Policy {
    /// Without rules of their own: operators may do everything, other applications on this machine
    /// [`OWN_PRIVILEGES`]; others nothing.
    #[must_use]
    pub fn of_group(group: &str) -> Self {
        let own = Rule::of(Who::Local, &OWN_PRIVILEGES);
        let rules = vec![Rule::of(Who::Operators, &ALL_PRIVILEGES), own];
        let group = group.to_owned();
        Self { rules, group, localhop: None, announcers: Announcers::Localhop }
    }

    /// As [`Policy::of_group`], but every application on this machine may do everything.
    #[must_use]
    pub fn open(group: &str) -> Self {
        let rules = vec![Rule::of(Who::Local, &ALL_PRIVILEGES)];
        Self { rules, ..Self::of_group(group) }
    }

    /// Who the operators are, in words.
    pub(super) fn operators(&self) -> String {
        match self.group.as_str() {
            "" => "root and the node's user, on the Unix socket (management.group names no group)"
                .to_owned(),
            group => format!(
                "root, the node's user and members of the group {group}, on the Unix socket \
                 (management.group)"
            ),
        }
    }

    /// Whether `user`, on this machine, may use `privilege` for every name without a signature.
    pub(crate) fn lets(&self, user: User, privilege: Privilege) -> bool {
        let whole = |r: &&Rule| r.prefixes.is_empty() && r.has(privilege);
        self.rules.iter().filter(whole).any(|rule| rule.is_for(user))
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::of_group("onym")
    }
}

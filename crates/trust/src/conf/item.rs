//! Parts of an expression over names.

use onym_wire::name::Component;
use regex::Regex;
use std::sync::Arc;

/// Most octets that the automaton of one component's expression may take.
const COMPONENT_SIZE_MAX: usize = 1 << 18;

/// A part of an expression.
#[derive(Debug, Clone)]
pub(super) enum Item {
    One(Test),
    Group(usize, Vec<Self>),
    Repeat { item: Box<Self>, least: usize, most: Option<usize> },
}

/// What one component must be.
#[derive(Debug, Clone)]
pub(super) enum Test {
    Any,
    /// The text of the component, in URI form.
    Text(Arc<str>),
    /// An expression over that text; its groups are numbered from `first`.
    Regex {
        regex: Arc<Regex>,
        first: usize,
    },
    Set {
        members: Vec<Self>,
        is_negated: bool,
    },
}

impl Test {
    /// The expression between angle brackets; its groups are numbered from `first`.
    pub(super) fn new(text: &str, first: usize) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::Any);
        }
        if text.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_~=%".contains(&c)) {
            return Ok(Self::Text(Arc::from(text)));
        }
        // Back references and look-around do not exist here: they cost exponential time.
        let regex = regex::RegexBuilder::new(&format!(r"\A(?:{text})\z"))
            .size_limit(COMPONENT_SIZE_MAX)
            .dfa_size_limit(COMPONENT_SIZE_MAX)
            .nest_limit(32)
            .build()
            .map_err(|e| {
                let line = e.to_string();
                format!("<{text}>: {}", line.lines().last().unwrap_or_default())
            })?;
        Ok(Self::Regex { regex: Arc::new(regex), first })
    }

    /// Groups within, which take numbers.
    pub(super) fn groups(&self) -> usize {
        match self {
            Self::Regex { regex, .. } => regex.captures_len().saturating_sub(1),
            _ => 0,
        }
    }

    pub(super) fn holds(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Text(own) => **own == *text,
            Self::Regex { regex, .. } => regex.is_match(text),
            Self::Set { members, is_negated } => {
                members.iter().any(|member| member.holds(text)) != *is_negated
            }
        }
    }
}

/// The text that a component's expression is compared with.
pub(super) fn shown(component: Component<'_>) -> String {
    component.to_string()
}

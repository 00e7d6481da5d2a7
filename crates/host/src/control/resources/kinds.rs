//! Which kinds have which resources.

use onym_services::Kind;

/// A resource of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::control) enum Resource {
    Routes,
    Keys,
    Trust,
    Rules,
    Table,
    Sessions,
}

impl Resource {
    /// The resource of this word.
    pub(in crate::control) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "routes" => Self::Routes,
            "keys" => Self::Keys,
            "trust" => Self::Trust,
            "rules" => Self::Rules,
            "table" => Self::Table,
            "sessions" => Self::Sessions,
            _ => return None,
        })
    }

    /// Whether services of this kind have it.
    pub(super) const fn is_of(self, kind: Kind) -> bool {
        match self {
            Self::Routes => matches!(kind, Kind::NameRouter | Kind::Forwarder),
            Self::Keys => {
                matches!(kind, Kind::NameRouter | Kind::Forwarder | Kind::SignatureVerifier)
            }
            Self::Trust => matches!(kind, Kind::SignatureVerifier),
            Self::Rules => matches!(kind, Kind::NameFilter),
            Self::Table => matches!(
                kind,
                Kind::NameRouter
                    | Kind::BackwardRouter
                    | Kind::ContentStore
                    | Kind::SignatureVerifier
                    | Kind::NameFilter
            ),
            Self::Sessions => matches!(kind, Kind::PacketDispatcher),
        }
    }
}

/// What is done with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Put,
    Post,
}

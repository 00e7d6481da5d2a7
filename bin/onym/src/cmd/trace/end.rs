//! How a way ends, and what can be done about it.

use super::hop::{Hop, Next};
use onym_wire::trace::{APPLICATION, FORWARDER, OBJECT};
use serde::Serialize;

/// How a way ends.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub(crate) enum End {
    /// A node hands it to an application, has it in its content store, or has this name.
    Reached { node: String, code: u16, by: Option<Next> },
    /// A node ends it.
    Dropped { node: String, verdict: String, sentence: String },
    /// A node has only faces that are down.
    Down { node: String, sentence: String },
    /// The way comes back to a node that it passed: which, where it said so.
    Loop { node: Option<String>, before: String },
    /// The way joins another one that was followed already.
    Joined { node: String },
    /// A forwarder returned a Nack.
    Nack { after: Option<String>, reason: String },
    /// What comes behind a node does not answer.
    Silent { after: Option<String>, by: Option<Next> },
    /// There are more hops than were to be followed.
    TooFar { hops: u8 },
    /// There are more ways than were to be followed.
    TooMany,
}

impl End {
    /// How the way ends at `hop`, behind which nothing is asked.
    pub(crate) fn at(hop: &Hop) -> Self {
        let node = hop.node.clone();
        let sentence = || hop.sentence.clone().unwrap_or_default();
        let by = hop.next.iter().find(|next| !next.leads_on).cloned();
        match (&hop.verdict, hop.decides.as_deref()) {
            _ if hop.is_end() => Self::Reached { node, code: hop.code, by },
            (_, Some("faces")) => Self::Down { node, sentence: sentence() },
            (Some(verdict), _) => {
                Self::Dropped { node, verdict: verdict.clone(), sentence: sentence() }
            }
            (None, _) => Self::Silent { after: Some(node), by: None },
        }
    }

    /// Whether whoever can answer is there.
    pub(crate) fn is_reached(&self) -> bool {
        matches!(self, Self::Reached { .. })
    }

    /// How the way of a publication ends.
    pub(crate) fn of_item(&self) -> String {
        match self {
            Self::Reached { node, .. } => format!("{node} hands it to its applications"),
            Self::Dropped { node, verdict, sentence } => format!("{node} ({verdict}): {sentence}"),
            Self::Down { node, sentence } => format!("{node} loses it: {sentence}"),
            Self::Loop { node, before } => {
                let node = node.as_deref().unwrap_or("a node that it passed already");
                format!("{before} sends it to {node}, where it was: its filter has too many ones")
            }
            Self::Joined { node } => format!("{node} gets another copy of it here"),
            Self::Silent { after: Some(node), .. } => format!(
                "behind {node} nothing answers: a node of which the push half is off, whose \
                 trace.from does not let {node} trace, or that is gone"
            ),
            Self::Silent { after: None, .. } => "the node does not answer: its push half is off \
                 (push.enabled), or its trace.from lets no local application trace"
                .to_owned(),
            Self::Nack { .. } | Self::TooFar { .. } | Self::TooMany => self.sentence("the item"),
        }
    }

    /// Who ends an Interest for `name`, why, and what to do about it.
    pub(crate) fn sentence(&self, name: &str) -> String {
        match self {
            Self::Reached { node, code: APPLICATION, by } => {
                let face = by.as_ref().map(|b| format!(" at face {} ({})", b.face, b.uri));
                let face = face.unwrap_or_default();
                format!(
                    "{node} hands it to an application{face}; when no Data comes, the application \
                     has nothing of this name: `onym peek -P {name}` takes what is below it"
                )
            }
            Self::Reached { node, code: OBJECT, .. } => {
                format!("{node} answers it from its content store")
            }
            Self::Reached { node, code: FORWARDER, .. } => {
                format!("the management of {node} answers names like this")
            }
            Self::Reached { node, code, .. } => format!("{node} ends the way with code {code}"),
            Self::Dropped { node, verdict, sentence } => match verdict.as_str() {
                "no_route" => format!(
                    "{node} ends it: it has no route for {name} and returns a Nack NoRoute; start \
                     the producer, or add a route there with `onym route add PREFIX --via URI`"
                ),
                verdict => format!("{node} ends it ({verdict}): {sentence}"),
            },
            Self::Down { node, sentence } => format!(
                "{node} loses it: {sentence}; look at the other end of that face, or give {node} \
                 another route"
            ),
            Self::Loop { node, before } => format!(
                "{before} sends it to {}: the routes form a loop, see `onym route list` at both",
                node.as_deref().unwrap_or("a forwarder that it passed already")
            ),
            Self::Joined { node } => format!("this way joins another at {node}"),
            Self::Nack { after, reason } => format!(
                "a forwarder behind {} returns a Nack {reason}",
                after.as_deref().unwrap_or("this node")
            ),
            Self::Silent { after: None, .. } => "the node itself does not answer trace requests: \
                 it is none of ours, or its trace.from lets no local application trace"
                .to_owned(),
            Self::Silent { after: Some(node), by } => {
                let face = by.as_ref().map(|b| format!(" by face {} ({})", b.face, b.uri));
                let face = face.unwrap_or_default();
                format!(
                    "{node} sends it on{face}, and nothing behind answers: a forwarder without RFC \
                     9507, one whose trace.from does not let {node} trace, or one that is gone; ask \
                     there with `onym explain {name}`"
                )
            }
            Self::TooFar { hops } => format!("the way has more than {hops} hops (see --hops)"),
            Self::TooMany => "there are more ways than were followed".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_who_ends_it_and_what_to_do() {
        let node = "/site/a".to_owned();
        let (verdict, sentence) = ("no_route".to_owned(), String::new());
        let told = End::Dropped { node: node.clone(), verdict, sentence }.sentence("/a/b");
        assert!(told.contains("/site/a ends it") && told.contains("onym route add"), "{told}");
        let told = End::Silent { after: Some(node.clone()), by: None }.sentence("/a/b");
        assert!(told.contains("/site/a sends it on") && told.contains("trace.from"), "{told}");
        let told = End::Reached { node, code: APPLICATION, by: None }.sentence("/a/b");
        assert!(told.contains("onym peek -P /a/b"), "{told}");
    }
}

//! Words of labels, as the applications of this node told them (P-72).

use super::Dispatcher;
use crate::names::Key;
use onym_wire::push::Id;

impl Dispatcher {
    /// Whether something here has the identifier by another word, which has the same label.
    pub(super) fn has_other_word(&self, full: &Key, word: Option<&str>) -> bool {
        let Some(word) = word else { return false };
        let published = self.publications.get(full).and_then(|p| p.word.as_deref());
        let subscribed = self.subscriptions.get(full).and_then(|s| s.word.as_deref());
        [published, subscribed].into_iter().flatten().any(|known| known != word)
    }

    /// The word by which an application of this node published or subscribed to `id`.
    #[must_use]
    pub fn word(&self, id: &Id) -> Option<&str> {
        let published = self.publications.get(id).and_then(|p| p.word.as_deref());
        published.or_else(|| self.subscriptions.get(id).and_then(|s| s.word.as_deref()))
    }
}

//! Signatures of publications: made by the publisher's node, checked where they are delivered. A
//! control message is a publication too: where nodes are told whose they obey, each frame of them
//! is signed by the node that sends it.
//!
//! The value of the option is the digest of the key (32), an octet for the algorithm, and the
//! signature of strategy, ids, the other options, and payload (spec/push.md, section 5.2).

use crate::publication::{Publication, algorithmic_scope};
use onym_crypto::{KeyType, PrivateKey, PublicKey};
use onym_tables::KeyedMap;
use onym_wire::push::{Frame, Id, Options, Strategy, option};
use onym_wire::tlv::{self, Reader};
use std::sync::Arc;

/// Octets before the signature in the option.
const HEAD: usize = 33;

/// Why a publication is not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsigned {
    /// It has no signature.
    #[error("no signature")]
    Missing,
    /// The option is too short or names an algorithm that is unknown.
    #[error("a malformed signature")]
    Malformed,
    /// Nobody who is trusted has this key.
    #[error("an unknown key")]
    Stranger,
    /// The signature is of something else.
    #[error("a wrong signature")]
    Wrong,
    /// The rules do not let the key sign this item.
    #[error("a key that may not sign this item")]
    Forbidden,
}

/// Who may publish what, beyond having a key that is known.
pub trait Rules: std::fmt::Debug + Send + Sync {
    /// Whether the key of this digest may sign the item of these labels now.
    fn may(&self, key: &[u8; 32], item: &[[u8; 8]]) -> bool;
}

/// The number of an algorithm.
const fn number(kind: KeyType) -> u8 {
    match kind {
        KeyType::Ed25519 => 1,
        KeyType::Ecdsa => 2,
        KeyType::Rsa => 3,
    }
}

/// Who signs.
#[derive(Debug, Clone)]
pub struct Signing {
    key: Arc<PrivateKey>,
    digest: [u8; 32],
}

impl Signing {
    /// Signs with this key.
    ///
    /// # Errors
    /// The key has no public half that can be read.
    pub fn new(key: PrivateKey) -> Result<Self, onym_crypto::Error> {
        let digest = key.public_key()?.key_digest();
        Ok(Self { key: Arc::new(key), digest })
    }

    /// Most octets that the option adds to a frame.
    #[must_use]
    pub fn overhead(&self) -> usize {
        // TYPE, LENGTH, and a longer length of all options.
        HEAD + self.key.signature_len_max() + 8
    }

    /// Adds the signature to the options of a publication; one that has it stays as it is.
    pub(crate) fn sign(&self, publication: &mut Publication) {
        let Publication { strategy, ids, options, payload, .. } = publication;
        let has_one = Reader::new(options).any(|e| e.is_ok_and(|e| e.typ == option::SIGNATURE));
        if has_one {
            return;
        }
        let mut value = Vec::with_capacity(self.overhead());
        value.extend_from_slice(&self.digest);
        value.push(number(self.key.key_type()));
        let names = octets_of(ids.iter().map(Id::labels));
        let parts: [&[u8]; 4] = [&[strategy.0], &names, options, payload];
        // Without a signature it goes as it is, and who wants one refuses it.
        if self.key.sign(&parts, &mut value).is_ok() {
            tlv::put_tlv(options, option::SIGNATURE, &value);
        }
    }
}

/// Whose publications are delivered.
#[derive(Debug, Clone, Default)]
pub struct Trusted {
    keys: Arc<KeyedMap<[u8; 32], PublicKey>>,
    rules: Option<Arc<dyn Rules>>,
}

impl Trusted {
    /// Publications that are signed with one of these keys.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        let keys = keys.into_iter().map(|key| (key.key_digest(), key)).collect();
        Self { keys: Arc::new(keys), rules: None }
    }

    /// Of these only what the rules let their keys sign.
    #[must_use]
    pub fn with_rules(self, rules: Arc<dyn Rules>) -> Self {
        Self { rules: Some(rules), ..self }
    }

    /// Checks the signature of a frame.
    ///
    /// # Errors
    /// [`Unsigned`].
    pub fn check(&self, frame: &Frame<'_>) -> Result<(), Unsigned> {
        let value = frame.options.signature.ok_or(Unsigned::Missing)?;
        let (head, signature) = value.split_first_chunk::<HEAD>().ok_or(Unsigned::Malformed)?;
        let (digest, algorithm) = head.split_at(32);
        let digest: [u8; 32] = digest.try_into().map_err(|_| Unsigned::Malformed)?;
        let key = self.keys.get(&digest).ok_or(Unsigned::Stranger)?;
        if algorithm != [number(key.key_type())] {
            return Err(Unsigned::Malformed);
        }
        // What the rules forbid is not worth a check.
        let rules = self.rules.as_deref();
        if rules.is_some_and(|rules| !items_of(frame).all(|item| rules.may(&digest, item))) {
            return Err(Unsigned::Forbidden);
        }
        let names = octets_of(frame.ids);
        let options = without_signature(&frame.options);
        let parts: [&[u8]; 4] = [&[frame.strategy.0], &names, &options, frame.payload];
        let kind = key.key_type().signature_type();
        key.verify(kind, &parts, signature).map_err(|_| Unsigned::Wrong)
    }
}

/// What a frame is delivered as: its identifiers, less that of a fragment, which is beneath its item
/// (spec/push.md, section 5.1).
fn items_of<'a>(frame: &Frame<'a>) -> impl Iterator<Item = &'a [[u8; 8]]> {
    let mut ids = frame.ids;
    let is_fragment = match (frame.strategy, ids.next(), ids.next()) {
        (Strategy::ALGORITHMIC_DOMAIN, Some([above @ .., _, _]), Some(item)) => {
            above == item || above == algorithmic_scope(&Id::from_labels(item)).labels()
        }
        _ => false,
    };
    frame.ids.skip(usize::from(is_fragment))
}

/// Identifiers as a frame has them.
fn octets_of<'a>(ids: impl Iterator<Item = &'a [[u8; 8]]>) -> Vec<u8> {
    let mut octets = Vec::new();
    for labels in ids {
        octets.push(u8::try_from(labels.len()).unwrap_or(u8::MAX));
        octets.extend_from_slice(labels.as_flattened());
    }
    octets
}

fn without_signature(options: &Options<'_>) -> Vec<u8> {
    let mut octets = Vec::new();
    for element in Reader::new(options.octets()).flatten() {
        if element.typ != option::SIGNATURE {
            tlv::put_tlv(&mut octets, element.typ, element.value);
        }
    }
    octets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publication::{Mark, Target};
    use onym_wire::push::{FrameBuilder, Label, Route, RouteBuf};

    fn publication() -> Publication {
        let mut options = Vec::new();
        tlv::put_tlv(&mut options, option::ORIGIN, &[7; 8]);
        Publication {
            target: Target::Here,
            strategy: Strategy::DOMAIN_LOCAL,
            hop_limit: 9,
            by: None,
            ids: vec!["/1/2".parse().unwrap(), "/3/2".parse().unwrap()],
            options,
            payload: b"hello".to_vec(),
            mark: Mark::default(),
        }
    }

    fn frame_of(publication: &Publication) -> Vec<u8> {
        let route = RouteBuf::from(Route::Link);
        let Publication { hop_limit, strategy, ids, options, payload, .. } = publication;
        let (hop_limit, strategy) = (*hop_limit, *strategy);
        let mut octets = Vec::new();
        FrameBuilder { hop_limit, strategy, route: &route, ids, options, payload }
            .write(&mut octets);
        octets
    }

    fn judge(trusted: &Trusted, publication: &Publication) -> Result<(), Unsigned> {
        trusted.check(&Frame::parse(&frame_of(publication)).unwrap())
    }

    #[test]
    fn what_is_signed_by_a_trusted_key_is_accepted_and_any_change_is_not() {
        for kind in [KeyType::Ed25519, KeyType::Ecdsa] {
            let key = PrivateKey::generate(kind).unwrap();
            let trusted = Trusted::new([key.public_key().unwrap()]);
            let signing = Signing::new(key).unwrap();
            let mut signed = publication();
            let before = frame_of(&signed).len();
            signing.sign(&mut signed);
            assert!(frame_of(&signed).len() <= before + signing.overhead());
            assert_eq!(judge(&trusted, &signed), Ok(()));
            let mut again = signed.clone();
            signing.sign(&mut again);
            assert_eq!(again, signed, "signed once");
            // On the way the hop limit changes.
            assert_eq!(judge(&trusted, &Publication { hop_limit: 1, ..signed.clone() }), Ok(()));
            let changes: [fn(&mut Publication); 4] = [
                |p| p.payload[0] ^= 1,
                |p| p.ids[1] = p.ids[1].child(Label::default()),
                |p| p.strategy = Strategy::IMPLICIT,
                |p| tlv::put_nni_tlv(&mut p.options, option::LIFETIME, 5),
            ];
            for change in changes {
                let mut other = signed.clone();
                change(&mut other);
                assert_eq!(judge(&trusted, &other), Err(Unsigned::Wrong), "{other:?}");
            }
        }
    }

    /// Lets a key sign items under `/1`.
    #[derive(Debug)]
    struct Under;

    impl Rules for Under {
        fn may(&self, _: &[u8; 32], item: &[[u8; 8]]) -> bool {
            item.first() == Some(&Label::from_u64(1).0)
        }
    }

    #[test]
    fn a_publication_counts_when_the_rules_let_its_key_sign_all_its_items() {
        let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
        let trusted = Trusted::new([key.public_key().unwrap()]).with_rules(Arc::new(Under));
        let signing = Signing::new(key).unwrap();
        for (ids, expected) in [
            (vec!["/1/2"], Ok(())),
            (vec!["/1/2", "/1/3"], Ok(())),
            (vec!["/3/2"], Err(Unsigned::Forbidden)),
            (vec!["/1/2", "/3/2"], Err(Unsigned::Forbidden)),
        ] {
            let ids = ids.iter().map(|id| id.parse().unwrap()).collect();
            let mut signed = Publication { ids, ..publication() };
            signing.sign(&mut signed);
            assert_eq!(judge(&trusted, &signed), expected);
        }
    }

    /// Lets a key sign the item `/1/2` only.
    #[derive(Debug)]
    struct Only;

    impl Rules for Only {
        fn may(&self, _: &[u8; 32], item: &[[u8; 8]]) -> bool {
            item == "/1/2".parse::<Id>().unwrap().labels()
        }
    }

    #[test]
    fn rules_are_asked_about_the_item_of_a_fragment_and_not_about_its_own_identifier() {
        let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
        let trusted = Trusted::new([key.public_key().unwrap()]).with_rules(Arc::new(Only));
        let signing = Signing::new(key).unwrap();
        let id = |text: &str| text.parse::<Id>().unwrap();
        let beneath = |id: &Id| id.child(Label::from_u64(7)).child(Label::from_u64(3 << 32));
        let [own, other] = ["/1/2", "/1/9"].map(|item| beneath(&algorithmic_scope(&id(item))));
        let cut = Strategy::ALGORITHMIC_DOMAIN;
        for (ids, strategy, is_good) in [
            (vec![own.clone(), id("/1/2")], cut, true),
            (vec![beneath(&id("/1/2")), id("/1/2")], cut, true),
            // A fragment of another item's publication, by its place or by what it is delivered as.
            (vec![other, id("/1/2")], cut, false),
            (vec![own.clone(), id("/1/2"), id("/1/9")], cut, false),
            (vec![own.clone(), id("/1/9")], cut, false),
            (vec![own.clone()], cut, false),
            (vec![algorithmic_scope(&id("/1/2")), id("/1/2")], cut, false),
            // What is no fragment is delivered by all its identifiers.
            (vec![own, id("/1/2")], Strategy::DOMAIN_LOCAL, false),
        ] {
            let mut signed = Publication { ids, strategy, ..publication() };
            signing.sign(&mut signed);
            let expected = if is_good { Ok(()) } else { Err(Unsigned::Forbidden) };
            assert_eq!(judge(&trusted, &signed), expected, "{:?}", signed.ids);
        }
    }

    #[test]
    fn strangers_and_what_is_no_signature_are_refused() {
        let key = || PrivateKey::generate(KeyType::Ed25519).unwrap();
        let trusted = Trusted::new([key().public_key().unwrap()]);
        assert_eq!(judge(&trusted, &publication()), Err(Unsigned::Missing));
        let mut signed = publication();
        Signing::new(key()).unwrap().sign(&mut signed);
        assert_eq!(judge(&trusted, &signed), Err(Unsigned::Stranger));
        let mut short = publication();
        tlv::put_tlv(&mut short.options, option::SIGNATURE, &[1; 20]);
        assert_eq!(judge(&trusted, &short), Err(Unsigned::Malformed));
    }
}

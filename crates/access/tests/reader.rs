//! A reader finds the keys of content; groups and cards survive their files.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_types, reason = "a test has entropy of its own")]

use onym_access::content::sealed_by;
use onym_access::envelope::ReadingKey;
use onym_access::reader::{Opened, Own};
use onym_access::{Card, ContentKey, Error, Form, Group, Member, Reader, Trusted, card};
use onym_crypto::cert::validity_of_days;
use onym_crypto::{
    Certificate, KeyType, PrivateKey, Signer, SystemEntropy, signer::write_digest_data,
};
use onym_wire::data::DataBuilder;
use onym_wire::{Component, Data, Name, NameRef};

const NOW: u64 = 1_795_444_162_000;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn packet(name: NameRef<'_>, content: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    write_digest_data(&DataBuilder::new(name, content), &mut wire);
    wire
}

fn trusted(wire: &[u8]) -> Trusted<'_> {
    Trusted::verified_by_caller(Data::parse(wire).unwrap())
}

/// A group, what its producers published, and what answers for it.
struct World {
    group: Group,
    ck: Vec<u8>,
    content: Vec<u8>,
}

impl World {
    fn new(group: Group) -> Self {
        let mut world = Self { group, ck: Vec::new(), content: Vec::new() };
        world.publish("/prod/1");
        world
    }

    fn publish(&mut self, uri: &str) {
        let entropy = &mut SystemEntropy;
        let (kek_name, kek) = self.group.kek();
        let form = Form::of_kek(&kek);
        assert_eq!(form, self.group.form());
        let kek = packet(kek_name.as_ref(), &kek);
        let id = Component::generic(uri.as_bytes());
        let mut key = ContentKey::new(form, name("/prod").as_ref(), id, entropy).unwrap();
        let (ck_name, ck) = key.for_group(&trusted(&kek), self.group.name(), entropy).unwrap();
        self.ck = packet(ck_name.as_ref(), &ck);
        let sealed = key.seal(name(uri).as_ref(), b"hello", entropy).unwrap();
        self.content = packet(name(uri).as_ref(), &sealed);
    }

    /// What becomes of the content for `reader`; the names that were asked for.
    fn read(&self, reader: &mut Reader) -> (Result<Vec<u8>, Error>, Vec<String>) {
        let mut asked = Vec::new();
        let read = self.read_asking(reader, &mut asked);
        (read, asked)
    }

    fn read_asking(&self, reader: &mut Reader, asked: &mut Vec<String>) -> Result<Vec<u8>, Error> {
        let content = trusted(&self.content);
        let key = match reader.open(&content)? {
            Opened::Content(plain) => return Ok(plain.to_vec()),
            Opened::Plain => return Ok(content.content().to_vec()),
            Opened::Needs(key) => key,
        };
        let mut search = Reader::search(key);
        while let Some(ask) = reader.ask(&mut search)? {
            asked.push(ask.name.to_string());
            let answer = if ask.can_be_prefix && ask.name.as_ref().get(1) == Some(CK) {
                Some(self.ck.clone())
            } else {
                let entropy = &mut SystemEntropy;
                let made = self.group.answer(&ask, NOW, entropy).unwrap();
                made.map(|(name, content)| packet(name.as_ref(), &content))
            };
            reader.answer(&mut search, answer.as_deref().map(trusted).as_ref())?;
        }
        match reader.open(&content)? {
            Opened::Content(plain) => Ok(plain.to_vec()),
            other => panic!("{other:?}"),
        }
    }
}

const CK: Component<'static> = Component::generic(b"CK");

fn group(form: Form) -> Group {
    Group::new(form, name("/am/NAC/ds").as_ref(), name("/am"), 5).unwrap()
}

#[test]
fn a_reader_asks_for_the_content_key_then_for_his_own_copy_of_the_groups_key() {
    let mut group = group(Form::Authenticated);
    let (alice, old) = (ReadingKey::generate().unwrap(), ReadingKey::generate().unwrap());
    group.grant(Member::Point(name("/alice/KEY/2"), alice.public())).unwrap();
    let mut world = World::new(group);
    let own = vec![Own::Point(name("/alice/KEY/1"), old), Own::Point(name("/alice/KEY/2"), alice)];
    let mut reader = Reader::new(own, None);
    let (read, asked) = world.read(&mut reader);
    assert_eq!(read.unwrap(), b"hello");
    let kdk =
        |number: u32, key: u32| format!("/am/NAC/ds/KDK/v={number}/ENCRYPTED-BY/alice/KEY/{key}");
    assert_eq!(asked, ["/prod/CK/%2Fprod%2F1".into(), kdk(5, 1), kdk(5, 2)]);
    // Known content keys are not asked for again, keys of groups neither.
    assert!(world.read(&mut reader).1.is_empty());
    world.publish("/prod/2");
    let (read, asked) = world.read(&mut reader);
    assert_eq!((read.unwrap().as_slice(), asked.len()), (&b"hello"[..], 1));
}

#[test]
fn who_left_reads_nothing_new_and_who_came_reads_nothing_old() {
    let mut group = group(Form::Authenticated);
    let keys: Vec<ReadingKey> = (0..3).map(|_| ReadingKey::generate().unwrap()).collect();
    let names = ["/alice/KEY/1", "/bob/KEY/1", "/carol/KEY/1"].map(name);
    for at in 0..2 {
        group.grant(Member::Point(names[at].clone(), keys[at].public())).unwrap();
    }
    let mut world = World::new(group);
    let old = (world.ck.clone(), world.content.clone());
    world.group.revoke(names[1].as_ref(), 0).unwrap();
    world.group.grant(Member::Point(names[2].clone(), keys[2].public())).unwrap();
    world.publish("/prod/2");
    let reader = |at: usize| {
        let key = Own::Point(names[at].clone(), keys[at].clone());
        Reader::new(vec![key], None)
    };
    assert!(world.read(&mut reader(0)).0.is_ok(), "who stayed reads what is new");
    assert!(matches!(world.read(&mut reader(1)).0, Err(Error::NotMember(_))), "who left does not");
    assert!(world.read(&mut reader(2)).0.is_ok(), "who came does");
    (world.ck, world.content) = old;
    assert!(world.read(&mut reader(0)).0.is_ok(), "who stayed reads what is old");
    assert!(matches!(world.read(&mut reader(1)).0, Err(Error::NotMember(_))), "nothing is served");
    assert!(matches!(world.read(&mut reader(2)).0, Err(Error::NotMember(_))), "not for him");
}

/// Negative 40, the removed member, in the form of NAC.
#[test]
fn a_group_of_rsa_keys_reads_the_same_way_and_who_left_reads_nothing_new() {
    let mut group = group(Form::Nac);
    let keys = [(); 2].map(|()| PrivateKey::generate(KeyType::Rsa).unwrap());
    let names = ["/alice/KEY/1", "/bob/KEY/1"].map(name);
    for (own, key) in names.iter().zip(&keys) {
        let certificate = Certificate::self_signed(own.as_ref(), key, NOW).unwrap();
        group.grant(Member::try_from(&certificate).unwrap()).unwrap();
    }
    let card = Member::Point(names[0].clone(), ReadingKey::generate().unwrap().public());
    assert!(matches!(group.grant(card), Err(Error::Member(..))), "a card in a group of RSA keys");
    let mut world = World::new(group);
    let mut readers: Vec<Reader> = names
        .iter()
        .zip(keys)
        .map(|(own, key)| Reader::new(vec![Own::Rsa(own.clone(), Box::new(key))], None))
        .collect();
    for reader in &mut readers {
        assert_eq!(world.read(reader).0.unwrap(), b"hello");
    }
    world.group.revoke(names[1].as_ref(), 0).unwrap();
    world.publish("/prod/2");
    assert_eq!(world.read(&mut readers[0]).0.unwrap(), b"hello");
    assert!(matches!(world.read(&mut readers[1]).0, Err(Error::NotMember(_))), "who left");
}

#[test]
fn only_the_group_that_is_wanted_is_read() {
    let mut group = group(Form::Authenticated);
    let (own, key) = (name("/alice/KEY/1"), ReadingKey::generate().unwrap());
    group.grant(Member::Point(own.clone(), key.public())).unwrap();
    let world = World::new(group);
    let reader = |only: &str| {
        let key = Own::Point(own.clone(), key.clone());
        Reader::new(vec![key], Some(name(only)))
    };
    assert!(world.read(&mut reader("/am/NAC/ds")).0.is_ok());
    let other = world.read(&mut reader("/am/NAC/other")).0;
    assert!(matches!(other, Err(Error::Group { .. })), "{other:?}");
    let plain = packet(name("/prod/1").as_ref(), b"not encrypted");
    let refused = reader("/am/NAC/ds").open(&trusted(&plain));
    assert!(matches!(refused, Err(Error::Plain(_))));
    assert!(matches!(Reader::default().open(&trusted(&plain)), Ok(Opened::Plain)));
    assert!(sealed_by(b"not encrypted").is_none() && sealed_by(b"").is_none());
}

#[test]
fn a_group_is_the_same_after_it_was_written_and_read() {
    for form in [Form::Authenticated, Form::Nac] {
        let mut group = group(form);
        let rsa = PrivateKey::generate(KeyType::Rsa).unwrap();
        let key = ReadingKey::generate().unwrap();
        for at in 0..2 {
            let own = name(&format!("/m{at}/KEY/%00 x"));
            group
                .grant(match form {
                    Form::Authenticated => Member::Point(own, key.public()),
                    Form::Nac => Member::Rsa(own, Box::new(rsa.public_key().unwrap())),
                })
                .unwrap();
        }
        let left = group.members().next().unwrap().to_name();
        group.revoke(left.as_ref(), 9).unwrap();
        let text = group.write().unwrap();
        let read = Group::read(&text).unwrap();
        assert_eq!(read.write().unwrap(), text);
        assert_eq!(read.kek(), group.kek());
        assert_eq!(
            (read.number(), read.members().count(), read.owner()),
            (9, 1, name("/am").as_ref())
        );
        for (at, _) in text.match_indices('\n') {
            // Whatever is cut off, it is an error or a group; it never panics.
            let _ = Group::read(&text[..at]);
        }
        assert!(!format!("{group:?}").contains("key: "));
    }
    for bad in ["", "onym-group 1", "onym-group 2\nname: /a/NAC/b\nform: nac\nowner: /a\n"] {
        assert!(matches!(Group::read(bad), Err(Error::File(_))), "{bad:?}");
    }
}

#[test]
fn a_card_is_signed_by_a_key_of_its_own_identity_and_has_an_end() {
    let signing = PrivateKey::generate(KeyType::Ecdsa).unwrap();
    let public = signing.public_key().unwrap();
    let signer = Signer::key(signing, name("/alice/KEY/1/self/v=1"));
    let key = ReadingKey::generate().unwrap();
    let own = name("/alice/KEY/2");
    let days = validity_of_days(NOW, 30);
    let made = Card::issue(own.as_ref(), key.public(), &signer, days, NOW).unwrap();
    let read = Card::from_text(&made.to_text()).unwrap();
    assert_eq!((read.key_name(), read.point()), (own.as_ref(), key.public()));
    read.verify(&public, NOW).unwrap();
    let at = |day: u64| read.verify(&public, NOW + day * 86_400_000);
    assert!(at(31).unwrap_err().to_string().contains("it has expired"));
    assert!(
        read.verify(&public, NOW - 86_400_000).unwrap_err().to_string().contains("not valid yet")
    );
    let other = PrivateKey::generate(KeyType::Ecdsa).unwrap().public_key().unwrap();
    assert!(read.verify(&other, NOW).is_err());
    let foreign = Card::issue(name("/bob/KEY/2").as_ref(), key.public(), &signer, days, NOW);
    assert!(matches!(foreign, Err(Error::Card(..))), "alice does not sign for bob");
    assert!(Card::issue(own.as_ref(), key.public(), &Signer::digest(), days, NOW).is_err());
    let der = card::to_pkcs8(&key);
    assert_eq!(card::from_pkcs8(&der).unwrap().public(), key.public());
    assert!(card::from_pkcs8(&der[1..]).is_err());
    // As OpenSSL writes it: version 0, OID 1.3.101.110, an octet string in an octet string.
    assert_eq!(der.len(), 48);
}

//! Content that a group only reads: what `put`, `get`, `publish`, `subscribe` and `access` share.

mod items;

pub(crate) use items::{Publisher, Subscriber};

use crate::exit::{Exit, Failure};
use crate::key_files::failure;
use crate::session;
use onym_access::reader::{Opened, Own};
use onym_access::{ContentKey, Form, Group, Reader, Trusted, card, names};
use onym_client::blocking::Client;
use onym_client::verify::Verified;
use onym_client::{
    Error, FetchError, NotOpened, Opener, Packet, Request, Schema, Seal, Unanswered,
};
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::{Kept, KeyStore};
use onym_crypto::{KeyType, PublicKey, Signer, SystemEntropy, text, verify};
use onym_wire::data::{Data, DataBuilder};
use onym_wire::{Name, NameRef};
use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zeroize::Zeroizing;

/// How long caches take the key of content as fresh: it never changes.
const CK_FRESHNESS_MS: u64 = 3_600_000;
/// Times that a key is asked for before nobody has it.
const TRIES: u32 = 2;
/// First line of the file of a reading key.
const HEADER: &str = "onym-reading 1";

/// A failure of access control as exit code and sentences.
pub(crate) fn refused(error: onym_access::Error) -> anyhow::Error {
    use onym_access::Error;
    let (exit, next) = match &error {
        Error::NotMember(group) => (
            Exit::Refused,
            format!(
                "ask the owner of {group}: `onym access grant`, with a card of `onym access key`"
            ),
        ),
        Error::NotFound(_) => (
            Exit::NotFound,
            "is the producer running and its prefix routed here? see `onym explain NAME`".into(),
        ),
        Error::Group { .. } | Error::Plain(_) => {
            (Exit::Refused, "ask without --for, if whoever it is for is all the same".into())
        }
        Error::Member(..) | Error::Card(..) => (Exit::Refused, String::new()),
        Error::Name(_) => (
            Exit::Usage,
            "the name of a group is /PREFIX/NAC/DATASET, such as /alice/NAC/photos".into(),
        ),
        _ => (Exit::Failed, String::new()),
    };
    let failure = Failure::new(exit, error.to_string());
    if next.is_empty() { failure.into() } else { failure.next(next).into() }
}

/// Who must have signed what is fetched.
pub(crate) enum Whose {
    /// The owner of one key.
    Key(Box<PublicKey>),
    /// Whom a schema allows, that of the command line or the hierarchy.
    Schema(Arc<Schema>),
}

impl Whose {
    /// A Data that was verified.
    pub(crate) fn ask(&self, client: &mut Client, request: &Request) -> Result<Packet, Error> {
        match self {
            Self::Schema(schema) => client.request_trusted(request, &**schema),
            Self::Key(_) => {
                let packet = client.request(request)?;
                self.believe(client, &packet.data())?;
                Ok(packet)
            }
        }
    }

    /// Checks who signed `data`.
    fn believe(&self, client: &mut Client, data: &Data<'_>) -> Result<(), Error> {
        match self {
            Self::Schema(schema) => client.believe(data, &**schema),
            Self::Key(key) => {
                let name = data.name.to_name();
                let not = |source| FetchError::NotVerified { name, source };
                verify::data(data, key).map_err(not).map_err(Error::Fetch)
            }
        }
    }
}

/// The file of a reading key.
pub(crate) fn write_reading(
    name: NameRef<'_>,
    key: &onym_access::envelope::ReadingKey,
) -> Zeroizing<String> {
    let mut out = Zeroizing::new(format!("{HEADER}\nname: {name}\n\n"));
    let body = Zeroizing::new(text::encode(&card::to_pkcs8(key)));
    // Writing to a String does not fail.
    let _ = write!(out, "{}", body.as_str());
    out
}

/// Name and key of such a file.
pub(crate) fn read_reading(
    file: &str,
) -> anyhow::Result<(Name, onym_access::envelope::ReadingKey)> {
    let damaged = || Failure::new(Exit::Failed, "a file of the key store is no reading key");
    let (head, body) = file.split_once("\n\n").ok_or_else(damaged)?;
    let name = head.strip_prefix(HEADER).and_then(|head| head.strip_prefix("\nname: "));
    let name = name.ok_or_else(damaged)?.parse()?;
    let der = Zeroizing::new(text::decode(body).map_err(failure)?);
    Ok((name, card::from_pkcs8(&der).map_err(refused)?))
}

/// All keys of the store that content can be encrypted for.
fn own(store: &KeyStore) -> anyhow::Result<Vec<Own>> {
    let mut own = Vec::new();
    for file in store.all_kept(Kept::Reading).map_err(failure)? {
        let (name, key) = read_reading(&file)?;
        own.push(Own::Point(name, key));
    }
    for info in store.keys().map_err(failure)? {
        if info.key_type == KeyType::Rsa {
            let key = store.key(info.name.as_ref()).map_err(failure)?;
            own.push(Own::Rsa(info.name, Box::new(key)));
        }
    }
    Ok(own)
}

/// A group of this key store.
pub(crate) fn group(store: &KeyStore, name: NameRef<'_>) -> anyhow::Result<Option<Group>> {
    let file = store.kept(Kept::Group, name).map_err(failure)?;
    file.map(|file| Group::read(&file)).transpose().map_err(refused)
}

/// Reads what a group only reads.
#[derive(Debug)]
pub(crate) struct Opening {
    reader: Mutex<Option<Reader>>,
    /// Whether somebody checks who signed what comes.
    verified: Verified,
    only: Option<Name>,
}

impl Opening {
    /// One that opens what was verified and, where `only` names a group, encrypted for that.
    pub(crate) fn new(verified: Verified, only: Option<Name>) -> Self {
        Self { reader: Mutex::new(None), verified, only }
    }

    fn reader(&self) -> MutexGuard<'_, Option<Reader>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Searches the content key of this name, and with it the group's.
    pub(crate) fn search(
        &self,
        client: &mut Client,
        whose: &Whose,
        key: Name,
    ) -> anyhow::Result<()> {
        self.search_with(client, whose, key, None)
    }

    /// The same where the Data of the content key is at hand, and was verified.
    fn search_with(
        &self,
        client: &mut Client,
        whose: &Whose,
        key: Name,
        mut ck: Option<Data<'_>>,
    ) -> anyhow::Result<()> {
        let mut reader = self.reader();
        let reader = match &mut *reader {
            Some(reader) => reader,
            none => {
                let store = KeyStore::of_user().map_err(failure)?;
                none.insert(Reader::new(own(&store)?, self.only.clone()))
            }
        };
        let mut search = Reader::search(key);
        while let Some(ask) = reader.ask(&mut search).map_err(refused)? {
            if let Some(ck) = ck.take() {
                let ck = Trusted::verified_by_caller(ck);
                reader.answer(&mut search, Some(&ck)).map_err(refused)?;
                continue;
            }
            let request = Request {
                can_be_prefix: ask.can_be_prefix,
                must_be_fresh: !ask.can_be_prefix,
                retries: TRIES,
                ..Request::new(ask.name)
            };
            let packet = match whose.ask(client, &request) {
                Ok(packet) => Some(packet),
                Err(Error::Unanswered {
                    why: Unanswered::Timeout | Unanswered::Nack(_), ..
                }) => None,
                Err(error) => return Err(session::failure(error)),
            };
            let data = packet.as_ref().map(|packet| Trusted::verified_by_caller(packet.data()));
            reader.answer(&mut search, data.as_ref()).map_err(refused)?;
        }
        Ok(())
    }
}

impl Opener for Opening {
    fn open(&self, data: &Data<'_>) -> Result<Option<Vec<u8>>, NotOpened> {
        let not = |why: String| NotOpened { needs: None, why };
        let sealed = onym_access::content::sealed_by(data.content);
        if self.verified == Verified::No {
            return match sealed {
                None => Ok(None),
                Some(_) => Err(not("it is encrypted, and nobody checked who signed it".into())),
            };
        }
        let reader = self.reader();
        let Some(reader) = &*reader else {
            return match (sealed, &self.only) {
                (Some((_, key)), _) => {
                    let why = format!("it is encrypted with {key}");
                    Err(NotOpened { needs: Some(key), why })
                }
                (None, None) => Ok(None),
                (None, Some(group)) => {
                    Err(not(onym_access::Error::Plain(group.clone()).to_string()))
                }
            };
        };
        match reader.open(&Trusted::verified_by_caller(*data)) {
            Ok(Opened::Plain) => Ok(None),
            Ok(Opened::Content(plain)) => Ok(Some(plain.to_vec())),
            Ok(Opened::Needs(key)) => {
                let why = format!("it is encrypted with {key}");
                Err(NotOpened { needs: Some(key), why })
            }
            Err(error) => Err(not(error.to_string())),
        }
    }
}

/// Encrypts what is published.
#[derive(Debug)]
pub(crate) struct Sealing(ContentKey);

impl Seal for Sealing {
    fn seal(&mut self, name: NameRef<'_>, plain: &[u8]) -> io::Result<Vec<u8>> {
        self.0.seal(name, plain, &mut SystemEntropy).map_err(io::Error::other)
    }
}

/// The Data that carries a content key, and what encrypts with it.
pub(crate) struct Sealed {
    /// `/<prefix>/CK/<version>`.
    pub(crate) key: Name,
    /// `/<prefix>/CK/<version>/ENCRYPTED-BY/<KEK>`.
    pub(crate) ck_name: Name,
    pub(crate) ck: Vec<u8>,
    pub(crate) sealing: Sealing,
}

/// A new content key for `group`, named `/<prefix>/CK/<version>` and signed by `signer`. The group's
/// public key is that of the key store, else the one that is fetched and that `whose` believes.
pub(crate) fn seal_for(
    client: &mut Client,
    group_name: &Name,
    whose: Option<&Whose>,
    prefix: &Name,
    version: u64,
    signer: &Signer,
) -> anyhow::Result<Sealed> {
    if !names::is_group(group_name.as_ref()) {
        return Err(refused(onym_access::Error::Name(group_name.clone())));
    }
    if matches!(signer.signature_type(), 0 | 200) {
        return Err(Failure::new(Exit::Usage, "what a group reads must be signed with a key")
            .why("who reads decrypts only what somebody signed whom he trusts")
            .next("name a key with --key, or a schema with --trust")
            .into());
    }
    let kek = kek(client, group_name, whose)?;
    let kek = Data::parse(&kek)?;
    let form = Form::of_kek(kek.content);
    let mut id = Name::new();
    id.append_version(version);
    let ckid = id.as_ref().last().unwrap_or(onym_wire::Component::generic(b""));
    let entropy = &mut SystemEntropy;
    let key = ContentKey::new(form, prefix.as_ref(), ckid, entropy).map_err(refused)?;
    // It is verified, or made here.
    let kek = Trusted::verified_by_caller(kek);
    let (ck_name, content) = key.for_group(&kek, group_name.as_ref(), entropy).map_err(refused)?;
    let ck = signed(ck_name.as_ref(), &content, CK_FRESHNESS_MS, 0, signer)?;
    Ok(Sealed { key: key.name().to_name(), ck_name, ck, sealing: Sealing(key) })
}

/// A signed Data.
pub(crate) fn signed(
    name: NameRef<'_>,
    content: &[u8],
    freshness_ms: u64,
    content_type: u64,
    signer: &Signer,
) -> anyhow::Result<Vec<u8>> {
    let data = DataBuilder { freshness_ms, content_type, ..DataBuilder::new(name, content) };
    let mut wire = Vec::new();
    signer.sign_data(&data, &mut wire).map_err(failure)?;
    Ok(wire)
}

/// The Data of a group's public key.
fn kek(client: &mut Client, name: &Name, whose: Option<&Whose>) -> anyhow::Result<Vec<u8>> {
    let store = KeyStore::of_user().map_err(failure)?;
    if let Some(group) = group(&store, name.as_ref())? {
        let (kek_name, content) = group.kek();
        return signed(kek_name.as_ref(), &content, 0, 0, &Signer::digest());
    }
    let Some(whose) = whose else {
        let what =
            format!("the group {name} is not in the key store, and nobody says whom to trust");
        return Err(Failure::new(Exit::Usage, what)
            .why("who takes a false key for the group's encrypts for somebody else")
            .next("name an anchor of the group's owner: --anchor CERT")
            .into());
    };
    let mut wanted = name.clone();
    wanted.append_generic("KEK");
    let request = Request {
        can_be_prefix: true,
        must_be_fresh: true,
        retries: TRIES,
        ..Request::new(wanted)
    };
    Ok(whose.ask(client, &request).map_err(session::failure)?.bytes().to_vec())
}

/// Days from now, for what is valid so long.
pub(crate) fn days(days: u32) -> (u64, onym_wire::cert::ValidityPeriod) {
    let now_ms = unix_now_ms();
    (now_ms, onym_crypto::cert::validity_of_days(now_ms, days))
}

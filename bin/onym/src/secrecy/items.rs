//! Publications of the push half that a group only reads.
//!
//! A sealed publication is two Data, one behind the other: the content key for the group, and the
//! content, named `/<publisher>/32=PUSH/<label>…/<version>`. Both are signed by the publisher, so
//! nothing has to be asked of him; the group's key is asked of its owner, once.

use super::{Opening, Sealed, Whose, refused, seal_for, signed};
use crate::exit::{Exit, Failure};
use crate::session;
use onym_access::content::sealed_by;
use onym_client::blocking::Client;
use onym_client::verify::Verified;
use onym_client::{Opener as _, Seal as _};
use onym_crypto::Signer;
use onym_crypto::cert::{identity_of_key, key_of_locator};
use onym_crypto::edge::unix_now_ms;
use onym_wire::data::Data;
use onym_wire::push::Id;
use onym_wire::tlv::Element;
use onym_wire::{Name, NameRef, types};

/// The keyword between a publisher and the labels of an item.
const PUSH: &[u8] = b"PUSH";

fn name_of(publisher: NameRef<'_>, id: &Id) -> Name {
    let mut name = publisher.to_name();
    name.append_keyword(PUSH);
    for label in id.labels() {
        name.append_generic(label);
    }
    name
}

/// Makes sealed publications of one item.
pub(crate) struct Publisher {
    prefix: Name,
    sealed: Sealed,
    signer: Signer,
    /// Of the last publication.
    version: u64,
}

impl Publisher {
    /// One for `group`; the group's key is that which `whose` believes, or that of the key store.
    pub(crate) fn new(
        client: &mut Client,
        group: &Name,
        whose: Option<&Whose>,
        id: &Id,
        signer: Signer,
    ) -> anyhow::Result<Self> {
        let locator = signer.locator().and_then(key_of_locator);
        let identity = locator.and_then(|key| identity_of_key(key).ok()).map(NameRef::to_name);
        let prefix = name_of(identity.unwrap_or_default().as_ref(), id);
        let version = unix_now_ms();
        let sealed = seal_for(client, group, whose, &prefix, version, &signer)?;
        Ok(Self { prefix, sealed, signer, version })
    }

    /// The publication that holds `plain`.
    pub(crate) fn publication(&mut self, plain: &[u8]) -> anyhow::Result<Vec<u8>> {
        self.version = unix_now_ms().max(self.version + 1);
        let mut name = self.prefix.clone();
        name.append_version(self.version);
        let content = self.sealed.sealing.seal(name.as_ref(), plain)?;
        let mut out = self.sealed.ck.clone();
        out.extend(signed(name.as_ref(), &content, 0, 0, &self.signer)?);
        Ok(out)
    }
}

/// Opens sealed publications.
pub(crate) struct Subscriber {
    client: Client,
    whose: Whose,
    opening: Opening,
}

impl Subscriber {
    /// One that opens what is signed by whom `whose` believes and, where `only` names a group, for
    /// that.
    pub(crate) fn new(client: Client, whose: Whose, only: Option<Name>) -> Self {
        Self { client, whose, opening: Opening::new(Verified::Yes, only) }
    }

    /// What a publication of `id` holds.
    pub(crate) fn open(&mut self, id: &Id, payload: &[u8]) -> anyhow::Result<Vec<u8>> {
        let (ck, content) = parts(payload)?;
        // One of another item, published here by somebody else, is not this item's.
        let labels = id.labels().len();
        let publisher = content.name.drop_last(labels + 2);
        if name_of(publisher, id) != content.name.drop_last(1) {
            return Err(Failure::new(
                Exit::Refused,
                format!("{} is not of this item", content.name),
            )
            .into());
        }
        for data in [&ck, &content] {
            self.whose.believe(&mut self.client, data).map_err(session::failure)?;
        }
        let (_, key) = sealed_by(content.content).ok_or_else(not_sealed)?;
        match self.opening.open(&content) {
            Ok(Some(plain)) => return Ok(plain),
            Ok(None) => return Err(not_sealed().into()),
            Err(error) if error.needs.is_none() => {
                return Err(Failure::new(Exit::Refused, "it cannot be read").why(error).into());
            }
            Err(_) => {}
        }
        self.opening.search_with(&mut self.client, &self.whose, key, Some(ck))?;
        let opened = self.opening.open(&content);
        let opened =
            opened.map_err(|error| Failure::new(Exit::Refused, "it cannot be read").why(error))?;
        opened.ok_or_else(|| refused(onym_access::Error::NotReadable))
    }
}

fn not_sealed() -> Failure {
    Failure::new(Exit::Refused, "the publication is not encrypted and signed")
        .next("`onym publish --for GROUP` makes such; without --anchor any publication is taken")
}

/// The two Data.
fn parts(payload: &[u8]) -> anyhow::Result<(Data<'_>, Data<'_>)> {
    let cut = || -> Option<(Data<'_>, Data<'_>)> {
        let first = Element::split(payload).ok()?.0;
        let rest = payload.get(first.wire.len()..)?;
        (first.typ == types::DATA).then_some(())?;
        Some((Data::parse(first.wire).ok()?, Data::parse(rest).ok()?))
    };
    Ok(cut().ok_or_else(not_sealed)?)
}

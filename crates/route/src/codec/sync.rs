//! The state vector by which a router says that it lives and which advertisement is its newest.

use super::{
    ADVERT_SEQ, AdvEntry, BOOT, DELTA, ENTRY, GOODBYE, HEARD, OTHER_COST, REMOVED, REQUEST,
    Request, SEQ, STATE_VECTOR, name, named, put_named, skip,
};
use onym_wire::tlv::{self, Element, Malformed, Reader};
use onym_wire::{Name, types};

/// What one sync Data says: sender, bootstrap time, newest advertisement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The sender.
    pub router: Name,
    /// Seconds since the Unix epoch at which it started.
    pub boot: u64,
    /// Its newest advertisement.
    pub seq: u64,
    /// Ours: what this advertisement changes.
    pub delta: Option<Delta>,
    /// Ours: the neighbours that it hears; empty from a peer that does not tell.
    pub heard: Vec<Heard>,
    /// Ours: the sender leaves.
    pub goodbye: bool,
}

/// Ours: the neighbour `router` is heard, and its advertisement `seq` was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The neighbour.
    pub router: Name,
    /// Its newest advertisement here.
    pub seq: u64,
}

/// Ours: the difference between two successive advertisements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    /// The advertisement that it changes.
    pub base: u64,
    /// Destinations that are new or otherwise.
    pub entries: Vec<AdvEntry>,
    /// Destinations that are gone.
    pub removed: Vec<Name>,
    /// What is asked for.
    pub requests: Vec<Request>,
}

impl Hello {
    /// Reads the content of a sync Data.
    ///
    /// # Errors
    /// [`Malformed`], also when it holds other than one router with one SeqNoEntry.
    pub fn parse(content: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(content);
        let vector = reader.expect(STATE_VECTOR)?;
        let (router, boot, seq) = single(vector.value)?;
        let mut hello = Self { router, boot, seq, delta: None, heard: Vec::new(), goodbye: false };
        for element in reader {
            let element = element?;
            match element.typ {
                DELTA if hello.delta.is_none() => hello.delta = Some(Delta::parse(element.value)?),
                HEARD => hello.heard.push(heard(element)?),
                GOODBYE => hello.goodbye = true,
                typ => skip(typ)?,
            }
        }
        Ok(hello)
    }

    /// Appends the content.
    pub fn write(&self, out: &mut Vec<u8>) {
        tlv::put_nested(out, STATE_VECTOR, |out| {
            tlv::put_nested(out, ENTRY, |out| {
                self.router.as_ref().write_tlv(out);
                tlv::put_nested(out, OTHER_COST, |out| {
                    tlv::put_nni_tlv(out, BOOT, self.boot);
                    tlv::put_nni_tlv(out, SEQ, self.seq);
                });
            });
        });
        if let Some(delta) = &self.delta {
            delta.write(out);
        }
        for heard in &self.heard {
            tlv::put_nested(out, HEARD, |out| {
                heard.router.as_ref().write_tlv(out);
                tlv::put_nni_tlv(out, ADVERT_SEQ, heard.seq);
            });
        }
        if self.goodbye {
            tlv::put_tlv(out, GOODBYE, &[]);
        }
    }
}

/// The one router of a state vector, with its one SeqNoEntry.
fn single(value: &[u8]) -> Result<(Name, u64, u64), Malformed> {
    let mut entries = Reader::new(value);
    let entry = entries.expect(ENTRY)?;
    if let Some(more) = entries.next() {
        return Err(Malformed::Unexpected(more?.typ));
    }
    let mut reader = Reader::new(entry.value);
    let router = name(reader.expect(types::NAME)?.wire)?.to_name();
    let seq_no = reader.expect(OTHER_COST)?;
    if let Some(more) = reader.next() {
        return Err(Malformed::Unexpected(more?.typ));
    }
    let mut reader = Reader::new(seq_no.value);
    let boot = reader.expect(BOOT)?.nni()?;
    let seq = reader.expect(SEQ)?.nni()?;
    Ok((router, boot, seq))
}

fn heard(element: Element<'_>) -> Result<Heard, Malformed> {
    let (router, mut rest) = named(element)?;
    Ok(Heard { router: router.to_name(), seq: rest.expect(ADVERT_SEQ)?.nni()? })
}

impl Delta {
    fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let mut delta = Self { base: reader.expect(ADVERT_SEQ)?.nni()?, ..Self::default() };
        for element in reader {
            let element = element?;
            match element.typ {
                ENTRY => delta.entries.push(AdvEntry::parse(element.value)?),
                REMOVED => delta.removed.push(name(element.value)?.to_name()),
                REQUEST => delta.requests.push(Request::parse(element)?),
                typ => skip(typ)?,
            }
        }
        Ok(delta)
    }

    /// Appends the element.
    pub fn write(&self, out: &mut Vec<u8>) {
        tlv::put_nested(out, DELTA, |out| {
            tlv::put_nni_tlv(out, ADVERT_SEQ, self.base);
            self.entries.iter().for_each(|entry| entry.write(out));
            self.removed.iter().for_each(|name| put_named(out, REMOVED, name));
            self.requests.iter().for_each(|request| request.write(out));
        });
    }
}

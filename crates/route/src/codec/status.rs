//! The status dataset at `/localhost/nlsr/status`.

use super::{name, skip};
use onym_wire::Name;
use onym_wire::tlv::{self, Malformed, Reader};

const VERSION: u32 = 401;
const NETWORK: u32 = 403;
const ROUTER: u32 = 405;
const RIB: u32 = 407;
const NEIGHBOURS: u32 = 409;
const FIB: u32 = 411;

/// What a router says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// The network.
    pub network: Name,
    /// The router.
    pub router: Name,
    /// Destinations, itself included.
    pub rib_entries: u64,
    /// Neighbours.
    pub neighbours: u64,
    /// Prefixes with next hops.
    pub fib_entries: u64,
}

impl Status {
    /// Reads the content.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(content: &[u8]) -> Result<Self, Malformed> {
        let mut status = Self::default();
        for element in Reader::new(content) {
            let element = element?;
            match element.typ {
                VERSION => status.version = String::from_utf8_lossy(element.value).into_owned(),
                NETWORK => status.network = name(element.value)?.to_name(),
                ROUTER => status.router = name(element.value)?.to_name(),
                RIB => status.rib_entries = element.nni()?,
                NEIGHBOURS => status.neighbours = element.nni()?,
                FIB => status.fib_entries = element.nni()?,
                typ => skip(typ)?,
            }
        }
        Ok(status)
    }

    /// Appends the content.
    pub fn write(&self, out: &mut Vec<u8>) {
        tlv::put_tlv(out, VERSION, self.version.as_bytes());
        super::put_named(out, NETWORK, &self.network);
        super::put_named(out, ROUTER, &self.router);
        tlv::put_nni_tlv(out, RIB, self.rib_entries);
        tlv::put_nni_tlv(out, NEIGHBOURS, self.neighbours);
        tlv::put_nni_tlv(out, FIB, self.fib_entries);
    }
}

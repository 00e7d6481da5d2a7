//! Operations on the prefix table of a router.

use super::{ADD, COST, DESTINATION, REMOVE, RESET, THROUGH, THROUGH_MAX, name, put_named};
use onym_wire::tlv::{self, Malformed, Reader};
use onym_wire::{Name, types};

/// One prefix that an exit router announces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixAdd {
    /// The prefix.
    pub name: Name,
    /// Cost from the exit router on.
    pub cost: u64,
    /// Ours: the networks behind the exit router by which the prefix came, the first one first; none
    /// when it is of the exit router's own network.
    pub through: Vec<Name>,
}

/// The content of a publication or snapshot: a bare list, without an outer element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrefixOps {
    /// The router whose table changes; a receiver requires that it is who signed.
    pub exit_router: Name,
    /// Everything before is forgotten.
    pub reset: bool,
    /// Prefixes added, or with another cost.
    pub adds: Vec<PrefixAdd>,
    /// Prefixes withdrawn.
    pub removes: Vec<Name>,
}

impl PrefixOps {
    /// Reads a content. Unknown elements are skipped, critical ones too, as peers do.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(content: &[u8]) -> Result<Self, Malformed> {
        let mut exit = None;
        let mut ops = Self::default();
        for element in Reader::new(content) {
            let element = element?;
            match element.typ {
                DESTINATION if exit.is_none() => exit = Some(name(element.value)?.to_name()),
                RESET => ops.reset = true,
                ADD => ops.adds.push(PrefixAdd::parse(element.value)?),
                REMOVE => ops.removes.push(name(element.value)?.to_name()),
                _ => {}
            }
        }
        ops.exit_router = exit.ok_or(Malformed::Missing(DESTINATION))?;
        Ok(ops)
    }

    /// Appends the content.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_named(out, DESTINATION, &self.exit_router);
        if self.reset {
            tlv::put_tlv(out, RESET, &[]);
        }
        for add in &self.adds {
            add.write(out);
        }
        self.removes.iter().for_each(|name| put_named(out, REMOVE, name));
    }
}

impl PrefixAdd {
    fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let name = name(reader.expect(types::NAME)?.wire)?.to_name();
        let cost = match reader.optional(COST)? {
            Some(element) => element.nni()?,
            None => 0,
        };
        let mut through = Vec::new();
        for element in reader {
            let element = element?;
            if element.typ == THROUGH && through.is_empty() {
                through = networks(element.value)?;
            }
        }
        Ok(Self { name, cost, through })
    }

    fn write(&self, out: &mut Vec<u8>) {
        tlv::put_nested(out, ADD, |out| {
            self.name.as_ref().write_tlv(out);
            tlv::put_nni_tlv(out, COST, self.cost);
            if !self.through.is_empty() {
                tlv::put_nested(out, THROUGH, |out| {
                    self.through.iter().for_each(|network| network.as_ref().write_tlv(out));
                });
            }
        });
    }
}

fn networks(value: &[u8]) -> Result<Vec<Name>, Malformed> {
    let mut networks = Vec::new();
    for element in Reader::new(value) {
        if networks.len() >= THROUGH_MAX {
            return Err(Malformed::TooLong);
        }
        networks.push(name(element?.wire)?.to_name());
    }
    Ok(networks)
}

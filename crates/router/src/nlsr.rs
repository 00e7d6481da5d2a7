//! Datasets of NLSR: its link state database and its routing table.

use onym_wire::tlv::{self, Element, Malformed, Reader};
use onym_wire::{Name, NameRef, types};

const LSA: u32 = 128;
const ORIGIN_ROUTER_SEQ: u32 = 130;
const ADJACENCY_LSA: u32 = 131;
const ADJACENCY: u32 = 132;
const COORDINATE_LSA: u32 = 133;
const COST_DOUBLE: u32 = 134;
const RADIUS: u32 = 135;
const ANGLE: u32 = 136;
const NAME_LSA: u32 = 137;
const EXPIRES: u32 = 139;
const COST: u32 = 140;
const URI: u32 = 141;
const NEXT_HOP: u32 = 143;
const ROUTING_TABLE: u32 = 144;
const ROUTING_ENTRY: u32 = 145;
const PREFIX_INFO: u32 = 146;
/// Records of one dataset, at most; a longer one is refused.
const RECORDS_MAX: usize = 1_000_000;

/// What every LSA begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Who made it.
    pub router: Name,
    /// Its number.
    pub seq: u64,
    /// When it ends, as text in UTC.
    pub expires: String,
}

/// A prefix of a name LSA.
#[derive(Debug, Clone, PartialEq)]
pub struct Prefix {
    /// The prefix.
    pub name: Name,
    /// Its cost; 0 in releases that have none.
    pub cost: f64,
}

/// What a router announces.
#[derive(Debug, Clone, PartialEq)]
pub struct NameLsa {
    /// Who and until when.
    pub head: Head,
    /// The prefixes.
    pub prefixes: Vec<Prefix>,
}

/// A link of a router.
#[derive(Debug, Clone, PartialEq)]
pub struct Adjacency {
    /// The neighbour.
    pub router: Name,
    /// The face to it.
    pub uri: String,
    /// The cost.
    pub cost: f64,
}

/// The links of a router.
#[derive(Debug, Clone, PartialEq)]
pub struct AdjacencyLsa {
    /// Who and until when.
    pub head: Head,
    /// The links.
    pub adjacencies: Vec<Adjacency>,
}

/// Where a router is in the hyperbolic plane.
#[derive(Debug, Clone, PartialEq)]
pub struct CoordinateLsa {
    /// Who and until when.
    pub head: Head,
    /// Radius.
    pub radius: f64,
    /// Angles.
    pub angles: Vec<f64>,
}

/// A link state database.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lsdb {
    /// Who announces what.
    pub names: Vec<NameLsa>,
    /// Who is linked to whom.
    pub adjacencies: Vec<AdjacencyLsa>,
    /// Who is where.
    pub coordinates: Vec<CoordinateLsa>,
}

impl Lsdb {
    /// Adds what the content of a dataset has.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(&mut self, content: &[u8]) -> Result<(), Malformed> {
        for element in Reader::new(content) {
            let element = element?;
            let mut rest = Reader::new(element.value);
            match element.typ {
                NAME_LSA => {
                    let head = head(rest.expect(LSA)?.value)?;
                    self.names.push(NameLsa { head, prefixes: list(rest, prefix)? });
                }
                ADJACENCY_LSA => {
                    let head = head(rest.expect(LSA)?.value)?;
                    let adjacencies = list(rest, adjacency)?;
                    self.adjacencies.push(AdjacencyLsa { head, adjacencies });
                }
                COORDINATE_LSA => {
                    let head = head(rest.expect(LSA)?.value)?;
                    let radius = double(rest.expect(RADIUS)?)?;
                    let angle = |element: Element<'_>| match element.typ {
                        ANGLE => double(element).map(Some),
                        typ => skip(typ).map(|()| None),
                    };
                    self.coordinates.push(CoordinateLsa {
                        head,
                        radius,
                        angles: list(rest, angle)?,
                    });
                }
                typ => skip(typ)?,
            }
        }
        Ok(())
    }
}

/// The ways to one destination.
#[derive(Debug, Clone, PartialEq)]
pub struct RoutingEntry {
    /// The router.
    pub destination: Name,
    /// Faces and costs.
    pub hops: Vec<(String, f64)>,
}

impl RoutingEntry {
    /// Reads the content of the routing table's dataset.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(content: &[u8]) -> Result<Vec<Self>, Malformed> {
        let mut all = Vec::new();
        for table in Reader::new(content) {
            let table = table?;
            if table.typ != ROUTING_TABLE {
                skip(table.typ)?;
                continue;
            }
            all.extend(list(Reader::new(table.value), entry)?);
        }
        Ok(all)
    }
}

fn entry(element: Element<'_>) -> Result<Option<RoutingEntry>, Malformed> {
    if element.typ != ROUTING_ENTRY {
        return skip(element.typ).map(|()| None);
    }
    let mut rest = Reader::new(element.value);
    let destination = name(rest.expect(types::NAME)?)?;
    let hop = |element: Element<'_>| {
        if element.typ != NEXT_HOP {
            return skip(element.typ).map(|()| None);
        }
        let mut rest = Reader::new(element.value);
        let uri = text(rest.expect(URI)?);
        Ok(Some((uri, double(rest.expect(COST_DOUBLE)?)?)))
    };
    Ok(Some(RoutingEntry { destination, hops: list(rest, hop)? }))
}

fn head(value: &[u8]) -> Result<Head, Malformed> {
    let mut rest = Reader::new(value);
    Ok(Head {
        router: name(rest.expect(types::NAME)?)?,
        seq: rest.expect(ORIGIN_ROUTER_SEQ)?.nni()?,
        expires: text(rest.expect(EXPIRES)?),
    })
}

/// A prefix with its cost, or the bare name of releases until 24.08.
fn prefix(element: Element<'_>) -> Result<Option<Prefix>, Malformed> {
    match element.typ {
        types::NAME => Ok(Some(Prefix { name: name(element)?, cost: 0.0 })),
        PREFIX_INFO => {
            let mut rest = Reader::new(element.value);
            let name = name(rest.expect(types::NAME)?)?;
            Ok(Some(Prefix { name, cost: double(rest.expect(COST)?)? }))
        }
        typ => skip(typ).map(|()| None),
    }
}

fn adjacency(element: Element<'_>) -> Result<Option<Adjacency>, Malformed> {
    if element.typ != ADJACENCY {
        return skip(element.typ).map(|()| None);
    }
    let mut rest = Reader::new(element.value);
    Ok(Some(Adjacency {
        router: name(rest.expect(types::NAME)?)?,
        uri: text(rest.expect(URI)?),
        cost: double(rest.expect(COST)?)?,
    }))
}

/// What `read` makes of the elements that are left.
fn list<T>(
    rest: Reader<'_>,
    read: impl Fn(Element<'_>) -> Result<Option<T>, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let mut all = Vec::new();
    for element in rest.take(RECORDS_MAX) {
        all.extend(read(element?)?);
    }
    Ok(all)
}

fn name(element: Element<'_>) -> Result<Name, Malformed> {
    Ok(NameRef::parse_value(element.value)?.to_name())
}

fn text(element: Element<'_>) -> String {
    String::from_utf8_lossy(element.value).into_owned()
}

/// Eight octets of IEEE 754, the most significant first.
fn double(element: Element<'_>) -> Result<f64, Malformed> {
    let octets =
        <[u8; 8]>::try_from(element.value).map_err(|_| Malformed::Unexpected(element.typ))?;
    Ok(f64::from_be_bytes(octets))
}

fn skip(typ: u32) -> Result<(), Malformed> {
    if tlv::is_critical(typ) { Err(Malformed::UnknownCritical(typ)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn put_head(out: &mut Vec<u8>) {
        tlv::put_nested(out, LSA, |out| {
            uri("/ndn/site/%C1.Router/r1").as_ref().write_tlv(out);
            tlv::put_nni_tlv(out, ORIGIN_ROUTER_SEQ, 12);
            tlv::put_tlv(out, EXPIRES, b"2026-11-24 07:00:00");
        });
    }

    fn put_double(out: &mut Vec<u8>, typ: u32, value: f64) {
        tlv::put_tlv(out, typ, &value.to_be_bytes());
    }

    #[test]
    fn all_kinds_of_lsas_are_read_with_prefixes_old_and_new() {
        let mut content = Vec::new();
        tlv::put_nested(&mut content, NAME_LSA, |out| {
            put_head(out);
            uri("/old").as_ref().write_tlv(out);
            tlv::put_nested(out, PREFIX_INFO, |out| {
                uri("/new").as_ref().write_tlv(out);
                put_double(out, COST, 2.5);
            });
        });
        tlv::put_nested(&mut content, ADJACENCY_LSA, |out| {
            put_head(out);
            tlv::put_nested(out, ADJACENCY, |out| {
                uri("/ndn/site/%C1.Router/r2").as_ref().write_tlv(out);
                tlv::put_tlv(out, URI, b"udp4://192.0.2.2:6363");
                put_double(out, COST, 25.0);
            });
        });
        tlv::put_nested(&mut content, COORDINATE_LSA, |out| {
            put_head(out);
            put_double(out, RADIUS, 1.5);
            put_double(out, ANGLE, 0.25);
            put_double(out, ANGLE, 0.5);
        });
        let mut lsdb = Lsdb::default();
        lsdb.read(&content).unwrap();
        let prefixes = &lsdb.names[0].prefixes;
        assert_eq!(prefixes[0], Prefix { name: uri("/old"), cost: 0.0 });
        assert_eq!(prefixes[1], Prefix { name: uri("/new"), cost: 2.5 });
        assert_eq!((lsdb.names[0].head.seq, lsdb.adjacencies[0].adjacencies[0].cost), (12, 25.0));
        assert_eq!(
            (lsdb.coordinates[0].radius, &lsdb.coordinates[0].angles[..]),
            (1.5, &[0.25, 0.5][..])
        );
        for end in 0..content.len() {
            let _ = Lsdb::default().read(content.get(..end).unwrap());
        }
        let mut short = Vec::new();
        tlv::put_nested(&mut short, COORDINATE_LSA, |out| {
            put_head(out);
            tlv::put_tlv(out, RADIUS, &[0; 4]);
        });
        assert!(Lsdb::default().read(&short).is_err(), "no double");
    }

    #[test]
    fn the_routing_table_has_its_next_hops() {
        let mut content = Vec::new();
        tlv::put_nested(&mut content, ROUTING_TABLE, |out| {
            tlv::put_nested(out, ROUTING_ENTRY, |out| {
                uri("/ndn/r2").as_ref().write_tlv(out);
                tlv::put_nested(out, NEXT_HOP, |out| {
                    tlv::put_tlv(out, URI, b"udp4://192.0.2.2:6363");
                    put_double(out, COST_DOUBLE, 25.0);
                });
            });
        });
        let table = RoutingEntry::read(&content).unwrap();
        assert_eq!(table[0].destination, uri("/ndn/r2"));
        assert_eq!(table[0].hops, [("udp4://192.0.2.2:6363".to_owned(), 25.0)]);
    }
}

//! Ways round links that are lost, until the trees that use them moved (P-91).

use super::{Copies, Forwarder};
use onym_tables::FaceId;
use onym_wire::push::Filter;

/// A way from the beginning of a lost link to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detour {
    /// Number of the lost link.
    pub lost: u32,
    /// Numbers of the links of the way, of which the first one is of this node.
    pub way: Vec<u32>,
}

/// A detour as frames meet it.
#[derive(Debug, Clone)]
pub(super) struct Bypass {
    /// The face of its first link.
    face: FaceId,
    /// By table: the tag of the lost link, and those of the way.
    tables: Vec<(Filter, Filter)>,
}

impl Forwarder {
    /// From now on frames go round these lost links, and no others. A detour whose first link is none
    /// of this node is left out.
    pub fn detours_set(&mut self, detours: &[Detour]) {
        self.bypasses = detours.iter().filter_map(|detour| self.bypass(detour)).collect();
    }

    fn bypass(&self, detour: &Detour) -> Option<Bypass> {
        let first = detour.way.first()?;
        let link = self.links.iter().find(|link| link.number == *first && !link.is_external)?;
        let scheme = self.config.scheme;
        let of_table = |table| {
            let mut way = Filter::EMPTY;
            detour.way.iter().for_each(|number| way.add(&scheme.tag(*number, table)));
            (scheme.tag(detour.lost, table), way)
        };
        Some(Bypass { face: link.face, tables: (0..scheme.tables()).map(of_table).collect() })
    }

    /// Sends a frame round the lost links that its filter names, back over the link that it came over
    /// if need be: all copies leave with the filter that is written over the octets of its own. One that
    /// has the way already is not sent round again, so a circle ends with its first round; one that would
    /// be too full stays as it is.
    #[cold]
    pub(super) fn go_round(&self, table: u8, octets: &mut [u8], copies: &mut Copies) {
        let Ok(octets) = octets.try_into() else { return };
        let octets: &mut [u8; Filter::LEN] = octets;
        let filter = Filter::from_octets(octets);
        let mut whole = filter;
        for bypass in &self.bypasses {
            let Some((lost, way)) = bypass.tables.get(usize::from(table)) else { return };
            if !filter.contains(lost) || filter.contains(way) {
                continue;
            }
            let mut more = whole;
            more.add(way);
            if self.check_fill(&more).is_err() {
                continue;
            }
            whole = more;
            if !copies.faces.contains(&bypass.face) {
                copies.faces.push(bypass.face);
            }
        }
        *octets = whole.octets();
    }
}

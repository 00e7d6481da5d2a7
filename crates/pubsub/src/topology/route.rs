//! From a tree to a forwarding part.

use super::map::{Map, Tree};
use crate::forwarder::OWN;
use crate::publication::flow_of;
use onym_tables::bloom::{KeyedTags, Scheme, StageBuilt, TABLES_MAX, build_stage};
use onym_wire::push::{Filter, Id, Label, Route, RouteBuf};
use std::collections::BTreeMap;

/// How forwarding parts are made.
#[derive(Debug, Clone, Copy)]
pub struct Routing {
    /// Tags of links.
    pub scheme: Scheme,
    /// Most ones of a flat filter.
    pub fill_max: u32,
    /// Whether stages may be used where a flat filter has false positives or too many ones.
    pub may_stage: bool,
    /// Whether stages are used wherever they can.
    pub only_stages: bool,
    /// Where data goes by keyed tags: the secret of the domain and the present epoch.
    pub keyed: Option<Keyed>,
}

/// What keyed tags are made with (section 3.2).
#[derive(Clone, Copy)]
pub struct Keyed {
    /// The secret that keys of nodes are derived from.
    pub master: [u64; 2],
    /// Number of the epoch.
    pub epoch: u8,
    /// Ones of a tag.
    pub k: u8,
}

impl std::fmt::Debug for Keyed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keyed(epoch {}, ..)", self.epoch)
    }
}

impl Default for Routing {
    fn default() -> Self {
        let scheme = Scheme::default();
        Self { scheme, fill_max: 179, may_stage: true, only_stages: false, keyed: None }
    }
}

/// A flat filter and how many links beside the tree it matches.
struct Flat {
    false_positives: usize,
    ones: u32,
    table: u8,
    filter: Filter,
}

impl Routing {
    /// The forwarding part of a tree from `root`; `None` when the tree has no links, or too many
    /// for any form.
    #[must_use]
    pub fn route(&self, map: &Map, root: Label, tree: &Tree) -> Option<RouteBuf> {
        if tree.links.is_empty() {
            return None;
        }
        let beside = map.beside(tree, root);
        let flat = self.flat(tree, &beside);
        let is_exact = flat.as_ref().is_some_and(|f| f.false_positives == 0);
        let staged = || self.stages(tree, &beside);
        if (self.only_stages || (self.may_stage && !is_exact))
            && let Some(route) = staged()
        {
            return Some(route);
        }
        flat.map(|f| RouteBuf::flat(f.table, &f.filter))
    }

    /// The forwarding part for data of `item`: keyed where the domain has keys and the filter of
    /// some table is not too full, otherwise as [`route`](Self::route).
    #[must_use]
    pub fn data_route(&self, map: &Map, root: Label, tree: &Tree, item: &Id) -> Option<RouteBuf> {
        let keyed = self.keyed.filter(|_| !tree.links.is_empty());
        let made = keyed.and_then(|keyed| self.keyed_route(keyed, map, tree, flow_of(item)));
        made.or_else(|| self.route(map, root, tree))
    }

    fn keyed_route(&self, keyed: Keyed, map: &Map, tree: &Tree, flow: u64) -> Option<RouteBuf> {
        let Keyed { master, epoch, k } = keyed;
        let crossings: Vec<(KeyedTags, u32, u32)> = map
            .crossings(tree)
            .into_iter()
            .map(|(node, from, to)| {
                (KeyedTags::of_node(master, node.to_u64(), epoch, k), from.unwrap_or(OWN), to)
            })
            .collect();
        let of_table = |table| {
            let mut filter = Filter::EMPTY;
            for (keys, from, to) in &crossings {
                filter.add(&keys.tag(flow, *from, *to, table));
            }
            (filter.ones(), table, filter)
        };
        let (ones, table, filter) = (0..TABLES_MAX).map(of_table).min_by_key(|f| (f.0, f.1))?;
        let route = Route::Keyed { table, epoch, flow, filter };
        (ones <= self.fill_max).then(|| RouteBuf::from(route))
    }

    /// The filter of the table with the fewest false positives, then the fewest ones.
    fn flat(&self, tree: &Tree, beside: &[(u32, u32)]) -> Option<Flat> {
        let of_table = |table| {
            let mut filter = Filter::EMPTY;
            let numbers = tree.links.iter().map(|l| l.number);
            for number in numbers.chain(tree.insides.iter().map(|i| i.0)) {
                filter.add(&self.scheme.tag(number, table));
            }
            let is_hit = |n: u32| filter.contains(&self.scheme.tag(n, table));
            let false_positives = beside.iter().filter(|(_, n)| is_hit(*n)).count();
            Flat { false_positives, ones: filter.ones(), table, filter }
        };
        (0..self.scheme.tables())
            .map(of_table)
            .filter(|f| f.ones <= self.fill_max)
            .min_by_key(|f| (f.false_positives, f.ones, f.table))
    }

    fn stages(&self, tree: &Tree, beside: &[(u32, u32)]) -> Option<RouteBuf> {
        let mut members: BTreeMap<u32, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
        let tag = |number| self.scheme.stage_tag(number);
        for link in &tree.links {
            members.entry(link.depth).or_default().0.push(tag(link.number));
        }
        for (number, depth) in tree.insides.iter().filter(|(_, depth)| *depth > 0) {
            members.entry(*depth).or_default().0.push(tag(*number));
        }
        for (depth, number) in beside {
            members.entry(*depth).or_default().1.push(tag(*number));
        }
        let built = (0..=tree.depth()).map(|depth| {
            let (ours, theirs) = members.get(&depth)?;
            build_stage(u8::try_from(depth).ok()?, ours, theirs)
        });
        let built: Vec<StageBuilt> = built.collect::<Option<_>>()?;
        let stages: Vec<_> = built.iter().map(StageBuilt::as_stage).collect();
        RouteBuf::stages(&stages)
    }

    /// The way back: from every node of the tree to its root. Links lead up only, so a frame from
    /// one receiver reaches no other.
    #[must_use]
    pub fn reply(&self, tree: &Tree) -> Option<RouteBuf> {
        let of_table = |table| {
            let mut filter = self.scheme.tag(tree.root, table);
            tree.links.iter().for_each(|l| filter.add(&self.scheme.tag(l.reverse, table)));
            (filter.ones(), table, filter)
        };
        let best = (0..self.scheme.tables()).map(of_table).min_by_key(|f| (f.0, f.1))?;
        (best.0 <= self.fill_max && !tree.links.is_empty()).then(|| RouteBuf::flat(best.1, &best.2))
    }
}

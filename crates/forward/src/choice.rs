//! The strategy choice table: name prefix → strategy instance, longest prefix first.

use crate::strategy::{Instance, Strategy, StrategyError};
use onym_tables::hash::NameHashes;
use onym_tables::prefix_map::PrefixMap;
use onym_tables::{HashKey, Prefix};
use onym_wire::name::{Name, NameRef};

/// The strategy of the empty prefix until another is set.
const DEFAULT: &str = "/localhost/nfd/strategy/best-route";

/// One choice.
#[derive(Debug)]
pub struct Choice {
    /// The full instance name, with version and parameters.
    pub instance: Name,
    pub(crate) strategy: Box<dyn Strategy>,
    /// [`Strategy::takes_first`].
    pub(crate) takes_first: bool,
}

impl From<Instance> for Choice {
    fn from(Instance { strategy, name }: Instance) -> Self {
        Self { takes_first: strategy.takes_first(), instance: name, strategy }
    }
}

/// The table. The empty prefix always has an entry.
#[derive(Debug)]
pub struct Choices {
    map: PrefixMap<Choice>,
    entries_max: usize,
    root: Prefix<'static>,
    any_minds_data: bool,
    any_wants_new_next_hop: bool,
}

impl Choices {
    /// A table of at most `entries_max` prefixes with best-route at the root.
    pub(crate) fn new(key: &HashKey, entries_max: usize) -> Self {
        let root = Prefix { bytes: &[], len: 0, hash: key.name(&[]) };
        let mut map = PrefixMap::default();
        let default: Name = DEFAULT.parse().expect("invariant: a well-formed name");
        let instance =
            Instance::create(default.as_ref()).expect("invariant: the default strategy exists");
        map.insert(&root, Choice::from(instance));
        Self { map, entries_max, root, any_minds_data: false, any_wants_new_next_hop: false }
    }

    /// Prefix lengths in use, as bits.
    #[inline]
    pub(crate) fn lengths(&self) -> u64 {
        self.map.lengths()
    }

    /// The choice for `name`, whose hashes cover [`Choices::lengths`], and its prefix.
    #[inline(always)]
    pub(crate) fn effective<'n>(
        &self,
        hashes: &NameHashes,
        name: &'n [u8],
    ) -> (Prefix<'n>, &Choice) {
        if self.map.len() > 1 {
            return self.longest(hashes, name);
        }
        // The root is made first and stays: it is in the first slot.
        let (_, root) = self.map.at(0).expect("invariant: the root has a strategy");
        (self.root, root)
    }

    fn longest<'n>(&self, hashes: &NameHashes, name: &'n [u8]) -> (Prefix<'n>, &Choice) {
        let found = self.map.longest_match(hashes, name, |_| true);
        found.expect("invariant: the root matches every name")
    }

    /// Makes the strategy `instance` (a name under /localhost/nfd/strategy) the choice of `prefix`;
    /// returns its full name.
    pub(crate) fn set(
        &mut self,
        prefix: &Prefix<'_>,
        instance: NameRef<'_>,
    ) -> Result<Name, ChoiceError> {
        let choice = Choice::from(Instance::create(instance)?);
        let name = choice.instance.clone();
        if self.map.get(prefix).is_none() && self.map.len() >= self.entries_max {
            return Err(ChoiceError::Full(self.entries_max));
        }
        self.map.insert(prefix, choice);
        self.look_again();
        Ok(name)
    }

    /// Makes `strategy`, called `instance`, the choice of the empty prefix.
    pub(crate) fn install(&mut self, instance: Name, strategy: Box<dyn Strategy>) {
        self.map.insert(&self.root, Choice::from(Instance { strategy, name: instance }));
        self.look_again();
    }

    fn look_again(&mut self) {
        let mut strategies = self.map.iter().map(|(_, c)| &c.strategy);
        self.any_minds_data = strategies.clone().any(|s| s.minds_data());
        self.any_wants_new_next_hop = strategies.any(|s| s.wants_new_next_hop());
    }

    /// Whether some strategy in use looks at Data.
    #[inline]
    pub(crate) fn any_minds_data(&self) -> bool {
        self.any_minds_data
    }

    /// Whether some strategy in use looks at new next hops.
    pub(crate) fn any_wants_new_next_hop(&self) -> bool {
        self.any_wants_new_next_hop
    }

    /// Takes the choice of `prefix` back; says whether there was one. The root keeps its own.
    pub(crate) fn unset(&mut self, prefix: &Prefix<'_>) -> bool {
        let unset = prefix.len > 0 && self.map.remove(prefix).is_some();
        self.look_again();
        unset
    }

    /// Every prefix (its name's value) with its choice, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Choice)> {
        self.map.iter()
    }
}

/// Why a choice was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// The instance name was not accepted.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    /// Tables hold prefixes of at most 32 components.
    #[error("the prefix has {0} components; at most 32 are allowed")]
    TooLong(usize),
    /// The table is at its limit.
    #[error("the strategy choice table holds its limit of {0} prefixes (tables.strategies_max)")]
    Full(usize),
}

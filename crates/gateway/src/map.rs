//! The mapping between names and identifiers (spec/gateway.md, section 1).

use onym_wire::name::{Component, Name, NameRef};
use onym_wire::push::{Id, Label, Strategy};
use std::time::Duration;

/// What stands for a label in a name: a GenericNameComponent of its eight octets.
#[must_use]
pub fn label_component(label: Label) -> [u8; 8] {
    label.0
}

/// One pair of a name prefix and a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// The name that stands for the scope.
    pub prefix: Name,
    /// The scope.
    pub scope: Id,
    /// The strategy of the scope.
    pub strategy: Strategy,
    /// How long caches may answer with a publication as the newest: the item's lifetime.
    pub freshness: Duration,
    /// Items that are fed from producers, whatever the node's routes say.
    pub items: Vec<Id>,
    /// Whether a registered route beneath the prefix makes an item.
    pub is_by_routes: bool,
}

/// A name under a map, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) map: usize,
    pub(crate) id: Id,
    /// What comes after the labels.
    pub(crate) rest: NameRef<'a>,
}

fn label_of(component: Component<'_>) -> Option<Label> {
    if !component.is_generic() {
        return None;
    }
    component.value.try_into().ok().map(Label)
}

impl Map {
    /// The name of an item beneath the scope.
    #[must_use]
    pub fn name_of(&self, id: &Id) -> Option<Name> {
        let labels = id.labels().strip_prefix(self.scope.labels())?;
        let mut name = self.prefix.clone();
        for label in labels {
            name.append_generic(label);
        }
        Some(name)
    }
}

/// Takes `name` apart by the map with the longest prefix.
pub(crate) fn place_of<'a>(maps: &[Map], name: NameRef<'a>) -> Option<Place<'a>> {
    let fits = maps.iter().enumerate().filter(|(_, map)| map.prefix.as_ref().is_prefix_of(name));
    let (at, map) = fits.max_by_key(|(_, map)| map.prefix.len())?;
    let below = name.strip_prefix(map.prefix.as_ref())?;
    let labels: Vec<Label> = below.components().map_while(label_of).collect();
    let id = labels.iter().fold(map.scope.clone(), |id, label| id.child(*label));
    // A longer identifier than there may be is none.
    let is_whole = id.len() == map.scope.len() + labels.len();
    let rest = below.suffix(labels.len());
    (is_whole && !labels.is_empty()).then_some(Place { map: at, id, rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn map() -> Map {
        Map {
            prefix: "/g/a".parse().unwrap(),
            scope: "/1".parse().unwrap(),
            strategy: Strategy::DOMAIN_LOCAL,
            freshness: Duration::from_secs(1),
            items: Vec::new(),
            is_by_routes: true,
        }
    }

    #[test]
    fn an_identifier_and_its_name_lead_to_each_other() {
        let maps = [Map { prefix: "/g".parse().unwrap(), ..map() }, map()];
        let id: Id = "/1/2/ff00000000000003".parse().unwrap();
        let mut name = maps[1].name_of(&id).unwrap();
        let place = place_of(&maps, name.as_ref()).unwrap();
        assert_eq!((place.map, &place.id, place.rest.len()), (1, &id, 0));
        name.append_version(7).append_segment(0);
        let place = place_of(&maps, name.as_ref()).unwrap();
        assert_eq!((place.id, place.rest.to_string().as_str()), (id, "/v=7/seg=0"));
    }

    #[test]
    fn what_has_no_label_or_too_many_is_no_item() {
        let maps = [map()];
        for text in ["/g/a", "/g/a/seven77", "/g/b/eight888", "/g/a/32=eight888"] {
            let name: Name = text.parse().unwrap();
            assert_eq!(place_of(&maps, name.as_ref()), None, "{text}");
        }
        let mut name = maps[0].prefix.clone();
        (0..255).for_each(|_| {
            name.append_generic(b"eight888");
        });
        assert_eq!(place_of(&maps, name.as_ref()), None);
        assert_eq!(maps[0].name_of(&"/2/3".parse().unwrap()), None);
    }
}

//! Names of ndn-dv.
//!
//! `N` is the network's name, `R` a router's: N and one more component.

use onym_wire::name::Component;
use onym_wire::{Name, NameRef};

const LOCALHOP: &[u8] = b"localhop";
const DV: &[u8] = b"DV";
const ADS: &[u8] = b"ADS";
const ADV: &[u8] = b"ADV";
const PFS: &[u8] = b"PFS";

/// Names that one router uses, made once.
#[derive(Debug, Clone)]
pub struct Names {
    /// N.
    pub network: Name,
    /// R.
    pub router: Name,
    /// `/localhop/N/32=DV/32=ADS`
    pub sync: Name,
    /// `/localhop/N/32=DV/32=ADS/32=ACT`: to faces of configured links.
    pub sync_active: Name,
    /// `/localhop/N/32=DV/32=ADS/32=PSV`: to faces where a neighbour was heard.
    pub sync_passive: Name,
    /// `/localhop/R/32=DV/32=ADV`
    pub advert: Name,
    /// `/N/32=DV/32=PFS`: the group of the prefix tables.
    pub prefix_group: Name,
    /// `/N/32=DV/32=PFS/32=svs`: where its sync Interests go.
    pub prefix_sync: Name,
}

/// Why names do not make a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NamesError {
    /// The schema of deployed routers knows networks of one to three components.
    #[error("the name of a network has one to three components")]
    Network,
    /// Every router is directly under its network.
    #[error("the name of a router is that of its network and one more component")]
    Router,
}

impl Names {
    /// Names of the router `router` in `network`.
    ///
    /// # Errors
    /// [`NamesError`].
    pub fn new(network: Name, router: Name) -> Result<Self, NamesError> {
        if !(1..=3).contains(&network.len()) {
            return Err(NamesError::Network);
        }
        if !is_router_of(network.as_ref(), router.as_ref()) {
            return Err(NamesError::Router);
        }
        let sync = keyword(keyword(localhop(network.as_ref()), DV), ADS);
        let prefix_group = keyword(keyword(network.clone(), DV), PFS);
        Ok(Self {
            sync_active: keyword(sync.clone(), b"ACT"),
            sync_passive: keyword(sync.clone(), b"PSV"),
            sync,
            advert: advert_prefix(router.as_ref()),
            prefix_sync: keyword(prefix_group.clone(), b"svs"),
            prefix_group,
            network,
            router,
        })
    }

    /// Whether `name` can be a router of this network.
    #[must_use]
    pub fn is_router(&self, name: NameRef<'_>) -> bool {
        is_router_of(self.network.as_ref(), name)
    }

    /// The router whose sync Data is called `name`: `/localhop/R/32=DV/32=ADV/32=SYNC`.
    #[must_use]
    pub fn router_of_sync(&self, name: NameRef<'_>) -> Option<Name> {
        let last = name.last()?;
        if !last.is_keyword(b"SYNC") {
            return None;
        }
        self.router_of_advert_prefix(name.drop_last(1))
    }

    /// The router whose advertisements are under `name`: `/localhop/R/32=DV/32=ADV`.
    fn router_of_advert_prefix(&self, name: NameRef<'_>) -> Option<Name> {
        let router = name.drop_last(2).suffix(1).to_name();
        (self.is_router(router.as_ref()) && advert_prefix(router.as_ref()) == name)
            .then_some(router)
    }

    /// `/N/32=DV/32=PFS/<router>`: the way to the prefix table of `router`.
    #[must_use]
    pub fn prefixes_of(&self, router: NameRef<'_>) -> Name {
        self.prefix_group.clone().join(router)
    }
}

fn is_router_of(network: NameRef<'_>, router: NameRef<'_>) -> bool {
    router.len() == network.len() + 1 && network.is_prefix_of(router)
}

fn keyword(name: Name, word: &[u8]) -> Name {
    name.with(Component::keyword(word))
}

fn localhop(name: NameRef<'_>) -> Name {
    Name::new().with(Component::generic(LOCALHOP)).join(name)
}

/// `/localhop/R/32=DV`: everything that a neighbour's router serves on its link.
#[must_use]
pub fn link_prefix(router: NameRef<'_>) -> Name {
    keyword(localhop(router), DV)
}

/// `/localhop/R/32=DV/32=ADV`.
#[must_use]
pub fn advert_prefix(router: NameRef<'_>) -> Name {
    keyword(link_prefix(router), ADV)
}

/// `/localhop/R/32=DV/32=ADV/32=SYNC`: the Data in a sync Interest.
#[must_use]
pub fn sync_data(router: NameRef<'_>) -> Name {
    keyword(advert_prefix(router), b"SYNC")
}

/// `/localhop/R/32=DV/32=ADV/t=<boot>/v=<seq>`: one advertisement.
#[must_use]
pub fn advert(router: NameRef<'_>, boot: u64, seq: u64) -> Name {
    let mut name = advert_prefix(router);
    name.append_timestamp(boot).append_version(seq);
    name
}

/// The last component of a router's name, for people.
#[must_use]
pub fn short(router: &Name) -> String {
    router.as_ref().last().map_or_else(String::new, |c| c.to_string())
}

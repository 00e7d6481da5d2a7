//! Strategy choices by prefix, and measurements.

use crate::choice::Choices;
use crate::strategy::{Action, Measured};
use crate::{Config, Event};
use onym_frame::Buf;
use onym_tables::HashKey;
use onym_tables::hash::NameHashes;
use onym_tables::measurements::Measurements;
use onym_tables::prefix_map::PrefixMap;
use onym_wire::name::NameRef;

/// Events kept for the shell; later ones are lost until it takes them.
const EVENTS_MAX: usize = 1024;

/// The state of the strategy stage.
#[derive(Debug)]
pub struct Strategies {
    pub(crate) choices: Choices,
    pub(crate) measurements: Measurements<Measured>,
    pub(crate) announcements: PrefixMap<Buf>,
    pub(crate) events: Vec<Event>,
    /// Room used again for each packet.
    pub(crate) actions: Vec<Action>,
}

impl Strategies {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            choices: Choices::new(&config.hash_key, config.strategies_max),
            measurements: Measurements::new(config.measurements_max),
            announcements: PrefixMap::default(),
            events: Vec::new(),
            actions: Vec::new(),
        }
    }

    pub(crate) fn note(&mut self, event: Event) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(event);
        }
    }

    pub(crate) fn announcement_for(&self, key: &HashKey, name: NameRef<'_>) -> Option<Buf> {
        let hashes = NameHashes::new(key, name.value(), self.announcements.lengths());
        self.announcements.longest_match(&hashes, name.value(), |_| true).map(|(_, a)| a.clone())
    }
}

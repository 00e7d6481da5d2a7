//! The shell's state for each network: keys, trust, neighbours held down.

use super::Error;
use super::meeting::{Meeting, Timing};
use crate::names;
use crate::renewal::{Served, Watched};
use crate::state::Keys;
use crate::trust::Trust;
use crate::{Area, Schema, Settings, held, next_boot};
use onym_crypto::Signer;
use onym_crypto::edge::random_u64;
use onym_endpoint::{Endpoint, PrefixId};
use onym_route::{Config, Router};
use onym_tables::Tick;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A network, as long as the router runs.
pub(super) struct Own {
    pub(super) trust: Trust,
    pub(super) served: Served,
    pub(super) keys: Option<Watched>,
    pub(super) held: Option<held::Watched>,
    /// For neighbours that are looked for, or named by their hosts.
    pub(super) meeting: Option<Meeting>,
}

impl Own {
    /// Whether neighbours are looked for.
    pub(super) fn discovers(&self) -> bool {
        self.meeting.as_ref().is_some_and(|meeting| meeting.discover)
    }

    /// Whether hellos under this prefix are for it.
    pub(super) fn meets_by(&self, prefix: PrefixId) -> bool {
        self.meeting.as_ref().is_some_and(|meeting| meeting.prefix == prefix)
    }
}

/// Opens the files of a network, serves its certificate and makes its router.
pub(super) fn open(
    settings: &Settings,
    area: Area,
    endpoint: &mut Endpoint,
    unix_ms: u64,
    is_over: &Arc<AtomicBool>,
) -> Result<(Own, Router), Error> {
    let Area { network, router, links, discover, accept, state, keys: folder, trust } = area;
    // Names first: a mistake there shall leave no files.
    onym_route::Names::new(network.clone(), router.clone())?;
    let watched =
        folder.clone().map(|folder| Watched::new(folder, network.clone(), router.clone()));
    let keys = match &folder {
        Some(folder) => Some(Keys::open(folder, &network, &router, unix_ms)?),
        None => None,
    };
    let file = |name| state.as_ref().map(|folder| folder.join(name));
    let boot = next_boot(file("boot").as_deref(), unix_ms / 1000).map_err(Error::Boot)?;
    let held = file(held::FILE).map(held::Watched::open).transpose().map_err(Error::Held)?;
    let (held, held_now) = held.unzip();
    let (hosts, links) = names::split(links);
    let config = Config {
        links,
        accept,
        advertise_interval: settings.advertise_interval,
        dead_interval: settings.dead_interval,
        readvertise: settings.readvertise,
        cost_by: settings.cost_by,
        folder: state.as_ref().map(|folder| folder.display().to_string()),
        held: held_now.into_iter().flatten().collect(),
        ..Config::new(network.clone(), router, boot, random_u64())
    };
    let trust = match (&keys, folder, trust) {
        (Some(keys), _, Some(Schema { settings, base })) => {
            Trust::schema(settings, &base, keys, unix_ms)?
        }
        (Some(keys), Some(folder), None) => Trust::keys(network, &folder, keys, unix_ms)?,
        _ => Trust::Insecure,
    };
    let signer = keys.as_ref().map_or_else(Signer::digest, |keys| keys.signer.clone());
    let router = Router::new(Tick(0), config, signer.clone(), unix_ms)?;
    let mut served = Served::default();
    if let Some(keys) = keys {
        let prefix = endpoint.serve(keys.certificate.key_name().to_name());
        debug_assert!(prefix.is_ok(), "the first prefixes have room");
        served.renew(keys.certificate, unix_ms);
    }
    let meeting = match discover || !hosts.is_empty() {
        true => {
            let (names, timing) =
                (router.names().clone(), Timing { discover, ..Timing::of(settings) });
            let meeting = Meeting::start(names, timing, signer, hosts, endpoint, is_over);
            Some(meeting.map_err(Error::Thread)?)
        }
        false => None,
    };
    Ok((Own { trust, served, keys: watched, held, meeting }, router))
}

//! What a manager does with a chain: configuration and routes.

use super::{BR, CS, ChainSubject, NR, PD, SF};
use crate::core::to_name;
use crate::script::Script;
use onym_link::Outbox;
use onym_services::config::{
    BackwardRouter, ContentStore, KindConfig, Retransmission, Unsolicited,
};
use onym_services::control::{RouteSpec, SetRequest};
use onym_services::{Answer, Request};

/// Settings of a chain with a strategy forwarder that no service can find out by itself, with the
/// reason.
pub const SETTINGS: &[(&str, &str)] = &[
    (
        "backward-router retransmission=strategy",
        "a backward router cannot know that a strategy forwarder behind it decides on \
         retransmissions",
    ),
    (
        "backward-router nack=false under a multicast strategy",
        "the backward router finds loops, and the strategies are known to the strategy forwarder \
         alone",
    ),
];

impl ChainSubject {
    /// The configuration of all functions for this script.
    pub(super) fn set_up(&mut self, script: &Script) -> Result<(), String> {
        self.configure(PD, |own| {
            let KindConfig::PacketDispatcher(own) = own else { return };
            own.consumer_path = Some("tcp4://127.0.0.1:1".to_owned());
            own.producer_path = Some("tcp4://127.0.0.1:2".to_owned());
        })?;
        let regions = script.regions.iter().map(|parts| {
            let name = crate::env::Env::default().name(parts)?;
            Ok(to_name(&name)?.to_string())
        });
        let regions = regions.collect::<Result<Vec<_>, String>>()?;
        self.configure(NR, |own| {
            let KindConfig::NameRouter(own) = own else { return };
            own.strategy_forwarder = Some("up".to_owned());
            own.regions.clone_from(&regions);
        })?;
        self.configure(SF, |own| {
            let KindConfig::StrategyForwarder(own) = own else { return };
            own.regions = regions;
        })?;
        self.backward_router(|own| own.retransmission = Retransmission::Strategy)?;
        for (key, value) in &script.config {
            let number = || value.parse::<usize>().map_err(|e| format!("config {key}: {e}"));
            match key.as_str() {
                "pit.entries_max" => {
                    let capacity = number()?;
                    self.backward_router(|own| own.capacity = capacity)?;
                }
                "forward.default_hop_limit" => {
                    let limit =
                        u8::try_from(number()?).map_err(|e| format!("config {key}: {e}"))?;
                    self.backward_router(|own| own.default_hop_limit = limit)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn configure(
        &mut self,
        at: usize,
        change: impl FnOnce(&mut KindConfig),
    ) -> Result<(), String> {
        let mut config = self.functions[at].config();
        change(&mut config.own);
        let now = self.moment();
        let done = self.functions[at].configure(now, config, &mut Outbox::default());
        done.map_err(|e| e.message)
    }

    pub(super) fn backward_router(
        &mut self,
        change: impl FnOnce(&mut BackwardRouter),
    ) -> Result<(), String> {
        self.configure(BR, |own| {
            if let KindConfig::BackwardRouter(own) = own {
                change(own);
            }
        })
    }

    pub(super) fn content_store(
        &mut self,
        change: impl FnOnce(&mut ContentStore),
    ) -> Result<(), String> {
        self.configure(CS, |own| {
            if let KindConfig::ContentStore(own) = own {
                change(own);
            }
        })
    }

    pub(super) fn routes(&mut self, request: SetRequest<RouteSpec>) -> Result<Answer, String> {
        let now = self.moment();
        let request = Request::Routes(request);
        let done = self.functions[NR].control(now, request, &mut Outbox::default());
        done.map_err(|e| e.message)
    }
}

pub(super) fn unsolicited(word: &str) -> Result<Unsolicited, String> {
    match word {
        "drop-all" => Ok(Unsolicited::DropAll),
        "admit-local" => Ok(Unsolicited::AdmitLocal),
        "admit-network" => Ok(Unsolicited::AdmitNetwork),
        "admit-all" => Ok(Unsolicited::AdmitAll),
        _ => Err(format!("there is no policy {word:?} for unsolicited Data")),
    }
}

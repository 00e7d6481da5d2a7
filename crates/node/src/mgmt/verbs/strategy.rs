//! `strategy-choice/set`, `strategy-choice/unset`.

use super::super::command::bad_parameters;
use super::super::host::Host;
use super::{name_of, table_error};
use onym_wire::mgmt::{ControlParameters, ControlResponse};

pub(super) fn set(p: &ControlParameters, host: &mut dyn Host) -> ControlResponse {
    let name = match name_of(p) {
        Ok(name) => name,
        Err(refusal) => return refusal.into(),
    };
    let Some(strategy) = &p.strategy else { return bad_parameters("Strategy is missing").into() };
    match host.strategy_set(name.as_ref(), strategy.as_ref()) {
        Ok(instance) => ControlResponse::ok(ControlParameters {
            name: Some(name.clone()),
            strategy: Some(instance),
            ..ControlParameters::default()
        }),
        Err(error) => table_error(&error),
    }
}

pub(super) fn unset(p: &ControlParameters, host: &mut dyn Host) -> ControlResponse {
    let Some(name) = &p.name else { return bad_parameters("Name is missing").into() };
    if name.is_empty() {
        return bad_parameters("the strategy of / can be set but not unset").into();
    }
    host.strategy_unset(name.as_ref());
    ControlResponse::ok(ControlParameters {
        name: Some(name.clone()),
        ..ControlParameters::default()
    })
}

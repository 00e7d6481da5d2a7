//! `log/set`, of our own namespace.

use super::super::host::Host;
use onym_wire::mgmt::{ControlParameters, ControlResponse};

pub(super) fn set(p: &ControlParameters, host: &mut dyn Host) -> ControlResponse {
    // Validated: it is there. The field is the only text that ControlParameters have.
    let filter = p.uri.clone().unwrap_or_default();
    match host.log_set(&filter) {
        Ok(()) => {
            ControlResponse::ok(ControlParameters { uri: Some(filter), ..Default::default() })
        }
        Err(why) => ControlResponse::new(400, why),
    }
}

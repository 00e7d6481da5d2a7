//! Prefix registration: one signed command for each prefix, again every few minutes, and again
//! after the node came back.

use crate::request::{RequestId, Unanswered};
use onym_tables::Tick;
use onym_wire::mgmt::{self, ControlParameters, ControlResponse};
use onym_wire::name::Name;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a route asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteOptions {
    /// Cost; lower is preferred.
    pub cost: u64,
    /// Longer names inherit the route (on by default).
    pub child_inherit: bool,
    /// The route hides those of shorter prefixes.
    pub capture: bool,
    /// Who asks, by the numbers of the protocol; without, the application. Routers announce what
    /// [`ORIGIN_CLIENT`](onym_wire::mgmt::ORIGIN_CLIENT) asks for.
    pub origin: Option<u64>,
}

impl Default for RouteOptions {
    fn default() -> Self {
        Self { cost: 0, child_inherit: true, capture: false, origin: None }
    }
}

/// Identifies a registration of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegistrationId(pub(crate) u64);

/// Why a prefix is not registered now. The endpoint tries again by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotRegistered {
    /// The node answered with a code of 400 or more.
    #[error("the node refused: {code} {text}")]
    Refused {
        /// The code.
        code: u64,
        /// The sentence.
        text: String,
    },
    /// The node did not answer the command.
    #[error("the command was not answered: {0}")]
    Unanswered(#[from] Unanswered),
    /// The answer is no ControlResponse.
    #[error("the node's answer cannot be parsed")]
    Malformed,
}

/// Registrations of one endpoint, at most.
pub const REGISTRATIONS_MAX: usize = 4096;
/// Commands that wait for their answer at the same time, at most.
const COMMANDS_MAX: usize = 16;
/// How long a command waits for its answer.
pub(crate) const COMMAND_LIFETIME: Duration = Duration::from_secs(4);
/// A registration is repeated this often, give or take a tenth, in case the node forgot it.
const REFRESH_MS: u64 = 300_000;
/// First and longest wait after a failure.
const RETRY_MIN: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(15);

#[derive(Debug)]
enum Phase {
    /// To be sent at this moment.
    Due(Tick),
    /// Sent, not answered yet.
    Sent(RequestId),
}

#[derive(Debug)]
struct Registration {
    prefix: Name,
    options: RouteOptions,
    phase: Phase,
    failures: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Registrations {
    list: BTreeMap<u64, Registration>,
    next: u64,
    sent: usize,
}

impl Registrations {
    /// `None` when there are too many.
    pub(crate) fn add(&mut self, prefix: Name, options: RouteOptions) -> Option<RegistrationId> {
        if self.list.len() >= REGISTRATIONS_MAX {
            return None;
        }
        let id = self.next;
        self.next += 1;
        let phase = Phase::Due(Tick(0));
        self.list.insert(id, Registration { prefix, options, phase, failures: 0 });
        Some(RegistrationId(id))
    }

    /// Forgets a registration; returns what takes it back, and the command that waits, if one does.
    pub(crate) fn remove(
        &mut self,
        id: RegistrationId,
    ) -> Option<(ControlParameters, Option<RequestId>)> {
        let gone = self.list.remove(&id.0)?;
        let waiting = match gone.phase {
            Phase::Sent(request) => Some(request),
            Phase::Due(_) => None,
        };
        self.sent -= usize::from(waiting.is_some());
        let (name, origin) = (Some(gone.prefix), gone.options.origin);
        Some((ControlParameters { name, origin, ..ControlParameters::default() }, waiting))
    }

    pub(crate) fn next_due(&self) -> Tick {
        if self.sent >= COMMANDS_MAX {
            return Tick::NEVER;
        }
        let due = self.list.values().filter_map(|r| match r.phase {
            Phase::Due(at) => Some(at),
            Phase::Sent(_) => None,
        });
        due.min().unwrap_or(Tick::NEVER)
    }

    /// A registration whose command is to be sent now, and its parameters.
    pub(crate) fn take_due(&self, now: Tick) -> Option<(u64, ControlParameters)> {
        if self.sent >= COMMANDS_MAX {
            return None;
        }
        let due = |r: &Registration| matches!(r.phase, Phase::Due(at) if at <= now);
        let (id, registration) = self.list.iter().find(|(_, r)| due(r))?;
        Some((*id, parameters(&registration.prefix, registration.options)))
    }

    pub(crate) fn mark_sent(&mut self, id: u64, request: RequestId) {
        if let Some(registration) = self.list.get_mut(&id) {
            registration.phase = Phase::Sent(request);
            self.sent += 1;
        }
    }

    /// The command could not even be sent; tried again soon.
    pub(crate) fn postpone(&mut self, id: u64, now: Tick) {
        if let Some(registration) = self.list.get_mut(&id) {
            registration.phase = Phase::Due(now + RETRY_MIN);
        }
    }

    /// The command of registration `id` ended. `jitter` is random.
    pub(crate) fn on_answer(
        &mut self,
        now: Tick,
        id: u64,
        answer: Result<ControlResponse, NotRegistered>,
        jitter: u64,
    ) -> Result<(), NotRegistered> {
        let Some(registration) = self.list.get_mut(&id) else { return Ok(()) };
        self.sent -= usize::from(matches!(registration.phase, Phase::Sent(_)));
        let result = match answer {
            Ok(response) if response.is_success() => Ok(()),
            Ok(ControlResponse { code, text, .. }) => Err(NotRegistered::Refused { code, text }),
            Err(why) => Err(why),
        };
        if result.is_ok() {
            registration.failures = 0;
            let spread = jitter % (REFRESH_MS / 5);
            registration.phase = Phase::Due(now.plus_ms(REFRESH_MS - REFRESH_MS / 10 + spread));
        } else {
            let wait = (RETRY_MIN * (1 << registration.failures.min(6))).min(RETRY_MAX);
            registration.failures += 1;
            registration.phase = Phase::Due(now + wait);
        }
        result
    }

    /// The node is back and knows nothing: all are due, at once.
    pub(crate) fn start_again(&mut self) {
        self.sent = 0;
        for registration in self.list.values_mut() {
            registration.phase = Phase::Due(Tick(0));
            registration.failures = 0;
        }
    }
}

fn parameters(prefix: &Name, options: RouteOptions) -> ControlParameters {
    let flag = |set: bool, bit| if set { bit } else { 0 };
    ControlParameters {
        name: Some(prefix.clone()),
        cost: Some(options.cost),
        origin: options.origin,
        flags: Some(
            flag(options.child_inherit, mgmt::ROUTE_CHILD_INHERIT)
                | flag(options.capture, mgmt::ROUTE_CAPTURE),
        ),
        ..ControlParameters::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok() -> Result<ControlResponse, NotRegistered> {
        Ok(ControlResponse::new(200, "OK"))
    }

    #[test]
    fn a_registration_is_repeated_after_about_five_minutes_and_after_a_failure_soon() {
        let mut list = Registrations::default();
        list.add("/a".parse().unwrap(), RouteOptions::default()).unwrap();
        let (id, _) = list.take_due(Tick(0)).unwrap();
        list.mark_sent(id, RequestId(0));
        assert_eq!((list.take_due(Tick(0)), list.next_due()), (None, Tick::NEVER));
        list.on_answer(Tick(0), id, Err(NotRegistered::Malformed), 0).unwrap_err();
        assert_eq!(list.next_due(), Tick::from_ms(250));
        list.mark_sent(id, RequestId(1));
        list.on_answer(Tick(0), id, Err(NotRegistered::Malformed), 0).unwrap_err();
        assert_eq!(list.next_due(), Tick::from_ms(500));
        list.mark_sent(id, RequestId(2));
        list.on_answer(Tick(0), id, ok(), 17).unwrap();
        assert_eq!(list.next_due(), Tick::from_ms(270_017));
        list.start_again();
        assert_eq!(list.next_due(), Tick(0));
    }

    #[test]
    fn few_commands_wait_for_answers_at_the_same_time() {
        let mut list = Registrations::default();
        for _ in 0..COMMANDS_MAX + 1 {
            list.add("/a".parse().unwrap(), RouteOptions::default()).unwrap();
        }
        for n in 0..COMMANDS_MAX {
            let (id, _) = list.take_due(Tick(0)).unwrap();
            list.mark_sent(id, RequestId(n as u64));
        }
        assert_eq!(list.take_due(Tick(0)), None);
        list.on_answer(Tick(0), 3, ok(), 0).unwrap();
        assert!(list.take_due(Tick(0)).is_some());
    }
}

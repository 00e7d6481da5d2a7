//! What the verbs do: parameters to a call of the host, its answer to a response.

mod cs;
pub(super) mod faces;
mod fib;
mod log;
pub(super) mod rib;
mod strategy;

use super::command::{Command, Refusal, Verb, bad_parameters};
use super::host::{Host, TableError, Ticket};
use onym_tables::FaceId;
use onym_wire::NAME_COMPONENTS_MAX;
use onym_wire::mgmt::{ControlParameters, ControlResponse};
use onym_wire::name::{Name, NameRef};

/// How a verb ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Done(Box<ControlResponse>),
    /// The host will say.
    Pending,
}

/// Carries out a validated command that `from` sent.
pub(super) fn run(
    command: &Command<'_>,
    from: FaceId,
    ticket: Ticket,
    host: &mut dyn Host,
) -> Outcome {
    let p = &command.parameters;
    if takes_management(command) {
        let text = "the routes of /localhost/nfd and /localhost/onym are reserved for the node";
        return Outcome::Done(Box::new(ControlResponse::new(403, text)));
    }
    let done = match command.verb {
        Verb::FacesCreate => return faces::create(p, ticket, host),
        Verb::FacesUpdate => faces::update(p, from, host),
        Verb::FacesDestroy => faces::destroy(p, host),
        Verb::FibAddNexthop => fib::add(p, from, host),
        Verb::FibRemoveNexthop => fib::remove(p, from, host),
        Verb::CsConfig => cs::config(p, host),
        Verb::CsErase => cs::erase(p, host),
        Verb::StrategySet => strategy::set(p, host),
        Verb::StrategyUnset => strategy::unset(p, host),
        Verb::LogSet => log::set(p, host),
        Verb::RibRegister => rib::register(p, from, host),
        Verb::RibUnregister => rib::unregister(p, from, host),
        Verb::RibAnnounce => rib::announce(command, from, host),
    };
    Outcome::Done(Box::new(done))
}

/// Whether a command would lead what is meant for management elsewhere, to an application that then
/// could answer in the node's name, or nowhere.
fn takes_management(command: &Command<'_>) -> bool {
    use Verb::{FibAddNexthop, FibRemoveNexthop, RibAnnounce, RibRegister};
    let changes =
        matches!(command.verb, FibAddNexthop | FibRemoveNexthop | RibAnnounce | RibRegister);
    let is_own = |name: NameRef<'_>| {
        name.get(0).is_some_and(|c| c.is_generic() && c.value == b"localhost")
            && name.get(1).is_some_and(|c| c.is_generic() && matches!(c.value, b"nfd" | b"onym"))
    };
    changes && command.subject().is_some_and(is_own)
}

/// The face that a FaceId means: its own for 0 and none. A number no face can have is the invalid
/// face, which does not exist.
fn face_of(face_id: Option<u64>, from: FaceId) -> FaceId {
    match face_id {
        None | Some(0) => from,
        Some(id) => u32::try_from(id).map_or(FaceId::INVALID, FaceId),
    }
}

/// The name of a command that must have one (validated), if a table can hold it.
fn name_of(p: &ControlParameters) -> Result<&Name, Refusal> {
    match &p.name {
        Some(name) if name.len() > NAME_COMPONENTS_MAX => Err(too_long()),
        Some(name) => Ok(name),
        None => Err(bad_parameters("Name is missing")),
    }
}

fn too_long() -> Refusal {
    Refusal::new(414, format!("the name has more than {NAME_COMPONENTS_MAX} components"))
}

fn table_error(error: &TableError) -> ControlResponse {
    let refusal = match error {
        TableError::FaceNotFound => Refusal::new(410, "Face not found"),
        TableError::NameTooLong => too_long(),
        TableError::Full => Refusal::new(507, "the table is full"),
        TableError::FaceFull => Refusal::new(
            507,
            "the face has used up its share of the table (tables.rib_routes_per_face_max)",
        ),
        TableError::UnknownStrategy => Refusal::new(404, "Strategy not registered"),
        TableError::StrategyRefused(why) => Refusal::new(409, why.as_str()),
    };
    refusal.into()
}

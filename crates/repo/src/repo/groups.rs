//! Commands of ndnd's repository: Interests under the name of the repository that carry a signed Data.

use super::{Asked, Error, GROUP, Repo, WAITING_MAX, parameters_of};
use crate::admission::{Act, NotAdmitted};
use crate::group::GROUPS_MAX;
use crate::ndnd::{self, Command, Join};
use onym_client::producer::{Answer, Incoming};
use onym_client::{Error as ClientError, Request, RouteOptions, Verify};
use onym_crypto::edge::unix_now_ms;
use onym_store::Change;
use onym_wire::NackReason;
use onym_wire::data::Data;
use onym_wire::name::{Name, NameRef};
use std::sync::{Arc, PoisonError};

/// Members of a group answer for themselves while they are there.
const COST: u64 = 1000;

impl Repo {
    /// Interests with such commands go to the loop.
    pub(super) fn listen_for_groups(&mut self) -> Result<(), Error> {
        let inbox = Arc::clone(&self.group_inbox);
        let respond = move |incoming: &Incoming, _: &mut Vec<u8>| {
            if incoming.interest().app_parameters.is_none() {
                return Answer::Nack(NackReason::NO_ROUTE);
            }
            let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
            // Beyond the bound it is asked again.
            if inbox.len() < WAITING_MAX {
                inbox.push_back(incoming.clone());
            }
            Answer::Nothing
        };
        let name = self.options.name.clone();
        self.client.respond(name, Box::new(respond)).map_err(ClientError::from)?;
        Ok(())
    }

    /// Groups that were joined before the start are joined again.
    pub(super) fn take_up_groups(&mut self) -> Result<(), Error> {
        for (_, note) in self.store.notes(GROUP)? {
            let Some((owner, command)) = split_note(&note) else { continue };
            if let Ok(Command::Join(join)) = ndnd::parse(command) {
                self.take_part(join, &owner)?;
            }
        }
        Ok(())
    }

    pub(super) fn take_group_commands(&mut self) -> Result<(), Error> {
        loop {
            let mut inbox = self.group_inbox.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(incoming) = inbox.pop_front() else { return Ok(()) };
            drop(inbox);
            self.group_command(incoming)?;
        }
    }

    pub(super) fn group_command(&mut self, incoming: Incoming) -> Result<(), Error> {
        let parameters = parameters_of(&incoming);
        let carrier = ndnd::carrier(&parameters).and_then(|wire| Data::parse(wire).ok());
        let Some(data) = carrier else { return Ok(()) };
        if Verify::Integrity.check(&data).is_err() {
            return Ok(());
        }
        let (status, why) = match ndnd::parse(data.content) {
            Ok(Command::Join(join)) => match self.may_join(&join.group, &data) {
                Ok(owner) => self.join(join, &owner, data.content)?,
                Err(NotAdmitted::Refused(why)) => (ndnd::REFUSED, why),
                Err(NotAdmitted::Unknown(wanted)) => return self.ask_for(wanted, incoming),
            },
            Ok(Command::Leave(group)) => match self.may_join(&group, &data) {
                Ok(_) => self.leave(group)?,
                Err(NotAdmitted::Refused(why)) => (ndnd::REFUSED, why),
                Err(NotAdmitted::Unknown(wanted)) => return self.ask_for(wanted, incoming),
            },
            Ok(Command::OtherProtocol) => {
                (ndnd::WRONG, "only /32=ndn/32=svs/v=3 is known here".to_owned())
            }
            Ok(_) => (ndnd::WRONG, "blobs are published in their group".to_owned()),
            Err(error) => (ndnd::WRONG, error.to_string()),
        };
        if status != ndnd::DONE {
            tracing::info!(%why, "repo-group-command-refused");
        }
        self.reply(&incoming, &ndnd::write_answer(status, &why), 0);
        Ok(())
    }

    fn may_join(&self, group: &Name, data: &Data<'_>) -> Result<Name, NotAdmitted> {
        let own = self.options.name.as_ref();
        if own.is_prefix_of(group.as_ref()) || group.as_ref().is_prefix_of(own) {
            return Err(format!("{group} is above or below the name of the repository").into());
        }
        self.options.admission.admit(Act::Insert, &[group.as_ref()], data, unix_now_ms())
    }

    /// Asks for the certificate that says whether a command counts.
    fn ask_for(&mut self, wanted: Name, incoming: Incoming) -> Result<(), Error> {
        let waiting = self.asked.values().filter(|a| matches!(a, Asked::Joiner { .. })).count();
        if waiting >= WAITING_MAX {
            return Ok(());
        }
        let request = Request {
            can_be_prefix: true,
            must_be_fresh: true,
            retries: 1,
            ..Request::new(wanted.clone())
        };
        let now = self.client.now();
        let id = self.client.endpoint().request(now, &request).map_err(ClientError::from)?;
        self.asked.insert(id, Asked::Joiner { wanted, incoming });
        Ok(())
    }

    fn join(&mut self, join: Join, owner: &Name, command: &[u8]) -> Result<(u64, String), Error> {
        let is_known = self.groups.contains(&join.group);
        if !is_known && self.groups.len() >= GROUPS_MAX {
            return Ok((ndnd::FAILED, format!("it takes part in {GROUPS_MAX} groups already")));
        }
        let key = [GROUP, join.group.value()].concat();
        let mut value = Vec::new();
        owner.as_ref().write_tlv(&mut value);
        value.extend_from_slice(command);
        let noted = self.store.apply(vec![Change::Note { key, value: Some(value) }])?;
        if let Some(why) = noted.into_iter().find_map(Result::err) {
            return Ok((ndnd::FAILED, why.to_string()));
        }
        Ok(match self.take_part(join, owner)? {
            true => (ndnd::DONE, String::new()),
            false => (ndnd::FAILED, "too many groups are being joined; ask again".to_owned()),
        })
    }

    /// Whether the thread of the groups took it.
    fn take_part(&mut self, join: Join, owner: &Name) -> Result<bool, Error> {
        let owner = self.store.owner(owner.as_ref())?;
        let group = join.group.clone();
        if !self.parts.join(join, owner) {
            return Ok(false);
        }
        if self.groups.contains(&group) {
            return Ok(true);
        }
        let answers = self.answers();
        if !self.roots.contains(&group) {
            self.client.respond(group.clone(), Box::new(answers)).map_err(ClientError::from)?;
            let route = RouteOptions { cost: COST, ..RouteOptions::default() };
            let route = self.client.endpoint().register(group.clone(), route);
            route.map_err(ClientError::from)?;
            self.roots.push(group.clone());
        }
        self.groups.push(group);
        Ok(true)
    }

    /// What was kept stays, and is served.
    fn leave(&mut self, group: Name) -> Result<(u64, String), Error> {
        if !self.groups.contains(&group) {
            return Ok((ndnd::FAILED, "it does not take part in this group".to_owned()));
        }
        if !self.parts.leave(group.clone()) {
            return Ok((ndnd::FAILED, "too many groups are being joined; ask again".to_owned()));
        }
        let key = [GROUP, group.value()].concat();
        self.store.apply(vec![Change::Note { key, value: None }])?;
        self.groups.retain(|known| *known != group);
        Ok((ndnd::DONE, String::new()))
    }
}

/// A note of a group: whose it is, and the command that joined it.
fn split_note(note: &[u8]) -> Option<(Name, &[u8])> {
    let (element, rest) = onym_wire::tlv::Element::split(note).ok()?;
    Some((NameRef::parse(element.wire).ok()?.to_name(), rest))
}

//! What comes from elsewhere: whose messages are obeyed, and a node at the border of its domain, to
//! which others send.

use super::ControlPlane;
use crate::dispatcher::Came;
use crate::publication::Target;
use onym_tables::Tick;
use onym_wire::push::{Control, Frame, Id, Kind, Role, Route, reserved};

/// Messages between domains that are for topology managers.
const BETWEEN: [Kind; 4] =
    [Kind::DOMAIN_ROUTES, Kind::DOMAIN_FACTS, Kind::DOMAIN_REPAIR, Kind::DOMAIN_HEARD];

impl ControlPlane {
    /// Whether a control message is signed by somebody whose control messages are obeyed. Others are
    /// counted.
    pub(super) fn may_control(&mut self, frame: &Frame<'_>) -> bool {
        let control = self.config.control.as_ref();
        let is_good = control.is_none_or(|trusted| trusted.check(frame).is_ok());
        self.dropped.signature += u64::from(!is_good);
        is_good
    }

    /// A frame that another domain has for this node: data that a filter of this domain brought
    /// here, or a message between domains, which goes to the topology managers.
    pub(super) fn deliver_abroad(&mut self, now: Tick, came: Came, frame: &Frame<'_>, id: &Id) {
        let is_reserved = id.first().is_some_and(reserved::is_reserved);
        if !is_reserved && matches!(frame.route, Route::Domains { .. }) {
            return self.deliver_data(now, frame, came);
        }
        let Some(domain) = self.link_state.exit(came.face).filter(|_| self.is_between(frame, id))
        else {
            self.dropped.misdirected += 1;
            return;
        };
        let is_fit = |key: &crate::DomainKey| key.fits(frame.payload);
        if !self.config.federation_key.as_ref().is_none_or(is_fit) {
            self.dropped.mac += 1;
            return;
        }
        if !self.may_control(frame) {
            return;
        }
        let Ok(message) = Control::parse(frame.payload) else {
            self.dropped.malformed += 1;
            return;
        };
        let is_hello = message.kind == Kind::HELLO && message.sender == domain;
        if !is_hello && !BETWEEN.contains(&message.kind) {
            self.dropped.misdirected += 1;
            return;
        }
        self.taken[usize::from(message.kind.0)] += 1;
        self.link_state.exit_heard(now, came.face, &message, &mut self.outbox);
        if is_hello {
            return;
        }
        let node = self.config.node;
        let passed = Control {
            nodes: vec![domain],
            body: message.octets(),
            ..Control::new(Kind::DOMAIN_IN, node)
        };
        let managers = self.dispatcher.homes().iter().filter(|h| h.role.has(Role::TOPOLOGY));
        for home in managers {
            let is_here = home.node == node;
            let target = if is_here { Target::Here } else { Target::Route(home.route.clone()) };
            self.outbox.control(target, reserved::TOPOLOGY, node, passed.clone());
        }
    }

    fn is_between(&self, frame: &Frame<'_>, id: &Id) -> bool {
        let is_link = matches!(frame.route, Route::Link);
        is_link && id.first() == Some(reserved::DOMAINS) && self.config.domain.is_some()
    }

    /// What a topology manager tells a border node: a message for another domain, or filters.
    pub(crate) fn border(&mut self, message: &Control) {
        let sender = message.sender;
        let is_manager = |h: &onym_wire::push::Home| h.node == sender && h.role.has(Role::TOPOLOGY);
        if !self.dispatcher.homes().iter().any(is_manager) {
            self.dropped.misdirected += 1;
            return;
        }
        if message.kind == Kind::DOMAIN_OUT {
            let number = message.item.and_then(|number| u32::try_from(number).ok());
            let face = number.and_then(|number| self.link_state.face_of_exit(number));
            match (face, self.config.domain, Control::parse(&message.body)) {
                (Some(face), Some(domain), Ok(inner)) => {
                    let target = Target::Face(face);
                    let root = reserved::DOMAINS;
                    self.outbox.control(target, root, domain, inner);
                }
                _ => self.dropped.misdirected += 1,
            }
            return;
        }
        let filter = message.route.as_ref().and_then(|route| match route.as_ref() {
            Route::Flat { table: 0, filter } => Some(filter),
            _ => None,
        });
        let border = &mut self.forwarder.border;
        let is_changed = if let Some(tag) = message.item {
            let delivery = message.epoch.unwrap_or(border.delivery);
            let known = border.exits.iter().find(|exit| exit.tag == tag).map(|exit| exit.filter);
            let is_changed = known != filter || border.delivery != delivery;
            border.delivery = delivery;
            border.exit_set(tag, filter);
            is_changed
        } else {
            let mut is_changed = false;
            for id in &message.ids {
                is_changed |= border.receivers(id).copied() != filter;
                border.receivers_set(id.clone(), filter);
            }
            is_changed
        };
        self.is_forwarder_changed |= is_changed;
    }
}

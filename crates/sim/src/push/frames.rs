//! What frames on a link are, to count and to lose them.

use onym_wire::push::{Bundle, Control, Frame, Kind, Label, reserved};

/// Control messages in a frame, at least one.
pub(super) fn messages(octets: &[u8]) -> u64 {
    let Ok(frame) = Frame::parse(octets) else { return 1 };
    if is_control(octets) { Bundle::messages(frame.payload).count().max(1) as u64 } else { 1 }
}

/// Whether a frame is one between parts of nodes.
#[must_use]
pub fn is_control(octets: &[u8]) -> bool {
    let frame = Frame::parse(octets).ok();
    if frame.is_some_and(|f| f.options.reached.is_some()) {
        return true;
    }
    let first = frame.and_then(|mut f| f.ids.next());
    first.and_then(|id| id.first().copied()).is_some_and(|l| reserved::is_reserved(Label(l)))
}

/// Whether a frame has hellos alone: of nodes, or of domains.
#[must_use]
pub fn is_hello(octets: &[u8]) -> bool {
    let Some(frame) = Frame::parse(octets).ok().filter(|_| is_control(octets)) else {
        return false;
    };
    let is_hello = |message: &[u8]| Control::parse(message).is_ok_and(|m| m.kind == Kind::HELLO);
    Bundle::messages(frame.payload).all(|message| message.is_ok_and(is_hello))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_wire::push::{FrameBuilder, Route, RouteBuf, Strategy};

    #[test]
    fn a_frame_with_hellos_alone_is_told_from_others() {
        let node = Label::from_u64(7);
        let frame = |root, kind| {
            let mut octets = Vec::new();
            let frame = FrameBuilder {
                hop_limit: 1,
                strategy: Strategy::LINK_LOCAL,
                route: &RouteBuf::from(Route::Link),
                ids: &[reserved::of(root, node)],
                options: &[],
                payload: &Control::new(kind, node).octets(),
            };
            frame.write(&mut octets);
            octets
        };
        assert!(is_hello(&frame(reserved::HELLO, Kind::HELLO)));
        assert!(is_hello(&frame(reserved::DOMAINS, Kind::HELLO)));
        assert!(!is_hello(&frame(reserved::LINK_STATE, Kind::LINK_STATE)));
        assert!(!is_hello(b"no frame"));
    }
}

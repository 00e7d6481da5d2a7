//! Frames of the push half and messages of its applications.

use super::Octets;
use crate::push::app::Message;
use crate::push::{Flags, Frame, Id, Route};
use crate::types::PacketType;
use std::fmt;

/// Shows a frame or a message on one line; the octets begin like one of them.
pub(super) fn fmt_line(f: &mut fmt::Formatter<'_>, octets: &[u8]) -> fmt::Result {
    if PacketType::of(octets) == Some(PacketType::PushApp) {
        return match Message::parse(octets) {
            Ok(message) => fmt_message(f, &message),
            Err(error) => write!(f, "malformed PushApp ({error}): {}", Octets(octets)),
        };
    }
    match Frame::parse(octets) {
        Ok(frame) => fmt_frame(f, &frame, Flags::of(octets)),
        Err(error) => write!(f, "malformed Push ({error}): {}", Octets(octets)),
    }
}

fn fmt_frame(f: &mut fmt::Formatter<'_>, frame: &Frame<'_>, flags: Flags) -> fmt::Result {
    f.write_str("Push")?;
    for labels in frame.ids {
        write!(f, " {}", Id::from_labels(labels))?;
    }
    write!(f, " strategy={} hops={}", frame.strategy, frame.hop_limit)?;
    fmt_route(f, &frame.route)?;
    if let Some(origin) = frame.options.origin {
        write!(f, " origin={origin}")?;
    }
    if let Some((stream, number)) = frame.options.number {
        write!(f, " stream={stream:x} number={number}")?;
    }
    if let Some((stream, number)) = frame.options.reached {
        write!(f, " stream={stream:x} reached={number}")?;
    }
    if let Some(lifetime) = frame.options.lifetime_ms {
        write!(f, " lifetime={lifetime}ms")?;
    }
    f.write_str(if frame.options.signature.is_some() { " signed" } else { "" })?;
    f.write_str(if flags.may_keep() { " keep" } else { "" })?;
    if flags.is_cached() {
        write!(f, " from-cache age={}/64", flags.age())?;
    }
    write!(f, " payload={} octets", frame.payload.len())
}

fn fmt_route(f: &mut fmt::Formatter<'_>, route: &Route<'_>) -> fmt::Result {
    match route {
        Route::Link => f.write_str(" to=neighbour"),
        Route::Flat { table, filter } => {
            write!(f, " to=flat table={table} bits={}", filter.ones())
        }
        Route::Keyed { table, epoch, flow, filter } => {
            write!(f, " to=keyed table={table} epoch={epoch} flow={flow:x} bits={}", filter.ones())
        }
        Route::Stages(stages) => {
            write!(f, " to=stages stage={}/{}", stages.index(), stages.count())
        }
        Route::Domains { stages, table, filter } => write!(
            f,
            " to=domains domain={}/{} table={table} bits={}",
            stages.index(),
            stages.count(),
            filter.ones()
        ),
    }
}

fn fmt_message(f: &mut fmt::Formatter<'_>, message: &Message<'_>) -> fmt::Result {
    write!(f, "PushApp kind={} tag={}", message.kind.0, message.tag)?;
    if !message.prefix.is_empty() {
        write!(f, " prefix={}", message.prefix())?;
    }
    if !message.id.is_empty() {
        write!(f, " id={}", message.id())?;
    }
    if let Some(status) = message.status {
        write!(f, " status={status}")?;
    }
    if !message.payload.is_empty() {
        write!(f, " payload={} octets", message.payload.len())?;
    }
    Ok(())
}

//! The far end of a face: joins fragments, acknowledges, and checks what every frame must keep to.

use crate::script::FaceSpec;
use crate::wire::build::wrap;
use crate::wire::types::ACK;
use crate::wire::view::Seen;
use std::collections::HashMap;

/// The far end of one face.
#[derive(Debug)]
pub struct Peer {
    spec: FaceSpec,
    /// Fragments by message, each with its index.
    partial: HashMap<u64, Vec<(u64, Seen)>>,
}

/// What a frame came to.
#[derive(Debug)]
pub enum Heard {
    /// Something for the script.
    Packet(Box<Seen>),
    /// A fragment, or a link matter that the script does not see.
    Nothing,
}

impl Peer {
    /// The far end of a face as the script describes it.
    #[must_use]
    pub fn new(spec: &FaceSpec) -> Self {
        Self { spec: spec.clone(), partial: HashMap::new() }
    }

    /// Takes a frame in; gives what the script sees and a frame to send back.
    ///
    /// # Errors
    /// The frame breaks a rule that every frame must keep to.
    pub fn hear(&mut self, frame: Vec<u8>) -> Result<(Heard, Option<Vec<u8>>), String> {
        if frame.len() > self.spec.mtu {
            return Err(format!(
                "a frame of {} octets on a face with an MTU of {}",
                frame.len(),
                self.spec.mtu
            ));
        }
        let seen = Seen::read(frame)?;
        if self.spec.see_frames {
            return Ok((Heard::Packet(Box::new(seen)), None));
        }
        let ack = seen.lp.tx.filter(|_| self.spec.reliability);
        let reply = ack.map(|tx| wrap(vec![(ACK, tx.to_be_bytes().to_vec())], None));
        if seen.net.is_none() {
            return Ok((Heard::Nothing, reply));
        }
        let heard = match seen.lp.frag {
            Some((index, count)) if count > 1 => self.join(seen, index, count)?,
            _ => Heard::Packet(Box::new(seen)),
        };
        Ok((heard, reply))
    }

    fn join(&mut self, seen: Seen, index: u64, count: u64) -> Result<Heard, String> {
        let seq = seen.lp.seq.ok_or("a fragment without Sequence")?;
        let message = seq.wrapping_sub(index);
        let parts = self.partial.entry(message).or_default();
        if parts.iter().all(|(i, _)| *i != index) {
            parts.push((index, seen));
        }
        if (parts.len() as u64) < count {
            return Ok(Heard::Nothing);
        }
        let mut parts = self.partial.remove(&message).unwrap_or_default();
        parts.sort_by_key(|(i, _)| *i);
        let net: Vec<u8> = parts.iter().filter_map(|(_, s)| s.net.clone()).flatten().collect();
        let (_, mut first) = parts.swap_remove(0);
        first.net = Some(net);
        first.lp.frag = None;
        Ok(Heard::Packet(Box::new(first)))
    }
}

//! The management face: packets from the shards to the protocol, and its answers back.

use super::Control;
use crate::config::Config;
use crate::mgmt::{Management, Options, Output};
use crate::shard::Order;
use onym_frame::Buf;
use onym_link::{LpIn, Packet};
use onym_tables::{FaceId, Tick};
use onym_wire::NackReason;
use onym_wire::types::PacketType;

impl Control {
    /// A packet that the forwarder delivered to management.
    pub(super) fn manage(&mut self, bytes: &Buf, incoming: FaceId) {
        let now = self.clock.now();
        self.with_management(|management, control| {
            if PacketType::of(bytes) == Some(PacketType::Data) {
                management.data(bytes, now, control);
            } else {
                management.interest(bytes, incoming, now, control);
            }
        });
        self.manage_outputs();
    }

    /// Runs `work` with management and its host, which is the rest of the control thread.
    fn with_management(&mut self, work: impl FnOnce(&mut Management, &mut Self)) {
        let Some(mut management) = self.management.take() else { return };
        work(&mut management, self);
        self.management = Some(management);
        // What happened to faces meanwhile could not be told to it.
        for (event, view) in std::mem::take(&mut self.untold) {
            self.tell_event(event, &view);
        }
    }

    pub(super) fn manage_timers(&mut self, now: Tick) {
        let due = self.management.as_ref().and_then(Management::poll_timeout);
        if due.is_some_and(|at| at <= now)
            && let Some(management) = &mut self.management
        {
            management.handle_timeout(now);
        }
    }

    /// Sends what management wants sent, by shard 0, which passes it to where it belongs.
    pub(super) fn manage_outputs(&mut self) {
        let Some(management) = &mut self.management else { return };
        let mut packets = Vec::new();
        while let Some(output) = management.poll_output() {
            let mut lp = LpIn::default();
            let wire = match output {
                Output::Data { wire, no_cache } => {
                    lp.no_cache = no_cache;
                    wire
                }
                Output::Interest { wire, next_hop } => {
                    lp.next_hop_face = next_hop.told();
                    wire
                }
                Output::NoRoute { interest } => {
                    lp.nack = Some(NackReason::NO_ROUTE);
                    interest
                }
            };
            packets.push(Packet { face: FaceId::INTERNAL, bytes: Buf::copy_from(&wire), lp });
        }
        if !packets.is_empty() {
            self.ports[0].tell(Order::Inject(packets));
        }
    }

    /// The rules of the configuration, which may name files.
    pub(super) fn management_options(&self, config: &Config) -> Result<Options, String> {
        let origin = self.origin.display().to_string();
        let base = self.origin.parent().unwrap_or(std::path::Path::new("."));
        Options::from_config(config, &origin, base).map_err(|e| e.to_string())
    }

    /// Gives management new rules.
    pub(super) fn manage_reload(&mut self, options: Options) {
        self.policy = options.policy.clone();
        if let Some(management) = &mut self.management {
            management.reconfigure(options);
        }
    }
}

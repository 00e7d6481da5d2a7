//! Faces around faces: faults on purpose, capture, trace.

pub mod fault;
mod impairment;
mod lane;
pub mod pcap;
pub mod trace;

pub use fault::{FaultFace, Faults, Impairment};
pub use pcap::{Capture, PcapFace};
pub use trace::TraceFace;

/// What a wrapper passes on unchanged.
macro_rules! delegate {
    ($inner:ident) => {
        fn local_uri(&self) -> &$crate::FaceUri {
            self.$inner.local_uri()
        }
        fn remote_uri(&self) -> &$crate::FaceUri {
            self.$inner.remote_uri()
        }
        fn mtu(&self) -> usize {
            self.$inner.mtu()
        }
        fn transport(&self) -> $crate::Transport {
            self.$inner.transport()
        }
        fn link(&self) -> onym_wire::mgmt::LinkType {
            self.$inner.link()
        }
        fn scope(&self) -> onym_wire::mgmt::Scope {
            self.$inner.scope()
        }
        fn credentials(&self) -> Option<onym_sys::peer::Credentials> {
            self.$inner.credentials()
        }
        fn is_connecting(&self) -> bool {
            self.$inner.is_connecting()
        }
        fn send_whole(&mut self, whole: bool) -> Option<usize> {
            self.$inner.send_whole(whole)
        }
        fn room_is_writable(&self) -> bool {
            self.$inner.room_is_writable()
        }
    };
}
use delegate;

#[cfg(test)]
mod tests;

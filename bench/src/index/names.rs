//! Names and packets of the workload.

use anyhow::Result;
use onym_frame::Buf;
use onym_wire::data::DataBuilder;
use onym_wire::interest::InterestBuilder;
use onym_wire::name::Name;
use onym_wire::signature::SignatureInfo;

/// Components of a route.
const ROUTE_COMPONENTS: usize = 3;

/// Names of one length, with packets of one size.
#[derive(Debug)]
pub(super) struct Names {
    components: usize,
    payload: Vec<u8>,
}

impl Names {
    /// Names of `components` components (at least four), Data of `payload` octets.
    pub(super) fn new(components: usize, payload: usize) -> Self {
        Self { components: components.max(ROUTE_COMPONENTS + 1), payload: vec![0x5a; payload] }
    }

    /// The `n`-th name. Names differ in their last component and, by the thousand, in the one
    /// before, as segments of files do: comparisons walk nearly all of a name.
    pub(super) fn name(&self, n: u32) -> Name {
        let mut name = Name::new();
        name.append_generic("wustl.edu").append_generic("server");
        for level in 0..self.components - 4 {
            name.append_generic(format!("level{level:02}"));
        }
        name.append_generic(format!("file{:05}", n / 1000));
        name.append_segment(u64::from(n % 1000));
        name
    }

    /// The `n`-th route.
    pub(super) fn route(n: u32) -> Name {
        let mut name = Name::new();
        name.append_generic(format!("org{:03}", n % 997));
        name.append_generic(format!("site{:05}", n / 997)).append_generic("www");
        name
    }

    /// A name under the `n`-th route.
    pub(super) fn under_route(&self, n: u32) -> Name {
        let mut name = Self::route(n);
        for level in 0..self.components - ROUTE_COMPONENTS - 1 {
            name.append_generic(format!("level{level:02}"));
        }
        name.append_segment(u64::from(n));
        name
    }

    /// The Interest for the `n`-th name.
    pub(super) fn interest(&self, n: u32) -> Buf {
        let (mut out, name) = (Vec::new(), self.name(n));
        let nonce = Some(n.wrapping_mul(0x9e37_79b9).to_be_bytes());
        InterestBuilder { nonce, ..InterestBuilder::new(name.as_ref()) }.write(&mut out);
        Buf::copy_from(&out)
    }

    /// The Data of the `n`-th name.
    ///
    /// # Errors
    /// When it is larger than a packet may be.
    pub(super) fn data(&self, n: u32) -> Result<Buf> {
        let (mut out, name) = (Vec::new(), self.name(n));
        let builder = DataBuilder::new(name.as_ref(), &self.payload);
        builder
            .write(&mut out, &SignatureInfo::default(), |_| Ok::<_, std::fmt::Error>([0; 32]))?;
        Ok(Buf::copy_from(&out))
    }
}

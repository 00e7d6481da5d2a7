//! The context of a trace: which Interests of several nodes belong together (spec/registry.md).

/// The trace and the span of who sends an Interest that is recorded on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// Number of the trace, not 0.
    pub trace: u128,
    /// Number of the span of who sends the Interest, not 0.
    pub span: u64,
}

/// The one form.
const FORM: u8 = 0;
/// The bit of the flags that says that the Interest is recorded.
const IS_SAMPLED: u8 = 1;

impl TraceContext {
    /// Octets of a context.
    pub const LEN: usize = 26;

    /// Reads the VALUE of the field. `None` where it is to be ignored: another form or length, a
    /// number that is 0, or an Interest that is not recorded.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let value: &[u8; Self::LEN] = value.try_into().ok()?;
        let [FORM, ids @ .., flags] = value else { return None };
        let (trace, span) = ids.split_first_chunk()?;
        let trace = u128::from_be_bytes(*trace);
        let span = u64::from_be_bytes(span.try_into().ok()?);
        (flags & IS_SAMPLED != 0 && trace != 0 && span != 0).then_some(Self { trace, span })
    }

    /// The VALUE of the field.
    #[must_use]
    pub fn to_octets(self) -> [u8; Self::LEN] {
        let mut octets = [FORM; Self::LEN];
        octets[1..17].copy_from_slice(&self.trace.to_be_bytes());
        octets[17..25].copy_from_slice(&self.span.to_be_bytes());
        octets[25] = IS_SAMPLED;
        octets
    }
}

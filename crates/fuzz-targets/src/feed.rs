//! Choices out of the octets of an input.

/// Takes choices from the front of an input; when it is over, every choice is 0.
#[derive(Debug, Clone, Copy)]
pub struct Feed<'a> {
    rest: &'a [u8],
}

impl<'a> Feed<'a> {
    /// All of `input`.
    #[must_use]
    pub const fn new(input: &'a [u8]) -> Self {
        Self { rest: input }
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// One octet.
    pub fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    /// A number of two octets.
    pub fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.octet(), self.octet()])
    }

    /// A number below `bound`, which is at most 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.octet()) % bound.max(1)
    }

    /// At most `len` octets.
    pub fn octets(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Everything that is left.
    pub fn all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}

//! Which packets are looked at as samples.

use onym_tables::Rng;

/// Chooses one packet of so many, after gaps of random length: traffic with a period is sampled as any
/// other, and until the next one a packet costs a comparison of two numbers.
#[derive(Debug, Clone)]
pub(crate) struct Sampler {
    rng: Rng,
    /// One of so many; 0: none.
    pub(crate) each: u64,
    /// The number of the next one.
    next: u64,
    /// It was drawn as one of so many.
    drawn: u64,
}

impl Sampler {
    /// One that begins after the packet with the number `came`.
    pub(crate) fn new(seed: u64, each: u64, came: u64) -> Self {
        let mut sampler = Self { rng: Rng::new(seed), each, next: u64::MAX, drawn: each };
        sampler.draw(came);
        sampler
    }

    /// The number of the next packet that is chosen.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// For how many packets the one with the number `came` stands; 0 when it is not chosen.
    pub(crate) fn takes(&mut self, came: u64) -> u64 {
        if came < self.next {
            return 0;
        }
        let stands_for = self.drawn;
        self.draw(came);
        stands_for
    }

    fn draw(&mut self, came: u64) {
        self.drawn = self.each;
        self.next = match self.each {
            0 => u64::MAX,
            each => came + 1 + self.rng.below(2 * each - 1),
        };
    }
}

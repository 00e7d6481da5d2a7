//! Durations in classes of powers of two: percentiles without keeping samples.

const CLASSES: usize = 40;

/// Durations in microseconds.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    classes: [u64; CLASSES],
}

impl Default for Histogram {
    fn default() -> Self {
        Self { classes: [0; CLASSES] }
    }
}

impl Histogram {
    pub(crate) fn add(&mut self, us: u64) {
        let class = 64 - us.leading_zeros() as usize;
        self.classes[class.min(CLASSES - 1)] += 1;
    }

    pub(crate) fn count(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// The upper end of the class in which the `part` of 100 lies, in microseconds.
    pub(crate) fn percentile(&self, part: u64) -> Option<u64> {
        let wanted = (self.count() * part).div_ceil(100);
        let mut seen = 0;
        let found = self.classes.iter().position(|n| {
            seen += n;
            seen >= wanted && seen > 0
        });
        found.map(|class| 1 << class)
    }

    /// Adds the durations of another thread.
    pub(crate) fn add_all(&mut self, other: &Self) {
        for (sum, n) in self.classes.iter_mut().zip(other.classes) {
            *sum += n;
        }
    }
}

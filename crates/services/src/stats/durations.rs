//! Durations as percentiles.

use crate::histogram::Histogram;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// Durations, shown as percentiles: `{"p50", "p99", "count"}`.
#[derive(Debug, Clone)]
pub struct Durations {
    classes: Histogram,
    unit_us: f64,
}

impl Durations {
    pub(crate) fn in_us(classes: &Histogram) -> Self {
        Self { classes: classes.clone(), unit_us: 1.0 }
    }

    pub(crate) fn in_ms(classes: &Histogram) -> Self {
        Self { classes: classes.clone(), unit_us: 1000.0 }
    }

    /// Adds those of another thread.
    pub(super) fn add(&mut self, other: &Self) {
        self.classes.add_all(&other.classes);
    }
}

impl Serialize for Durations {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[allow(clippy::cast_precision_loss)]
        let part = |p| self.classes.percentile(p).map(|us| us as f64 / self.unit_us);
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("p50", &part(50))?;
        map.serialize_entry("p99", &part(99))?;
        map.serialize_entry("count", &self.classes.count())?;
        map.end()
    }
}

//! Congestion windows: how many segments may be in flight.
//!
//! A window is told of events and returns a size; the pipeline that owns it decides when to react
//! (once per round trip). The laws are those of ndncatchunks.

mod aimd;
mod cubic;

pub use aimd::AimdOptions;
pub use cubic::CubicOptions;

use aimd::Aimd;
use cubic::Cubic;
use onym_tables::id::Tick;
use std::time::Duration;

/// Which law governs the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WindowLaw {
    /// Always this many segments in flight; the timeout is the Interest lifetime.
    Fixed(u32),
    /// Additive increase, multiplicative decrease.
    Aimd(AimdOptions),
    /// CUBIC.
    Cubic(CubicOptions),
}

impl Default for WindowLaw {
    fn default() -> Self {
        Self::Cubic(CubicOptions::default())
    }
}

/// Options that AIMD and CUBIC share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowOptions {
    /// Window at the start, in segments.
    pub initial: f64,
    /// Slow-start threshold at the start, in segments.
    pub threshold: f64,
    /// A cut returns to the initial window instead of the threshold.
    pub reset_to_initial: bool,
}

impl Default for WindowOptions {
    fn default() -> Self {
        Self { initial: 2.0, threshold: f64::INFINITY, reset_to_initial: false }
    }
}

/// A congestion window.
#[derive(Debug, Clone)]
pub struct Window(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Fixed(u32),
    Aimd(Aimd),
    Cubic(Cubic),
}

impl Window {
    /// A window at its initial size.
    #[must_use]
    pub fn new(law: WindowLaw) -> Self {
        Self(match law {
            WindowLaw::Fixed(size) => Kind::Fixed(size.max(1)),
            WindowLaw::Aimd(options) => Kind::Aimd(Aimd::new(options)),
            WindowLaw::Cubic(options) => Kind::Cubic(Cubic::new(options)),
        })
    }

    /// A segment arrived unmarked at `now`; `rtt` is the smoothed round trip.
    pub fn on_data(&mut self, now: Tick, rtt: Duration) {
        match &mut self.0 {
            Kind::Fixed(_) => {}
            Kind::Aimd(window) => window.on_data(),
            Kind::Cubic(window) => window.on_data(now, rtt),
        }
    }

    /// Congestion showed at `now`: a loss, a mark or a Nack.
    pub fn cut(&mut self, now: Tick) {
        match &mut self.0 {
            Kind::Fixed(_) => {}
            Kind::Aimd(window) => window.cut(),
            Kind::Cubic(window) => window.cut(now),
        }
    }

    /// Ends slow start at the present size, because the round trip says that a queue is building.
    pub fn leave_slow_start(&mut self, now: Tick) {
        match &mut self.0 {
            Kind::Fixed(_) => {}
            Kind::Aimd(window) => window.leave_slow_start(),
            Kind::Cubic(window) => window.leave_slow_start(now),
        }
    }

    /// Whether the window is still below its threshold and grows by one a segment.
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        match &self.0 {
            Kind::Fixed(_) => false,
            Kind::Aimd(window) => window.in_slow_start(),
            Kind::Cubic(window) => window.in_slow_start(),
        }
    }

    /// Segments that may be in flight.
    #[must_use]
    pub fn size(&self) -> f64 {
        match &self.0 {
            Kind::Fixed(size) => f64::from(*size),
            Kind::Aimd(window) => window.size(),
            Kind::Cubic(window) => window.size(),
        }
    }

    /// Whether the law is the fixed window, whose timeout is the Interest lifetime.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        matches!(self.0, Kind::Fixed(_))
    }
}

//! The metrics of every program: their names, and the page that Prometheus reads.
//!
//! A program takes a snapshot of its counters, implements [`Source`] for it and calls [`page`].

pub mod catalogue;
mod reference;

pub use reference::reference;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel as _, EncodeLabelSet, LabelSetEncoder, MetricEncoder,
    NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

/// The media type of [`page`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What a metric does over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows; its name ends in `_total`.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It is always 1 and has its text in labels; its name ends in `_info`.
    Info,
}

/// What a metric is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// What the name says is counted.
    Count,
    /// Octets; the name says `_bytes`.
    Bytes,
    /// Seconds; the name says `_seconds`.
    Seconds,
    /// A share between 0 and 1; the name says `_ratio`.
    Ratio,
    /// Processor cores; the name says `_cores`.
    Cores,
}

/// Which programs have a metric on their page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// `onym daemon`.
    Node,
    /// `onym service`.
    Service,
    /// `onym manager`.
    Manager,
    /// The router in `onym daemon`, on the node's page.
    Router,
}

/// One metric with `N` labels.
#[derive(Debug, Clone, Copy)]
pub struct Metric<const N: usize> {
    name: &'static str,
    kind: Kind,
    unit: Unit,
    labels: &'static [&'static str; N],
    programs: &'static [Program],
    help: &'static str,
}

/// A metric without its samples: a row of docs/metrics.md.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// The name of its samples.
    pub name: &'static str,
    /// What it does over time.
    pub kind: Kind,
    /// What it is measured in.
    pub unit: Unit,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// The programs that have it.
    pub programs: &'static [Program],
    /// Its meaning.
    pub help: &'static str,
}

impl<const N: usize> Metric<N> {
    /// Everything that is known of it.
    #[must_use]
    pub const fn about(&self) -> About {
        let Self { name, kind, unit, labels, programs, help } = *self;
        About { name, kind, unit, labels, programs, help }
    }
}

/// The value of a label.
#[derive(Debug, Clone, Copy)]
pub enum Label<'a> {
    /// A word.
    Text(&'a str),
    /// A number, such as a `FaceId`.
    Number(u64),
}

impl<'a> From<&'a str> for Label<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Label<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

/// The value of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A count.
    Whole(u64),
    /// A measure.
    Real(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Whole(value.into())
    }
}

/// The counters of a program at one moment.
pub trait Source: fmt::Debug + Send + Sync + 'static {
    /// About how many octets its page has.
    fn size_hint(&self) -> usize {
        16 * 1024
    }

    /// Writes every metric with its samples, each metric once.
    ///
    /// # Errors
    /// That of the writer.
    fn write(&self, page: &mut Page<'_>) -> fmt::Result;
}

/// The page of `source`, in the text format of OpenMetrics 1.0.
///
/// # Errors
/// That of [`Source::write`].
pub fn page<S: Source>(source: S) -> Result<String, fmt::Error> {
    let mut out = String::with_capacity(source.size_hint());
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Adapter(source)));
    text::encode(&mut out, &registry)?;
    Ok(out)
}

#[derive(Debug)]
struct Adapter<S>(S);

impl<S: Source> Collector for Adapter<S> {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.write(&mut Page { encoder })
    }
}

/// A page that is being written.
#[derive(Debug)]
pub struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Page<'_> {
    /// Begins the samples of `metric`.
    ///
    /// # Errors
    /// That of the writer.
    pub fn family<const N: usize>(
        &mut self,
        metric: &Metric<N>,
    ) -> Result<Family<'_, N>, fmt::Error> {
        use prometheus_client::registry::Unit as Suffix;
        let (kind, suffix) = match metric.kind {
            Kind::Counter => (MetricType::Counter, "_total"),
            Kind::Gauge => (MetricType::Gauge, ""),
            Kind::Info => (MetricType::Info, "_info"),
        };
        let (suffix_of_unit, unit) = match metric.unit {
            Unit::Bytes => ("_bytes", Some(&Suffix::Bytes)),
            Unit::Seconds => ("_seconds", Some(&Suffix::Seconds)),
            Unit::Count | Unit::Ratio | Unit::Cores => ("", None),
        };
        // The library appends both.
        let name = metric.name.strip_suffix(suffix).ok_or(fmt::Error)?;
        let name = name.strip_suffix(suffix_of_unit).ok_or(fmt::Error)?;
        let encoder = self.encoder.encode_descriptor(name, metric.help, unit, kind)?;
        Ok(Family { kind: metric.kind, labels: metric.labels, encoder })
    }

    /// A metric without labels.
    ///
    /// # Errors
    /// That of the writer.
    pub fn single(&mut self, metric: &Metric<0>, value: impl Into<Value>) -> fmt::Result {
        self.family(metric)?.sample([], value)
    }
}

/// The samples of one metric.
#[derive(Debug)]
pub struct Family<'a, const N: usize> {
    kind: Kind,
    labels: &'static [&'static str; N],
    encoder: MetricEncoder<'a>,
}

impl<const N: usize> Family<'_, N> {
    /// One sample; the values of the labels in the order of the catalogue.
    ///
    /// # Errors
    /// That of the writer.
    pub fn sample(&mut self, labels: [Label<'_>; N], value: impl Into<Value>) -> fmt::Result {
        let (set, value) = (LabelSet { keys: self.labels, values: labels }, value.into());
        if self.kind == Kind::Info {
            return self.encoder.encode_info(&set);
        }
        if N == 0 {
            return write(&mut self.encoder, self.kind, value);
        }
        write(&mut self.encoder.encode_family(&set)?, self.kind, value)
    }
}

fn write(encoder: &mut MetricEncoder<'_>, kind: Kind, value: Value) -> fmt::Result {
    match (kind, value) {
        (Kind::Counter, Value::Whole(n)) => encoder.encode_counter::<NoLabelSet, _, f64>(&n, None),
        (Kind::Counter, Value::Real(n)) => encoder.encode_counter::<NoLabelSet, _, f64>(&n, None),
        (_, Value::Whole(n)) => encoder.encode_gauge(&n),
        (_, Value::Real(n)) => encoder.encode_gauge(&n),
    }
}

/// The labels of one sample.
struct LabelSet<'a, const N: usize> {
    keys: &'static [&'static str; N],
    values: [Label<'a>; N],
}

impl<const N: usize> EncodeLabelSet for LabelSet<'_, N> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        for (key, value) in self.keys.iter().zip(&self.values) {
            match *value {
                Label::Text(text) => (*key, text).encode(encoder.encode_label())?,
                Label::Number(number) => (*key, number).encode(encoder.encode_label())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

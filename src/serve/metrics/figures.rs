//! Figures that are not counted as things happen: each is told as it was when it was last looked at.

use crate::locked;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Metric, Unit};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// A figure with its name and what it says.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    value: Arc<dyn Metric>,
}

impl Figure {
    pub(super) fn new(name: &'static str, help: &'static str, value: impl Metric) -> Self {
        Self { name, help, unit: None, value: Arc::new(value) }
    }

    /// The same in a unit, which its name ends with.
    pub(super) fn of(self, unit: Unit) -> Self {
        Self { unit: Some(unit), ..self }
    }
}

/// A whole number; as much as fits where it is larger.
pub(super) fn whole(number: impl TryInto<i64>) -> ConstGauge<i64> {
    ConstGauge::new(number.try_into().unwrap_or(i64::MAX))
}

/// A figure that is a whole number and may go up and down.
pub(super) fn gauge(name: &'static str, help: &'static str, number: impl TryInto<i64>) -> Figure {
    Figure::new(name, help, whole(number))
}

/// A figure that only grows.
pub(super) fn counter(name: &'static str, help: &'static str, number: u64) -> Figure {
    Figure::new(name, help, ConstCounter::new(number))
}

/// Metrics of one kind by the values of a label.
#[derive(Debug)]
pub(super) struct ByLabel<M>(pub(super) &'static str, pub(super) Vec<(&'static str, M)>);

impl<M: EncodeMetric> EncodeMetric for ByLabel<M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let Self(label, all) = self;
        all.iter().try_for_each(|(of, one)| one.encode(encoder.encode_family(&[(*label, *of)])?))
    }

    fn metric_type(&self) -> MetricType {
        self.1.first().map_or(MetricType::Gauge, |(_, metric)| metric.metric_type())
    }
}

/// The sum of what was measured, and how often it was up to each bound and no other below.
#[derive(Debug)]
pub(super) struct ConstHistogram(pub(super) f64, pub(super) Vec<(f64, u64)>);

impl EncodeMetric for ConstHistogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let all = self.1.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(self.0, all, &self.1, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// The figures that were looked at last, by where they come from.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures(Arc<Mutex<BTreeMap<&'static str, Vec<Figure>>>>);

impl Figures {
    /// Has these figures told in the place of those that came from there before.
    pub(super) fn set(&self, source: &'static str, figures: Vec<Figure>) {
        locked(&self.0).insert(source, figures);
    }
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        locked(&self.0).values().flatten().try_for_each(|Figure { name, help, unit, value }| {
            let help = format!("{help}.");
            let kind = value.metric_type();
            value.encode(encoder.encode_descriptor(name, &help, unit.as_ref(), kind)?)
        })
    }
}

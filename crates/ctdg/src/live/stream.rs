//! The columns of a stream that grows.

use super::NewEvent;
use crate::event::{Column, Columns, EventStream, Features, NameWriter, NodeId};
use crate::growing::GrowingColumn;
use crate::time::TimeFormat;

/// Columns and names of a stream that grows.
#[derive(Debug)]
pub(super) struct GrowingStream {
    pub(super) src: GrowingColumn<NodeId>,
    pub(super) dst: GrowingColumn<NodeId>,
    pub(super) time: GrowingColumn<f64>,
    label: GrowingColumn<f32>,
    pub(super) edge_features: Option<GrowingFeatures>,
    node_features: Option<GrowingFeatures>,
    pub(super) names: NameWriter,
    pub(super) time_format: TimeFormat,
}

impl GrowingStream {
    /// Begins with the events of `stream`, whose nodes keep their numbers. Copies the columns.
    pub(super) fn new(stream: &EventStream) -> Self {
        Self {
            src: GrowingColumn::new(stream.src()),
            dst: GrowingColumn::new(stream.dst()),
            time: GrowingColumn::new(stream.times()),
            label: GrowingColumn::new(stream.labels()),
            edge_features: stream.edge_features().map(GrowingFeatures::new),
            node_features: stream.node_features().map(GrowingFeatures::new),
            names: NameWriter::new(stream.names()),
            time_format: stream.time_format(),
        }
    }

    /// Appends an event between two nodes that have names already.
    pub(super) fn push(&mut self, [src, dst]: [NodeId; 2], event: &NewEvent<'_>) {
        self.src.push(src);
        self.dst.push(dst);
        self.label.push(event.label);
        if let Some(features) = &mut self.edge_features {
            features.push(event.features);
        }
        self.time.push(event.time + 0.0); // -0.0 becomes 0.0, so that equal times are equal bits
    }

    /// Appends the features of a node: zeros.
    pub(super) fn push_node(&mut self) {
        if let Some(features) = &mut self.node_features {
            features.push(&[]);
        }
    }

    /// The events so far.
    pub(super) fn now(&self) -> EventStream {
        EventStream::of_checked(Columns {
            src: Column::of_growing(&self.src),
            dst: Column::of_growing(&self.dst),
            time: Column::of_growing(&self.time),
            label: Column::of_growing(&self.label),
            edge_features: self.edge_features.as_ref().map(GrowingFeatures::now),
            node_features: self.node_features.as_ref().map(GrowingFeatures::now),
            names: self.names.names(),
            time_format: self.time_format,
        })
    }
}

#[derive(Debug)]
pub(super) struct GrowingFeatures {
    pub(super) width: usize,
    values: GrowingColumn<f32>,
}

impl GrowingFeatures {
    fn new(features: &Features) -> Self {
        Self { width: features.width(), values: GrowingColumn::new(features.values()) }
    }

    /// Appends a row; zeros if it is empty.
    fn push(&mut self, row: &[f32]) {
        if row.is_empty() {
            self.values.extend(&vec![0.0; self.width]);
        } else {
            self.values.extend(row);
        }
    }

    fn now(&self) -> Features {
        Features::new(self.width, Column::of_growing(&self.values)).expect("whole rows")
    }
}

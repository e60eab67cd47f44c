//! Events that are equal in everything.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use crate::error::Result;
use crate::event::{Columns, EventStream, Features};

impl EventStream {
    /// For each event, whether it equals an earlier one in source, destination, time, label and edge features. Linear.
    #[must_use]
    pub fn is_duplicate(&self) -> Vec<bool> {
        let mut is_duplicate = vec![false; self.len()];
        let mut at_this_time: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
        for (i, is_duplicate) in is_duplicate.iter_mut().enumerate() {
            if i == 0 || self.times()[i] != self.times()[i - 1] {
                at_this_time.clear();
            }
            let same_hash = at_this_time.entry(self.hash_of(i)).or_default();
            *is_duplicate = same_hash.iter().any(|&earlier| self.are_equal(earlier, i));
            if !*is_duplicate {
                same_hash.push(i);
            }
        }
        is_duplicate
    }

    /// The stream without events that equal an earlier one in source, destination, time, label and edge features. Nodes and
    /// their features stay.
    ///
    /// ```
    /// use ctdg::event::EventStream;
    ///
    /// let stream = EventStream::from_events([(0, 1, 5.0), (0, 2, 5.0), (0, 1, 5.0), (0, 1, 6.0)])?;
    /// assert_eq!(stream.without_duplicates()?.times(), [5.0, 5.0, 6.0]);
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    pub fn without_duplicates(self) -> Result<Self> {
        let is_duplicate = self.is_duplicate();
        if !is_duplicate.contains(&true) {
            return Ok(self);
        }
        let columns = self.into_columns();
        let edge_features = match columns.edge_features {
            Some(features) => {
                let rows = (0..features.n_rows()).filter(|&row| !is_duplicate[row]);
                let values: Vec<f32> = rows.flat_map(|row| features.row(row).iter().copied()).collect();
                Some(Features::new(features.width(), values)?)
            }
            None => None,
        };
        Self::new(Columns {
            src: kept(&columns.src, &is_duplicate).into(),
            dst: kept(&columns.dst, &is_duplicate).into(),
            time: kept(&columns.time, &is_duplicate).into(),
            label: kept(&columns.label, &is_duplicate).into(),
            edge_features,
            ..columns
        })
    }

    fn features_of(&self, i: usize) -> &[f32] {
        self.edge_features().map_or(&[], |features| features.row(i))
    }

    fn hash_of(&self, i: usize) -> u64 {
        let mut hasher = FxHasher::default();
        (self.src()[i], self.dst()[i]).hash(&mut hasher);
        bits(self.labels()[i]).hash(&mut hasher);
        self.features_of(i).iter().for_each(|&value| bits(value).hash(&mut hasher));
        hasher.finish()
    }

    fn are_equal(&self, a: usize, b: usize) -> bool {
        self.event_parts(a) == self.event_parts(b)
            && self.features_of(a).iter().map(|&x| bits(x)).eq(self.features_of(b).iter().map(|&x| bits(x)))
    }

    fn event_parts(&self, i: usize) -> (u32, u32, u64, u32) {
        (self.src()[i].0, self.dst()[i].0, self.times()[i].to_bits(), bits(self.labels()[i]))
    }
}

/// Bits that are equal where values are: both zeros are one.
fn bits(value: f32) -> u32 {
    (value + 0.0).to_bits()
}

fn kept<T: Copy>(values: &[T], is_dropped: &[bool]) -> Vec<T> {
    values.iter().zip(is_dropped).filter(|(_, dropped)| !**dropped).map(|(value, _)| *value).collect()
}

#[cfg(test)]
mod tests {
    use crate::event::{IdKind, StreamBuilder};

    #[test]
    fn events_that_differ_in_label_or_features_are_kept() {
        let mut builder = StreamBuilder::new(IdKind::Auto, false, false);
        for (src, label, feature) in
            [("1", 0.0, 1.0), ("1", 0.0, 1.0), ("1", 1.0, 1.0), ("1", 0.0, 2.0), ("1", 0.0, 1.0)]
        {
            builder.push(src.as_bytes(), b"2", 7.0, label).unwrap();
            builder.push_features([feature].into_iter()).unwrap();
        }
        let stream = builder.finish(None).unwrap();
        assert_eq!(stream.is_duplicate(), [false, true, false, false, true]);
        let stream = stream.without_duplicates().unwrap();
        assert_eq!((stream.len(), stream.edge_features().unwrap().values()), (3, &[1.0, 1.0, 2.0][..]));
    }
}

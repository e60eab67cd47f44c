//! The known name that a misspelt one resembles.

use std::cmp::Reverse;

use rayon::prelude::*;
use strsim::osa_distance;

use crate::event::{NodeId, NodeNames};

impl NodeNames {
    /// The node on the source side whose name resembles `name` most, for a question such as "did you mean …?".
    ///
    /// At most a third of the characters may differ: one more, one less, another one, or two neighbours swapped. Upper and
    /// lower case do not count. Of equally similar names it is the one that begins like `name` furthest, then the first.
    ///
    /// Compares with every name, in parallel: for messages, not for loops.
    ///
    /// ```
    /// # use ctdg::{dataset::{ReadOptions, read}, error::Error};
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let file = folder.path().join("mail.csv");
    /// std::fs::write(&file, "src,dst,time\nannabel,bob,1\nbob,christine,2\n").expect("a file");
    /// let names = read(&file, &ReadOptions::default())?.names().clone();
    /// assert_eq!(names.nearest_source("Anabell").map(|node| names.name(node)).as_deref(), Some("annabel"));
    /// assert_eq!(names.nearest_source("zoe"), None);
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn nearest_source(&self, name: &str) -> Option<NodeId> {
        self.nearest(name, |node| self.is_on_source_side(node))
    }

    /// The same on the destination side; the same as [`NodeNames::nearest_source`] unless bipartite.
    #[must_use]
    pub fn nearest_destination(&self, name: &str) -> Option<NodeId> {
        self.nearest(name, |node| !self.is_bipartite() || !self.is_on_source_side(node))
    }

    fn nearest(&self, name: &str, is_meant: impl Fn(NodeId) -> bool + Sync) -> Option<NodeId> {
        let name = name.trim().to_lowercase();
        let length = name.chars().count();
        let most = (length / 3).max(1).min(length.saturating_sub(1));
        let distance = |index: usize| {
            let node = NodeId::from_index(index).filter(|&node| is_meant(node))?;
            let known = self.name(node).to_lowercase();
            if known.chars().count().abs_diff(length) > most {
                return None;
            }
            let distance = osa_distance(&name, &known);
            let beginning = name.chars().zip(known.chars()).take_while(|(a, b)| a == b).count();
            (distance <= most).then_some((distance, Reverse(beginning), node))
        };
        (0..self.len()).into_par_iter().filter_map(distance).min().map(|(_, _, node)| node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{IdKind, StreamBuilder};

    fn names(pairs: &[(&str, &str)], bipartite: bool) -> NodeNames {
        let mut builder = StreamBuilder::new(IdKind::Auto, bipartite, false);
        for (src, dst) in pairs {
            builder.push(src.as_bytes(), dst.as_bytes(), 0.0, 0.0).unwrap();
        }
        builder.finish(None).unwrap().names().clone()
    }

    #[test]
    fn the_most_similar_name_is_found_and_none_that_is_not_similar() {
        let names = names(&[("annabel", "bob"), ("anna", "christine"), ("Émile", "x")], false);
        let nearest = |name: &str| names.nearest_source(name).map(|node| names.name(node));
        assert_eq!(nearest("annabell").as_deref(), Some("annabel"));
        assert_eq!(nearest("nana").as_deref(), Some("anna"), "two neighbours swapped");
        assert_eq!(nearest("BOB").as_deref(), Some("bob"));
        assert_eq!(nearest("émil").as_deref(), Some("Émile"), "characters, not bytes");
        assert_eq!(nearest("chris").as_deref(), None);
        assert_eq!(nearest("y"), None, "a name of one letter resembles only itself");
        assert_eq!(nearest("X").as_deref(), Some("x"));
        assert_eq!(nearest(""), None);
    }

    #[test]
    fn sides_of_bipartite_data_are_searched_separately() {
        let names = names(&[("user-1", "page-1"), ("user-2", "page-2")], true);
        let source = |name: &str| names.nearest_source(name).map(|node| names.name(node));
        let destination = |name: &str| names.nearest_destination(name).map(|node| names.name(node));
        assert_eq!((source("user-3").as_deref(), destination("user-3")), (Some("user-1"), None));
        assert_eq!((source("page-2x"), destination("page-2x").as_deref()), (None, Some("page-2")));
    }

    #[test]
    fn integers_are_compared_by_their_digits() {
        let names = names(&[("1001", "2002"), ("1010", "77")], false);
        let nearest = |name: &str| names.nearest_source(name).map(|node| names.name(node));
        assert_eq!(nearest("01001").as_deref(), Some("1001"));
        assert_eq!(nearest("2020").as_deref(), Some("2002"));
        assert_eq!(nearest("77x").as_deref(), Some("77"));
    }
}

//! Streams of grouped users and items.

use std::collections::BTreeSet;

use ctdg::generate::TasteSpec;

use super::fingerprint;

#[test]
fn users_interact_with_every_item_of_their_group_once() {
    let spec = TasteSpec { n_groups: 3, n_users: 4, n_items: 5 };
    let stream = spec.generate(7).unwrap();
    assert_eq!((stream.len(), stream.n_nodes()), (60, 27));
    let pairs: BTreeSet<(u32, u32)> = stream.src().iter().zip(stream.dst()).map(|(src, dst)| (src.0, dst.0)).collect();
    assert_eq!(pairs.len(), 60, "each pair once");
    // Users who share one item share all of them.
    let things =
        |person: u32| -> BTreeSet<u32> { pairs.iter().filter(|pair| pair.0 == person).map(|pair| pair.1).collect() };
    let tastes: BTreeSet<BTreeSet<u32>> = (0..12).map(things).collect();
    assert!(
        tastes.len() == 3 && tastes.iter().all(|things| things.len() == 5 && things.iter().all(|&thing| thing >= 12))
    );
    assert_eq!(tastes.iter().flatten().collect::<BTreeSet<_>>().len(), 15, "no thing is of two groups");
    assert!(stream.times().windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn stream_of_a_seed_is_fixed() {
    assert_eq!(fingerprint(&TasteSpec::default().generate(0).unwrap()), "71da001555d46ae2");
    assert_ne!(TasteSpec::default().generate(0).unwrap().times(), TasteSpec::default().generate(1).unwrap().times());
}

#[test]
fn empty_groups_and_too_many_events_are_refused() {
    let message = |spec: TasteSpec| spec.generate(0).unwrap_err().to_string();
    let empty = TasteSpec { n_users: 0, ..TasteSpec::default() };
    assert!(message(empty).contains("n_users"));
    let large = TasteSpec { n_groups: 1 << 12, n_users: 1 << 12, n_items: 1 << 12 };
    assert!(message(large).contains("events"));
}

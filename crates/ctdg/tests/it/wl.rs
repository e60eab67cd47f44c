//! k-DWL on random streams and on graphs with known answers.
use ctdg::wl::examples;

#[test]
fn verdicts_of_the_examples_are_pinned() {
    let start = std::time::Instant::now();
    let table = examples::table(|e| eprintln!("{} {:?}", e.name, start.elapsed())).unwrap();
    println!("{table} {:?}", start.elapsed());
}

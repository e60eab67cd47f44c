//! Mean ranks.

use super::numbers::Home;
use super::*;

#[test]
fn standings_are_mean_ranks_over_the_cells_that_have_a_number() {
    let text = "title = \"Board\"\nkind = \"link-prediction\"\nmetrics = [\"ap\"]\nstandings = true\n\
                [grid]\nmodel = [\"tcl\", \"tgat\", \"jodie\"]\ndata = [\"uci\", \"enron\"]\nseed = [0]\n";
    let home = Home::new(text);
    for (run, ap) in
        [("uci-tgat-0", 0.9), ("uci-jodie-0", 0.85), ("uci-tcl-0", 0.8), ("enron-tgat-0", 0.7), ("enron-tcl-0", 0.8)]
    {
        home.run(run, ap, &[1.0]);
    }
    let standings = Standings::of(&home.experiment, &home.found()).unwrap();
    let rows: Vec<(&str, f64, usize, usize)> =
        standings.rows.iter().map(|one| (one.row.as_str(), one.mean, one.n_cells, one.n_first)).collect();
    // Both settings have the same numbers here.
    assert_eq!(rows, [("TGAT", 1.5, 4, 2), ("TCL", 2.0, 4, 2), ("JODIE", 2.0, 2, 0)]);
    assert_eq!(standings.n_cells, 4);
    let page = markdown(&home.experiment, &home.found(), &[], home.folder.path());
    assert!(page.contains("| TGAT | 1.50 | 1.5 | 1.5 | 2 | 4 |"), "{page}");
    assert!(Standings::of(&Home::new(&text.replace("standings = true", "")).experiment, &[]).is_none());
}

#[test]
fn the_improvement_of_a_row_is_relative_to_the_best_other_one() {
    let text = "title = \"Board\"\nkind = \"link-prediction\"\nmetrics = [\"ap\"]\nimprovement-of = \"TGAT\"\n\
                [grid]\nmodel = [\"tcl\", \"tgat\", \"jodie\"]\ndata = [\"uci\", \"enron\", \"wikipedia\"]\nseed = [0]\n";
    let home = Home::new(text);
    let runs =
        [("uci-tgat-0", 0.9), ("uci-jodie-0", 0.75), ("uci-tcl-0", 0.8), ("enron-tgat-0", 0.6), ("enron-tcl-0", 0.8)];
    for (run, ap) in runs {
        home.run(run, ap, &[1.0]);
    }
    home.run("wikipedia-tcl-0", 0.5, &[1.0]);
    let page = markdown(&home.experiment, &home.found(), &[], home.folder.path());
    assert!(page.contains("| TGAT over the best other, % | +12.50 | -25.00 |  |"), "{page}");
    let tables = latex(&home.experiment, &home.found());
    assert!(tables.contains("TGAT over the best other, \\% & +12.50 & -25.00 &  \\\\"), "{tables}");
    let error = parse(&text.replace("\"TGAT\"", "\"tgat\"")).unwrap_err().to_string();
    assert!(error.contains("found improvement-of = \"tgat\", expected the name of a row"), "{error}");
}

//! Calibration as text.

use std::fmt::Write as _;

use hopedgn::fmt::grouped;
use hopedgn::metrics::Calibration;

use crate::commands::table::Table;
use crate::plural::count;

/// Sums, errors and the bins of the reliability diagram.
pub(super) fn text(calibration: &Calibration) -> String {
    let Calibration { events, of_events, candidates, new_destinations, mean_sum, error, bits, bins } = calibration;
    let of = if events == of_events { String::new() } else { format!(" of {}", grouped(*of_events)) };
    let mut text = format!(
        "probabilities of the next partner: {}{of}, {candidates:.0} destinations for each on average\n",
        count(*events, "event")
    );
    for (name, value, meaning) in [
        ("mean sum", format!("{mean_sum:.3}"), "over all destinations seen before; 1 is right"),
        ("calibration error", format!("{error:.3}"), "probability in the wrong row below; 0 is right"),
        ("bits over chance", format!("{bits:.2}"), "for the true destination"),
        ("new destinations", format!("{:.1}%", 100.0 * new_destinations), "of the events, without a probability"),
    ] {
        let _ = writeln!(text, "  {name:<17}  {value:>6}  {meaning}");
    }
    let mut table = Table::new(["probability", "predicted", "observed", "pairs", "events"]);
    for bin in bins {
        let range = format!("{:.0e} to {:.0e}", bin.low, bin.high);
        let shares = [bin.predicted, bin.observed].map(|share| format!("{share:.2e}"));
        table.row(&range, shares.into_iter().chain([grouped(bin.pairs), grouped(bin.happened)]));
    }
    let _ = write!(text, "\n{table}");
    text
}

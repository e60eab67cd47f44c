//! Reliability diagram: how often what was predicted happened.

use std::fmt::Write;

use crate::chart::{Axis, Chart, Key, Mark, Size};
use crate::fmt::{fixed, grouped, percent};
use crate::metrics::{Calibration, ReliabilityBin};

/// The section of the page.
pub(super) fn section(calibration: &Calibration) -> String {
    let Calibration { events, of_events, candidates, new_destinations, mean_sum, error, bits, .. } = calibration;
    let (events, of_events) = (grouped(*events), grouped(*of_events));
    let (sum, error, bits) = (fixed(*mean_sum, 3), fixed(*error, 3), fixed(*bits, 2));
    let (candidates, new) = (fixed(*candidates, 0), percent(*new_destinations));
    let (figure, table) = (figure(&calibration.bins), table(&calibration.bins));
    format!(
        "<h2>Probabilities</h2>\n<p class=\"quiet\">The probability that the next partner of a source is a destination, for all \
         destinations seen before ({candidates} on average), on {events} of {of_events} test events.</p>\n\
         <dl>\n<div><dt>Mean sum</dt><dd>{sum}<small>over all destinations; 1 is right</small></dd></div>\n\
         <div><dt>Calibration error</dt><dd>{error}<small>probability in the wrong bin; 0 is right</small></dd></div>\n\
         <div><dt>Bits over chance</dt><dd>{bits}<small>for the true destination</small></dd></div>\n\
         <div><dt>New destinations</dt><dd>{new}\u{a0}%<small>of the events, without a probability</small></dd></div>\n</dl>\n\
         <div class=\"wide\">\n{figure}{table}</div>\n"
    )
}

/// Both shares of each bin on logarithmic axes. A bin in which nothing happened has no place there.
fn figure(bins: &[ReliabilityBin]) -> String {
    let shown: Vec<&ReliabilityBin> = bins.iter().filter(|bin| bin.happened > 0 && bin.predicted > 0.0).collect();
    let shares = shown.iter().flat_map(|bin| [bin.predicted, bin.observed]);
    let Some(lowest) = shares.clone().reduce(f64::min) else {
        return "<p class=\"quiet\">No destination of a test event was seen before.</p>\n".to_owned();
    };
    let highest = shares.fold(1.0, f64::max);
    #[expect(clippy::cast_possible_truncation, reason = "a power of ten")]
    let powers = lowest.log10().floor() as i32..=highest.log10().ceil() as i32;
    let ticks: Vec<f64> = powers.map(|power| 10_f64.powi(power)).collect();
    let axis = || {
        Axis::log_of(&ticks)
            .labelled(|value| Some(format!("{value:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()))
    };
    let ends = [ticks.first().copied().unwrap_or(lowest), ticks.last().copied().unwrap_or(highest)];
    let mut marks = vec![
        Mark::Line { series: 1, points: ends.map(|end| [end; 2]).to_vec() },
        Mark::Line { series: 0, points: shown.iter().map(|bin| [bin.predicted, bin.observed]).collect() },
    ];
    marks.extend(shown.iter().map(|bin| Mark::Dot { series: 0, at: [bin.predicted, bin.observed], is_large: false }));
    marks.extend(shown.iter().map(|bin| Mark::Tooltip {
        x: [Some(bin.low.max(ends[0])), Some(bin.high.max(bin.predicted))],
        text: format!(
            "predicted {:.2e}, observed {:.2e}: {} of {} pairs",
            bin.predicted,
            bin.observed,
            grouped(bin.happened),
            grouped(bin.pairs)
        ),
    }));
    let chart = Chart {
        title: "Reliability: share of pairs that happened".to_owned(),
        size: Size::Square,
        x: axis().titled("predicted probability"),
        y: axis(),
        legend: vec![Key::line(0, "observed"), Key::line(1, "as predicted")],
        marks,
    };
    format!("<figure>{}</figure>\n", chart.inline())
}

fn table(bins: &[ReliabilityBin]) -> String {
    let mut out = String::from(
        "<div class=\"scroll\"><table><caption><b>Reliability</b>: pairs by their predicted probability</caption>\n\
         <thead><tr><th scope=\"col\">probability</th><th scope=\"col\">predicted</th><th scope=\"col\">observed</th>\
         <th scope=\"col\">pairs</th><th scope=\"col\">events</th></tr></thead>\n<tbody>\n",
    );
    for bin in bins {
        let ReliabilityBin { low, high, pairs, happened, predicted, observed } = *bin;
        let (pairs, happened) = (grouped(pairs), grouped(happened));
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{low:.0e} to {high:.0e}</th><td>{predicted:.2e}</td><td>{observed:.2e}</td><td>{pairs}</td>\
             <td>{happened}</td></tr>"
        );
    }
    out.push_str("</tbody></table></div>\n");
    out
}

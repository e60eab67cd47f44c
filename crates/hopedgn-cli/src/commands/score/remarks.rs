//! What is likely wrong with the pairs, said once each.

use ctdg::event::Roles;
use ctdg::mite::Side;
use hopedgn::Events;
use hopedgn::predict::PairSides;

use super::pairs::Pairs;
use crate::output::Output;
use crate::plural::count;

/// Ids without a history that are named.
const MAX_NAMED: usize = 5;

/// Says what is unusual about the pairs: a skipped first row, ids without events, swapped sides, times without history.
pub(crate) fn remark_on(pairs: &Pairs<'_>, events: &Events, output: &Output) {
    if let Some(header) = &pairs.skipped_header {
        output.remark(format_args!(
            "the first row {header:?} is no pair of ids and taken for column names, which are not recognised: the columns are \
             read as source, destination, time; name them with --pairs-columns"
        ));
    }
    if pairs.has_no_time && !pairs.extra.names.is_empty() {
        let (names, at) = (pairs.extra.names.join(", "), events.time_format().show(events.end()));
        output.remark(format_args!(
            "no column is recognised as time ({names}): all pairs are asked about just after the last event, at {at}; name it with \
             --pairs-columns SRC,DST,TIME, or give --at"
        ));
    }
    let remarks = [unknown(pairs), sides(pairs, events), before_the_first_event(pairs, events)];
    remarks.into_iter().flatten().for_each(|remark| output.remark(remark));
}

fn unknown(pairs: &Pairs<'_>) -> Option<String> {
    let unknown = pairs.named.unknown();
    let first = unknown.first()?;
    let named: Vec<&str> = unknown.iter().take(MAX_NAMED).map(String::as_str).collect();
    let more = if named.len() < unknown.len() { ", …" } else { "" };
    let verb = if unknown.len() == 1 { "is" } else { "are" };
    let (nodes, named) = (count(unknown.len(), "node"), named.join(", "));
    let first_pair = (0..pairs.named.queries().len()).find(|&pair| !pairs.named.known(pair).both());
    let side = first_pair.map(|pair| if pairs.named.known(pair).src { Side::Dst } else { Side::Src });
    let near = side.and_then(|side| pairs.named.nearest(first, side));
    let near = near.map(|near| format!("did you mean {near} instead of {first}? ")).unwrap_or_default();
    Some(format!(
        "{nodes} {verb} not in the data and scored without a history ({named}{more}); {near}--strict refuses unknown ids"
    ))
}

/// Pairs of bipartite data that are not of a source and a destination.
fn sides(pairs: &Pairs<'_>, events: &Events) -> Option<String> {
    let roles = Roles::of(events);
    if !roles.are_disjoint() {
        return None;
    }
    let mut remarks = Vec::new();
    let sides: Vec<PairSides> = (0..pairs.named.queries().len()).map(|pair| pairs.named.sides(pair, &roles)).collect();
    for (kind, is, are) in [
        (
            PairSides::Swapped,
            "names a destination of the data as source and a source as destination",
            "name destinations of the data as sources and sources as destinations",
        ),
        (PairSides::BothSources, "is of two sources", "are of two sources"),
        (PairSides::BothDestinations, "is of two destinations", "are of two destinations"),
    ] {
        let Some(first) = sides.iter().position(|&of_pair| of_pair == kind) else { continue };
        let n = sides.iter().filter(|&&of_pair| of_pair == kind).count();
        let advice = match kind {
            PairSides::Swapped => "are the columns swapped?",
            _ => "in this data only a source and a destination interact",
        };
        let (pairs_are, verb) = (count(n, "pair"), if n == 1 { is } else { are });
        remarks.push(format!("{pairs_are} {verb} ({}); {advice}", pairs.example(first, n)));
    }
    (!remarks.is_empty()).then(|| remarks.join("\n"))
}

fn before_the_first_event(pairs: &Pairs<'_>, events: &Events) -> Option<String> {
    let has_no_past = |time: f64| events.cut(time).n_events() == 0;
    let queries = pairs.named.queries();
    let first = queries.iter().position(|query| has_no_past(query.time))?;
    let n = queries.iter().filter(|query| has_no_past(query.time)).count();
    let show = |time: f64| events.time_format().show(time);
    let start = events.times().first().map_or(String::new(), |&start| show(start));
    let verb = if n == 1 { "is" } else { "are" };
    Some(format!(
        "{} {verb} asked about before anything happened ({} at {}): the first event is at {start}, and a score needs earlier ones",
        count(n, "pair"),
        pairs.example(first, n),
        show(queries[first].time)
    ))
}

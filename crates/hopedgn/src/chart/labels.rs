//! Label placement: beside the point, overlapping no other label and no point where there is room.

/// A rectangle in pixels: left, top, right, bottom.
type Area = [f64; 4];

/// The position of a label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Placed {
    /// Centre of the text.
    pub(super) middle: (f64, f64),
    /// Whether it is so far from its point that a line connects them.
    pub(super) has_leader: bool,
}

/// About the height of a line of text.
const HEIGHT: f64 = 14.0;
/// About the width of a letter.
pub(super) const LETTER: f64 = 6.9;
/// Half the width of a point with some space around it.
const POINT: f64 = 6.0;

/// A position for each of `labels`, a text with its point in pixels, inside `bounds`.
pub(super) fn place(labels: &[(&str, (f64, f64))], bounds: Area) -> Vec<Placed> {
    let points: Vec<Area> = labels.iter().map(|(_, at)| around(*at, POINT, POINT)).collect();
    // Crowded points first: they have the fewest free positions.
    let crowd = |n: usize| labels.iter().filter(|(_, at)| distance(*at, labels[n].1) < 60.0).count();
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.sort_by_key(|&n| std::cmp::Reverse(crowd(n)));
    let mut taken: Vec<Area> = Vec::new();
    let mut placed = vec![Placed { middle: (0.0, 0.0), has_leader: false }; labels.len()];
    for n in order {
        let (text, at) = labels[n];
        let half = text.chars().count() as f64 * LETTER / 2.0;
        let cost = |candidate: &Placed| {
            let area = around(candidate.middle, half, HEIGHT / 2.0);
            let outside = size(area) - overlap(area, bounds);
            let over: f64 = taken.iter().map(|other| overlap(area, *other)).sum();
            let hidden: f64 = points.iter().map(|point| overlap(area, *point)).sum();
            let far = if candidate.has_leader { 60.0 + distance(candidate.middle, at) } else { 0.0 };
            20.0 * outside + 10.0 * over + 6.0 * hidden + far
        };
        let best = candidates(at, half).into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
        if let Some(best) = best {
            taken.push(around(best.middle, half, HEIGHT / 2.0));
            placed[n] = best;
        }
    }
    placed
}

/// Beside, above and below the point, then in growing rings.
fn candidates((x, y): (f64, f64), half: f64) -> Vec<Placed> {
    let aside = half + 8.0;
    let near = [(aside, 0.0), (-aside, 0.0), (0.0, -13.0), (0.0, 13.0)];
    let near = near.into_iter().chain([(aside, -9.0), (aside, 9.0), (-aside, -9.0), (-aside, 9.0)]);
    let mut all: Vec<Placed> = near.map(|(dx, dy)| Placed { middle: (x + dx, y + dy), has_leader: false }).collect();
    for ring in [24.0, 38.0, 54.0, 72.0, 92.0] {
        for dy in [-ring, ring] {
            for dx in [0.0, aside, -aside] {
                all.push(Placed { middle: (x + dx, y + dy), has_leader: true });
            }
        }
    }
    all
}

fn around((x, y): (f64, f64), half_width: f64, half_height: f64) -> Area {
    [x - half_width, y - half_height, x + half_width, y + half_height]
}

fn size([left, top, right, bottom]: Area) -> f64 {
    (right - left) * (bottom - top)
}

fn overlap(a: Area, b: Area) -> f64 {
    let wide = a[2].min(b[2]) - a[0].max(b[0]);
    let high = a[3].min(b[3]) - a[1].max(b[1]);
    if wide > 0.0 && high > 0.0 { wide * high } else { 0.0 }
}

fn distance(a: (f64, f64), b: (f64, f64)) -> f64 {
    (a.0 - b.0).hypot(a.1 - b.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_crowded_points_do_not_overlap() {
        let names: Vec<String> = (0..14).map(|n| format!("HopeDGN-{n}")).collect();
        let at = |n: usize| (100.0 + 12.0 * (n % 5) as f64, 100.0 + 18.0 * (n / 5) as f64);
        let labels: Vec<(&str, (f64, f64))> =
            names.iter().enumerate().map(|(n, name)| (name.as_str(), at(n))).collect();
        let bounds = [0.0, 0.0, 380.0, 340.0];
        let placed = place(&labels, bounds);
        let area = |n: usize| around(placed[n].middle, names[n].len() as f64 * LETTER / 2.0, HEIGHT / 2.0);
        for n in 0..14 {
            assert!((overlap(area(n), bounds) - size(area(n))).abs() < 1e-9, "{n} leaves the picture");
            for m in 0..n {
                assert!(overlap(area(n), area(m)) < 1.0, "{n} and {m}: {placed:?}");
            }
        }
    }
}

//! The report as text, at most 100 columns wide: findings first, then tables.

use std::fmt::{self, Display};

use ctdg::audit::{Finding, Verdict};
use hopedgn::fmt::grouped;

use super::{Report, tables};
use crate::commands::table::Table;

/// Columns of a line.
const WIDTH: usize = 100;
/// Columns of the verdict and of the title of a check, with the blanks behind them.
const VERDICT: usize = 6;
const TITLE: usize = 15;

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.data, self.verdicts())?;
        writeln!(f, "{}", self.subject())?;
        let mut above = Verdict::Ok;
        for finding in &self.audit.findings {
            // One line each where all is well; a blank line around what has an explanation.
            if finding.verdict != Verdict::Ok || above != Verdict::Ok || finding == &self.audit.findings[0] {
                writeln!(f)?;
            }
            above = finding.verdict;
            write_finding(f, finding)?;
        }
        for table in tables::all(self).into_iter().filter(|table| !table.rows.is_empty()) {
            writeln!(f, "\n{}", table.title)?;
            for line in wrapped(table.note, WIDTH - 2) {
                writeln!(f, "  {line}")?;
            }
            let mut text = Table::new(table.header);
            for (name, cells) in table.rows {
                text.row(&name, cells);
            }
            for line in text.to_string().lines() {
                writeln!(f, "  {line}")?;
            }
        }
        self.write_activity(f)
    }
}

impl Report {
    fn write_activity(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDEST: usize = 40;
        let (activity, counts) = (&self.audit.activity, &self.audit.counts);
        writeln!(f, "\nActivity")?;
        writeln!(f, "  events in each tenth of the whole duration")?;
        let largest = activity.tenths.iter().copied().max().unwrap_or(0).max(1);
        for (tenth, &n) in activity.tenths.iter().enumerate() {
            let bar = "█".repeat((n * WIDEST).div_ceil(largest));
            let line = format!("{:>4} │{bar} {}", tenth + 1, grouped(n));
            writeln!(f, "  {}", line.trim_end())?;
        }
        if let Some(gaps) = &activity.gaps {
            let [median, p90, p99, longest] =
                [gaps.median, gaps.p90, gaps.p99, gaps.longest].map(|gap| self.duration(gap));
            writeln!(f, "  between events: median {median}, 90% ≤ {p90}, 99% ≤ {p99}, longest {longest}")?;
            writeln!(f, "  the longest silence begins at {}", self.time(gaps.longest_from))?;
        }
        writeln!(
            f,
            "  the largest moment has {} of {} events, at {}",
            grouped(counts.largest_moment),
            grouped(counts.events),
            self.time(counts.largest_moment_time),
        )
    }
}

fn write_finding(f: &mut fmt::Formatter<'_>, finding: &Finding) -> fmt::Result {
    let verdict = match finding.verdict {
        Verdict::Leak => "LEAK",
        other => other.as_str(),
    };
    let mut measured = wrapped(&finding.measured, WIDTH - VERDICT - TITLE).into_iter();
    let first = measured.next().unwrap_or_default();
    writeln!(f, "{verdict:<VERDICT$}{:<TITLE$}{first}", finding.check.title())?;
    for line in measured {
        writeln!(f, "{:1$}{line}", "", VERDICT + TITLE)?;
    }
    if finding.verdict == Verdict::Ok {
        return Ok(());
    }
    for line in wrapped(finding.explanation, WIDTH - VERDICT) {
        writeln!(f, "{:VERDICT$}{line}", "")?;
    }
    for (at, line) in wrapped(finding.remedy, WIDTH - VERDICT - 2).into_iter().enumerate() {
        writeln!(f, "{:VERDICT$}{} {line}", "", if at == 0 { "→" } else { " " })?;
    }
    Ok(())
}

/// `text` in lines of at most `width` columns, broken at blanks.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_blanks_and_keep_every_word() {
        assert_eq!(wrapped("a bb ccc dddd", 6), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrapped("longer than that", 3), ["longer", "than", "that"]);
        assert!(wrapped("", 3).is_empty());
    }
}

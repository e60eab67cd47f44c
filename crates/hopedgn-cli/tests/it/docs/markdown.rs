//! As much of Markdown as the documentation tests need: fenced blocks, sessions, inline code, headings.

use std::fs;
use std::path::{Path, PathBuf};

/// A fenced block.
pub(super) struct Block {
    info: String,
    /// Its text, without the fences.
    pub(super) body: String,
}

impl Block {
    /// Whether its language is `language`.
    pub(super) fn is(&self, language: &str) -> bool {
        self.info.split([' ', ',']).next() == Some(language)
    }

    /// Whether `word` stands beside the language.
    pub(super) fn has(&self, word: &str) -> bool {
        self.info.split([' ', ',']).skip(1).any(|found| found == word)
    }

    /// What follows `key` beside the language.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        self.info.split(' ').find_map(|word| word.strip_prefix(key))
    }

    /// Commands, each with the output that is shown below it.
    pub(super) fn session(&self) -> Vec<(String, String)> {
        let mut session: Vec<(String, String)> = Vec::new();
        let mut continued = false;
        for line in self.body.lines() {
            if continued {
                let (command, _) = session.last_mut().expect("a command before its next line");
                command.push('\n');
                command.push_str(line);
            } else if let Some(command) = line.strip_prefix("$ ") {
                session.push((command.to_owned(), String::new()));
            } else if let Some((_, shown)) = session.last_mut() {
                shown.push_str(line);
                shown.push('\n');
            } else {
                panic!("a console block starts with `$ `, not with {line:?}");
            }
            let is_command = continued || line.starts_with("$ ");
            continued = is_command && line.ends_with('\\');
        }
        session
    }
}

/// All fenced blocks of `text`.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(info), None) => open = Some(Block { info: info.trim().to_owned(), body: String::new() }),
            (None, Some(block)) => {
                block.body.push_str(line);
                block.body.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    found
}

/// `text` without its fenced blocks.
pub(super) fn prose(text: &str) -> String {
    let mut fenced = false;
    let outside = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    outside.collect::<Vec<_>>().join("\n")
}

/// What stands between backticks outside of blocks.
pub(super) fn inline_code(text: &str) -> Vec<String> {
    let prose = prose(text);
    let paragraphs = prose.split("\n\n");
    paragraphs.flat_map(|part| part.split('`').skip(1).step_by(2)).map(|code| code.replace('\n', " ")).collect()
}

/// The arguments of each `hopedgn`, also behind `cargo run --release --`, in a line of shell.
pub(super) fn invocations(command: &str) -> Vec<Vec<String>> {
    let command = command.replace("\\\n", " ");
    let mut found = Vec::new();
    let lines = command.lines().map(|line| line.split(" #").next().unwrap_or_default());
    for part in lines.flat_map(|line| line.split(['|', ';'])).flat_map(|part| part.split("&&")) {
        let words = words(part);
        let start = match words.iter().position(|word| word == "hopedgn") {
            // Only where it is the command, perhaps behind `time`.
            Some(at) if at == 0 || words[at - 1] == "time" => at + 1,
            _ if words.starts_with(&["cargo".to_owned(), "run".to_owned()]) => {
                words.iter().position(|word| word == "--").map_or(words.len(), |at| at + 1)
            }
            _ => continue,
        };
        found.push(words[start..].iter().filter(|word| !word.starts_with(['>', '<'])).cloned().collect());
    }
    found
}

/// Words of a line of shell; those in quotes stay together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (String::new(), None);
    for c in line.trim().chars().chain([' ']) {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c.is_whitespace() => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            _ => word.push(c),
        }
    }
    words
}

/// Whether `printed` is what `shown` says; the rules are those of the module above.
pub(super) fn matches(shown: &str, printed: &str) -> bool {
    fn lines_match(shown: &[&str], printed: &[&str]) -> bool {
        match shown.split_first() {
            None => printed.is_empty(),
            Some((&"...", rest)) => (0..=printed.len()).any(|skipped| lines_match(rest, &printed[skipped..])),
            Some((line, rest)) => printed
                .split_first()
                .is_some_and(|(first, others)| line_matches(line, first) && lines_match(rest, others)),
        }
    }
    fn cleaned(text: &str) -> Vec<&str> {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
    }
    lines_match(&cleaned(shown), &cleaned(printed))
}

fn line_matches(shown: &str, printed: &str) -> bool {
    fn words_match(shown: &[&str], printed: &[&str]) -> bool {
        match shown.split_first() {
            None => printed.is_empty(),
            Some((&"...", rest)) => (0..=printed.len()).any(|skipped| words_match(rest, &printed[skipped..])),
            Some((word, rest)) => printed
                .split_first()
                .is_some_and(|(first, others)| word_matches(word, first) && words_match(rest, others)),
        }
    }
    fn cells(line: &str) -> Vec<&str> {
        line.split_whitespace().filter(|word| !word.chars().all(|c| "-─|│".contains(c))).collect()
    }
    words_match(&cells(shown), &cells(printed))
}

/// Equal, or two numbers with a decimal point within two percent of each other, or equal up to a `...` inside; what commas and
/// slashes separate is compared part by part.
fn word_matches(shown: &str, printed: &str) -> bool {
    if shown == printed {
        return true;
    }
    if let Some((start, end)) = shown.split_once("...") {
        return printed.len() >= start.len() + end.len() && printed.starts_with(start) && printed.ends_with(end);
    }
    let parts = |word: &'_ str| word.split([',', '/']).map(str::to_owned).collect::<Vec<_>>();
    let (shown, printed) = (parts(shown), parts(printed));
    shown.len() == printed.len() && shown.iter().zip(&printed).all(|(shown, printed)| is_near(shown, printed))
}

fn is_near(shown: &str, printed: &str) -> bool {
    let number = |word: &str| word.trim_matches([';', '(', ')', '%', ':']).parse::<f64>().ok();
    match (number(shown), number(printed)) {
        _ if shown == printed => true,
        (Some(a), Some(b)) if shown.contains('.') => (a - b).abs() <= 0.02 * a.abs().max(b.abs()),
        _ => false,
    }
}

/// All files below `folder` with this ending, in order.
pub(super) fn collect(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            collect(&entry, ending, found);
        } else if entry.extension().is_some_and(|found| found == ending) {
            found.push(entry);
        }
    }
}

/// The anchors that GitHub and mdBook give to the headings of `text`.
pub(super) fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for line in prose(text).lines() {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect();
        let repeats = anchors.iter().filter(|known| **known == anchor).count();
        anchors.push(if repeats == 0 { anchor } else { format!("{anchor}-{repeats}") });
    }
    anchors
}

#[test]
fn elided_output_matches_and_other_output_does_not() {
    assert!(matches("a ... c\n...\nend 97.1", "a b b c\nx\ny\nend   97.4"));
    assert!(!matches("a\nend", "a\nx\nend"));
    assert!(!matches("200 events", "201 events"));
    assert!(matches("run-...-0 done", "run-abc-0 done"));
    assert!(matches("9,48,0.5310 AP/AUC 60.4/55.2", "9,48,0.5312 AP/AUC 60.3/55.1"));
    assert!(!matches("9,48,0.53", "9,49,0.53"));
}

#[test]
fn arguments_of_commands_are_found() {
    let found = invocations("echo 1,2 | time hopedgn lab --model \"tgat + MITE\" # why\ncargo run --release -- train");
    assert_eq!(found, [vec!["lab", "--model", "tgat + MITE"], vec!["train"]]);
}

#[test]
fn anchors_are_those_of_github() {
    assert_eq!(anchors("# On a GPU: `bench step`\n## a\n## a"), ["on-a-gpu-bench-step", "a", "a-1"]);
}

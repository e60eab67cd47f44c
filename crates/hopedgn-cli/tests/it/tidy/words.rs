//! Words: no private language, and no command-line flag in a library.

use std::path::PathBuf;

use super::{assert_none, files, read, relative, root};

/// Words of a private language, with what to write instead.
const BANNED: [(&str, &str); 24] = [
    ("data set", "dataset"),
    ("data sets", "datasets"),
    ("card", "GPU"),
    ("cards", "GPUs"),
    ("lesson", "batch"),
    ("lessons", "batches"),
    ("nobody", "padding, or no node"),
    ("anybody", "any node"),
    ("somebody", "a node"),
    ("everybody", "every node"),
    ("way back", "backward"),
    ("way forth", "forward"),
    ("tell apart", "separate, distinguish"),
    ("tells apart", "separates, distinguishes"),
    ("told apart", "separated, distinguished"),
    ("tell them apart", "separate them"),
    ("tells them apart", "separates them"),
    ("anew", "again"),
    ("if it likes", "optionally"),
    ("lives through", "replays"),
    ("teacher", "optimizer"),
    ("how-manieth", "index"),
    ("as if untyped", "default"),
    ("made ready ahead", "prefetched"),
];

/// This file, which has to name them.
const THIS: &str = "crates/hopedgn-cli/tests/it/tidy/words.rs";

/// Sources and documents. Generated pages, data and what is built are left out.
fn texts() -> Vec<PathBuf> {
    let root = root();
    let mut all = files(&root.join("crates"), &[".rs", ".cu", ".cuh", ".toml"]);
    all.extend(files(&root.join("docs"), &[".md"]));
    all.extend(files(&root.join("experiments"), &[".toml"]));
    all.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    all.retain(|file| relative(file) != THIS);
    all
}

/// Whether `line` holds `words` as whole words. CSS names such as `.card` and `--card` are no words.
fn holds(line: &str, words: &str) -> bool {
    line.match_indices(words).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + words.len()..].chars().next();
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        !before.is_some_and(|c| is_name(c) || ['-', '.', '"'].contains(&c)) && !after.is_some_and(is_name)
    })
}

#[test]
fn no_text_uses_a_private_word() {
    let mut found = Vec::new();
    for file in texts() {
        for (number, line) in read(&file).lines().enumerate() {
            let lower = line.to_lowercase();
            for (words, instead) in BANNED.iter().filter(|(words, _)| holds(&lower, words)) {
                found.push(format!("{}:{}: {words:?}: write {instead}", relative(&file), number + 1));
            }
        }
    }
    assert_none("words that a reader from the field would not search for", &found);
}

#[test]
fn whole_words_are_found_and_names_are_not() {
    assert!(holds("on a card.", "card") && holds("(card)", "card") && holds("card", "card"));
    assert!(!holds("wildcard", "card") && !holds("--card: #fff", "card") && !holds("class=\"card\"", "card"));
    assert!(!holds("discard_all", "card") && !holds("card_name", "card"));
}

/// Libraries that know nothing of the command line.
const LIBRARIES: [&str; 3] = ["ctdg", "tensor", "hopedgn"];

/// Flags of other programs: NVRTC's.
const OTHER_FLAGS: [&str; 1] = ["crates/tensor/src/cuda/compile.rs"];

const COMMANDS: [&str; 14] = [
    "train",
    "evaluate",
    "score",
    "classify",
    "recommend",
    "serve",
    "data",
    "wl",
    "lab",
    "experiment",
    "bench",
    "selftest",
    "completions",
    "man",
];

/// Whether a text names a flag (`--sort`, but not CSS's `--ink:`) or a command (`hopedgn train`).
fn names_the_command_line(text: &str) -> bool {
    let flag = text.match_indices("--").any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let name: String = text[start + 2..].chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        let after = text[start + 2 + name.len()..].chars().next();
        let starts = before.is_none_or(|c| c.is_whitespace() || c == '`' || c == '(');
        starts && name.starts_with(|c: char| c.is_ascii_lowercase()) && after != Some(':') && after != Some(')')
    });
    flag || COMMANDS
        .iter()
        .any(|command| text.contains(&format!("hopedgn {command} ")) || text.contains(&format!("hopedgn {command}`")))
}

/// The string literals of Rust code with their lines. Comments and character literals are skipped.
fn literals(code: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = code.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let (mut found, mut i, mut line) = (Vec::new(), 0, 1);
    while i < chars.len() {
        match at(i) {
            '\n' => line += 1,
            '/' if at(i + 1) == '/' => {
                while i + 1 < chars.len() && at(i + 1) != '\n' {
                    i += 1;
                }
            }
            // A character literal, not a lifetime.
            '\'' if at(i + 1) == '\\' => {
                i += 2;
                while i + 1 < chars.len() && at(i + 1) != '\'' {
                    i += 1;
                }
                i += 1;
            }
            '\'' if at(i + 2) == '\'' => i += 2,
            'r' if (at(i + 1) == '"' || at(i + 1) == '#') && !at(i.wrapping_sub(1)).is_alphanumeric() => {
                let hashes = chars[i + 1..].iter().take_while(|c| **c == '#').count();
                if at(i + 1 + hashes) == '"' {
                    let start = i + 2 + hashes;
                    let is_end = |end: usize| at(end) == '"' && (1..=hashes).all(|k| at(end + k) == '#');
                    let end = (start..chars.len()).find(|&end| is_end(end)).unwrap_or(chars.len());
                    let text: String = chars[start..end].iter().collect();
                    line += text.matches('\n').count();
                    found.push((line, text));
                    i = end + hashes;
                }
            }
            '"' => {
                let start = i + 1;
                i = start;
                while i < chars.len() && at(i) != '"' {
                    i += if at(i) == '\\' { 2 } else { 1 };
                }
                let text: String = chars[start..i.min(chars.len())].iter().collect();
                line += text.matches('\n').count();
                found.push((line, text));
            }
            _ => {}
        }
        i += 1;
    }
    found
}

#[test]
fn no_library_names_a_flag_or_a_command() {
    let mut found = Vec::new();
    for library in LIBRARIES {
        for file in files(&root().join("crates").join(library).join("src"), &[".rs"]) {
            let name = relative(&file);
            if OTHER_FLAGS.contains(&name.as_str()) {
                continue;
            }
            let text = read(&file);
            for (line, literal) in literals(&text).into_iter().filter(|(_, text)| names_the_command_line(text)) {
                found.push(format!("{name}:{line}: {literal:?}"));
            }
            // Documentation of errors states facts, too.
            let docs = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"));
            for (number, line) in docs.filter(|(_, line)| name.contains("error") && names_the_command_line(line)) {
                found.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert_none("libraries state remedies as facts; crates/hopedgn-cli/src/remedy.rs words them", &found);
}

#[test]
fn flags_and_commands_are_found_in_literals_only() {
    let code = "// --comment\nlet c = '\"'; let s = \"use --sort\\\" now\"; fn f<'a>(x: &'a str) {}\nr#\"`hopedgn train` \"x\" \"#";
    let found: Vec<(usize, bool)> =
        literals(code).iter().map(|(line, text)| (*line, names_the_command_line(text))).collect();
    assert_eq!(found, [(2, true), (3, true)]);
    for fact in ["--ink: #fff", "var(--ink)", "a -- b", "the crate hopedgn trains", "x--y"] {
        assert!(!names_the_command_line(fact), "{fact}");
    }
}

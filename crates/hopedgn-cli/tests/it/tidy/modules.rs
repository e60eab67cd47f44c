//! The modules of each crate depend in one direction, as the tables of ARCHITECTURE.md say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{assert_none, files, read, relative, root, section};

type Names = BTreeSet<String>;

/// A row of a table "Modules of …": what a module uses, and what only its tests use.
#[derive(Debug, Default, Clone)]
struct Uses {
    code: Names,
    tests: Names,
}

/// The crates by package name and folder. `Cycles::Allowed`: the tensor crate's devices and its CUDA code know each other.
const CRATES: [(&str, &str, Cycles); 8] = [
    ("ctdg", "ctdg", Cycles::Refused),
    ("hopedgn-tensor", "tensor", Cycles::Allowed),
    ("hopedgn", "hopedgn", Cycles::Refused),
    ("hopedgn-experiments", "hopedgn-experiments", Cycles::Refused),
    ("hopedgn-cli", "hopedgn-cli", Cycles::Refused),
    ("hopedgn-py", "hopedgn-py", Cycles::Refused),
    ("hopedgn-serve", "hopedgn-serve", Cycles::Refused),
    ("hopedgn-release", "release", Cycles::Refused),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cycles {
    Refused,
    Allowed,
}

#[test]
fn modules_use_only_what_the_architecture_allows() {
    let architecture = read(&root().join("ARCHITECTURE.md"));
    let mut found = Vec::new();
    for (package, folder, cycles) in CRATES {
        let table = table(section(&architecture, &format!("Modules of `{package}`")));
        let src = root().join("crates").join(folder).join("src");
        let modules = declared_modules(&src);
        let rows: Names = table.keys().cloned().collect();
        found.extend(modules.difference(&rows).map(|name| format!("{package}: {name} has no row")));
        found.extend(rows.difference(&modules).map(|name| format!("{package}: {name} has a row but is no module")));
        let actual = actual_uses(&src, &modules);
        for (module, row) in &table {
            let none = Uses::default();
            let uses = actual.get(module).unwrap_or(&none);
            let in_tests: Names = row.code.union(&row.tests).cloned().collect();
            let mut report = |names: Vec<&String>, problem: &str| {
                found.extend(names.into_iter().map(|name| format!("{package}: {module} {problem} {name}")));
            };
            report(uses.code.difference(&row.code).collect(), "must not use");
            report(uses.tests.difference(&in_tests).collect(), "must not use in its tests");
            report(row.code.difference(&uses.code).collect(), "has a row that allows, but does not use");
            report(row.tests.difference(&uses.tests).collect(), "has a row that allows in tests, but does not use");
        }
        if cycles == Cycles::Refused {
            found.extend(cycle(&table).map(|names| format!("{package}: the table has a cycle among {names:?}")));
        }
    }
    assert_none(
        "modules use only what ARCHITECTURE.md allows (relative to the crate root; comments do not count)",
        &found,
    );
}

/// Rows `| modules | uses | in tests also |`; only names in backticks count.
fn table(section: &str) -> BTreeMap<String, Uses> {
    let names = |cell: &str| -> Names { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let mut table = BTreeMap::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<Names> = row.split('|').map(names).collect();
        for module in &cells[1] {
            let uses = Uses { code: cells[2].clone(), tests: cells.get(3).cloned().unwrap_or_default() };
            table.insert(module.clone(), uses);
        }
    }
    table
}

/// The modules that `lib.rs` or, without one, `main.rs` declares.
fn declared_modules(src: &Path) -> Names {
    let lib = src.join("lib.rs");
    let text = read(&if lib.exists() { lib } else { src.join("main.rs") });
    let declared = |line: &str| {
        let name = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ").strip_prefix("mod ")?;
        name.strip_suffix(';').map(str::to_owned)
    };
    text.lines().filter_map(declared).collect()
}

/// What the files of each module use.
fn actual_uses(src: &Path, modules: &Names) -> BTreeMap<String, Uses> {
    let mut all: BTreeMap<String, Uses> = BTreeMap::new();
    for file in files(src, &[".rs"]) {
        let inside = file.strip_prefix(src).expect("below").to_string_lossy().into_owned();
        let module = inside.split(['/', '.']).next().expect("a name").to_owned();
        if !modules.contains(&module) {
            continue;
        }
        let depth = inside.matches('/').count() + 1;
        let text = read(&file);
        let is_test = inside.ends_with("/tests.rs") || inside.contains("/tests/");
        let (code, tests) = if is_test { (String::new(), text) } else { without_tests(&text) };
        let uses = all.entry(module.clone()).or_default();
        for (text, names) in [(code, &mut uses.code), (tests, &mut uses.tests)] {
            let used = used_modules(&text, depth).into_iter().filter(|name| modules.contains(name) && *name != module);
            names.extend(used);
        }
    }
    for uses in all.values_mut() {
        uses.tests = uses.tests.difference(&uses.code).cloned().collect();
    }
    all
}

/// The code of a file and that of its tests: inline test modules at the end, and items under `#[cfg(test)]`.
fn without_tests(text: &str) -> (String, String) {
    let (mut code, mut tests) = (String::new(), String::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            code += line;
            code.push('\n');
            continue;
        }
        // The item goes to the tests, up to the brace that closes it or its semicolon.
        let indent = line.len() - line.trim_start().len();
        for line in lines.by_ref() {
            tests += line;
            tests.push('\n');
            let is_end = line.len() - line.trim_start().len() == indent && line.trim_end().ends_with(['}', ';']);
            if is_end {
                break;
            }
        }
    }
    (code, tests)
}

/// First segments of `crate::…` paths, and of `super::…` paths at the start of a line that leave a file at `depth`.
fn used_modules(text: &str, depth: usize) -> Names {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |code, line| code + line + "\n");
    let above = format!("\nuse {}", "super::".repeat(depth));
    let mut used = Names::new();
    for start in ["crate::", above.as_str()] {
        for rest in code.split(start).skip(1) {
            match rest.strip_prefix('{') {
                Some(group) => used.extend(group_names(group)),
                None => used.extend(first_name(rest)),
            }
        }
    }
    used
}

fn first_name(path: &str) -> Option<String> {
    let name: String = path.chars().take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// First segments of `a::x, b::{y, z}}`.
fn group_names(group: &str) -> Names {
    let (mut names, mut depth, mut item) = (Names::new(), 1, String::new());
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => names.extend(first_name(std::mem::take(&mut item).trim())),
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if c != ',' || depth > 1 {
            item.push(c);
        }
    }
    names.extend(first_name(item.trim()));
    names
}

/// The modules left when those that use only modules already removed are removed, over and over.
fn cycle(table: &BTreeMap<String, Uses>) -> Option<Names> {
    let mut left: Names = table.keys().cloned().collect();
    loop {
        let free: Names = left.iter().filter(|name| table[*name].code.is_disjoint(&left)).cloned().collect();
        if free.is_empty() {
            return (!left.is_empty()).then_some(left);
        }
        left = left.difference(&free).cloned().collect();
    }
}

#[test]
fn every_crate_of_the_workspace_is_checked() {
    let folders = fs::read_dir(root().join("crates")).expect("crates").map(|entry| entry.expect("an entry").path());
    let folders: Names = folders.filter(|path| path.join("Cargo.toml").exists()).map(|path| relative(&path)).collect();
    let checked: Names = CRATES.iter().map(|(_, folder, _)| format!("crates/{folder}")).collect();
    assert_eq!(folders, checked);
}

#[test]
fn uses_are_found_in_code_groups_and_tests() {
    let text = "//! See [`crate::ignored`].\nuse crate::a::X;\nuse crate::{b::{Y, Z}, c};\nuse super::d::W;\n\
                fn f() { crate::e::g() }\n#[cfg(test)]\nmod tests {\n    use crate::t::T;\n}\n";
    let (code, tests) = without_tests(text);
    let names = |text: &str| used_modules(text, 1).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!((names(&code), names(&tests)), ("a b c d e".to_owned(), "t".to_owned()));
}

#[test]
fn a_cycle_is_found() {
    let table = |text: &str| table(text);
    assert!(cycle(&table("| `a` | `b` |\n| `b` | – |")).is_none());
    assert_eq!(cycle(&table("| `a` | `b` |\n| `b`, `c` | `a` |")).map(|names| names.len()), Some(3));
}

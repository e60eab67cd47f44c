//! Files for people who cite, package or build the program: CITATION.cff, Containerfile.

use super::{read, root};

/// The value of `key: value` at the top level of a YAML file.
fn yaml<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(|value| value.trim().trim_matches('"'))
}

fn workspace() -> toml::Table {
    read(&root().join("Cargo.toml")).parse().expect("TOML")
}

#[test]
fn citation_has_the_version_of_the_workspace_and_the_required_fields() {
    let (citation, workspace) = (read(&root().join("CITATION.cff")), workspace());
    let package = &workspace["workspace"]["package"];
    let fields = [
        "cff-version",
        "message",
        "title",
        "authors",
        "type",
        "version",
        "license",
        "repository-code",
        "preferred-citation",
    ];
    for field in fields {
        assert!(yaml(&citation, field).is_some(), "CITATION.cff has no {field}");
    }
    assert_eq!(yaml(&citation, "cff-version"), Some("1.2.0"));
    assert_eq!(yaml(&citation, "version"), package["version"].as_str());
    assert_eq!(yaml(&citation, "repository-code"), package["repository"].as_str());
    // The format knows no SPDX expressions: alternatives are a list.
    let license = package["license"].as_str().expect("a licence").replace(" OR ", ", ");
    assert_eq!(yaml(&citation, "license"), Some(format!("[{license}]").as_str()));
}

/// The instructions of the Containerfile with their arguments; comments and blank lines are left out.
fn instructions() -> Vec<(String, Vec<String>)> {
    let text = read(&root().join("Containerfile"));
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let mut found = Vec::new();
    for line in lines {
        assert!(!line.ends_with('\\'), "this test reads one instruction a line: {line}");
        let mut words = line.split_whitespace().map(str::to_owned);
        found.push((words.next().expect("an instruction"), words.collect()));
    }
    found
}

/// Whether .dockerignore, which begins by leaving out everything, lets `path` through.
fn is_sent(path: &str) -> bool {
    let ignored = read(&root().join(".dockerignore"));
    let first = path.split('/').next().unwrap_or_default();
    ignored.lines().any(|line| line == "*") && ignored.lines().any(|line| line.strip_prefix('!') == Some(first))
}

#[test]
fn containerfile_copies_what_exists_and_is_sent_to_the_build() {
    let mut n_sources = 0;
    for (_, arguments) in instructions().iter().filter(|(name, _)| name == "COPY") {
        if arguments.iter().any(|word| word.starts_with("--from=")) {
            continue;
        }
        let (_, sources) = arguments.split_last().expect("a destination");
        for source in sources {
            assert!(root().join(source).exists(), "COPY {source}: there is no such file");
            assert!(is_sent(source), "COPY {source}: .dockerignore leaves it out");
            n_sources += 1;
        }
    }
    assert!(n_sources > 3);
}

#[test]
fn containerfile_builds_with_the_toolchain_of_the_workspace() {
    let instructions = instructions();
    let argument = |name: &str| {
        let mut values = instructions.iter().filter(|(kind, _)| kind == "ARG").flat_map(|(_, words)| words);
        values.find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
    };
    let rust = argument("RUST").expect("ARG RUST=…");
    assert_eq!(Some(rust.as_str()), workspace()["workspace"]["package"]["rust-version"].as_str());
    let pinned: toml::Table = read(&root().join("rust-toolchain.toml")).parse().expect("TOML");
    let channel = pinned["toolchain"]["channel"].as_str().expect("a channel");
    assert!(channel == "stable" || channel == rust, "rust-toolchain.toml has {channel}, the Containerfile {rust}");
}

#[test]
fn containerfile_ends_in_a_stage_without_compiler_and_rights() {
    let instructions = instructions();
    let stages: Vec<usize> = (0..instructions.len()).filter(|&at| instructions[at].0 == "FROM").collect();
    let [build, last] = stages[..] else { panic!("found {} stages, expected two", stages.len()) };
    let name = instructions[build].1.last().expect("a name");
    let last = &instructions[last..];
    let find = |kind: &str| last.iter().filter(|(name, _)| name == kind).map(|(_, words)| words.join(" ")).next_back();
    let copied = format!("--from={name} /src/target/release/hopedgn /usr/local/bin/hopedgn");
    assert_eq!(find("COPY"), Some(copied));
    let user = find("USER").expect("a user");
    assert!(!user.starts_with('0') && !user.starts_with("root"), "{user}");
    assert_eq!((find("RUN"), find("ENTRYPOINT").as_deref()), (None, Some("[\"/usr/local/bin/hopedgn\"]")));
}

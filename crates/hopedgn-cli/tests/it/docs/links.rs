//! Relative links of all Markdown files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use super::markdown;

/// Links that lead nowhere, each with its file.
pub(super) fn broken(root: &Path) -> Vec<String> {
    let mut files: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
        .map(|name| root.join(name))
        .into();
    let book = root.join("docs/src");
    markdown::collect(&root.join("docs"), "md", &mut files);
    let mut broken = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a Markdown file");
        for target in targets(&markdown::prose(&text)) {
            if let Err(problem) = resolve(&file, &text, &target, &book) {
                broken.push(format!("{}: {target}: {problem}", file.strip_prefix(root).expect("below").display()));
            }
        }
    }
    broken
}

/// What `[text](target)` and `<img src="target">` lead to.
fn targets(text: &str) -> Vec<String> {
    // Inline code may show a link without being one.
    let outside: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let until = |text: &str, end: char| text.split(end).next().unwrap_or_default().to_owned();
    let links = outside.split("](").skip(1).map(|rest| until(rest, ')'));
    let images = outside.split("src=\"").skip(1).map(|rest| until(rest, '"'));
    links.chain(images).collect()
}

fn resolve(file: &Path, text: &str, target: &str, book: &Path) -> Result<(), &'static str> {
    if target.starts_with("https://") || target.starts_with("http://") {
        return Ok(());
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let linked = file.parent().expect("a folder").join(path);
    if !path.is_empty() {
        let found = linked.canonicalize().map_err(|_| "there is no such file")?;
        // Outside of the book a page would work on GitHub and not in the built book.
        if file.starts_with(book) && !found.starts_with(book) {
            return Err("a page of the book links to a file outside of it");
        }
    }
    let Some(anchor) = anchor else { return Ok(()) };
    let other =
        if path.is_empty() { text.to_owned() } else { fs::read_to_string(&linked).map_err(|_| "no text file")? };
    if markdown::anchors(&other).iter().any(|known| known == anchor) { Ok(()) } else { Err("there is no such heading") }
}

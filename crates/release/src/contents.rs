//! What a release holds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::archive::{File, sha256, tar_gz};
use crate::{dependencies, licences, sbom};

/// Completion scripts: the shell, and the file name under which it looks for the script.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "hopedgn.bash"),
    ("elvish", "hopedgn.elv"),
    ("fish", "hopedgn.fish"),
    ("powershell", "_hopedgn.ps1"),
    ("zsh", "_hopedgn"),
];

/// Files of the repository that go along, with their name in the archive.
const DOCUMENTS: [(&str, &str); 7] = [
    ("README.md", "README.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("CITATION.cff", "CITATION.cff"),
    ("SECURITY.md", "SECURITY.md"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("crates/ctdg/data/NOTICE", "NOTICE"),
];

/// All files of a release in memory.
pub(crate) struct Release {
    /// `hopedgn-VERSION-TARGET`.
    name: String,
    files: Vec<File>,
    bill: String,
}

impl Release {
    /// Collects the files around `program`, which is run for its completions and manual pages.
    pub(crate) fn collect(program: &Path, target: &str, epoch: u64) -> anyhow::Result<Self> {
        let root = root()?;
        let program = program.canonicalize().with_context(|| format!("could not find {}", program.display()))?;
        let version = version_of(&program)?;
        let packages = dependencies::read(&root, target)?;
        let bill = sbom::cyclonedx(&packages, target, epoch)?;
        let mut files = vec![
            File { is_program: true, ..File::new("hopedgn", read(&program)?) },
            File::new("THIRD-PARTY.md", licences::third_party(&packages, target)?),
            File::new("sbom.cdx.json", bill.clone()),
        ];
        for (path, name) in DOCUMENTS {
            files.push(File::new(name, read(&root.join(path))?));
        }
        files.extend(in_folder(&root.join("docs/schemas"), "schemas")?);
        for (shell, name) in COMPLETIONS {
            files.push(File::new(format!("completions/{name}"), stdout(&program, &["completions", shell])?));
        }
        let pages = tempfile::tempdir().context("could not create a folder for manual pages")?;
        let folder = pages.path().to_str().context("found a folder for temporary files that is not UTF-8")?;
        stdout(&program, &["man", folder, "--quiet"])?;
        files.extend(in_folder(pages.path(), "man/man1")?);
        Ok(Self { name: format!("hopedgn-{version}-{target}"), files, bill })
    }

    /// The files to publish: the archive, the bill of materials, and their checksums.
    pub(crate) fn pack(self, epoch: u64) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        let Self { name, files, bill } = self;
        let archive = tar_gz(&name, files, epoch)?;
        let mut packed = vec![(format!("{name}.tar.gz"), archive), (format!("{name}.cdx.json"), bill.into_bytes())];
        // As `sha256sum --check SHA256SUMS` reads it.
        let sums: Vec<String> = packed.iter().map(|(name, bytes)| format!("{}  {name}\n", sha256(bytes))).collect();
        packed.push(("SHA256SUMS".to_owned(), sums.concat().into_bytes()));
        Ok(packed)
    }
}

/// The repository.
fn root() -> anyhow::Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().context("could not find the repository")
}

/// The version that the program states, which must be that of the sources.
fn version_of(program: &Path) -> anyhow::Result<&'static str> {
    let text = String::from_utf8(stdout(program, &["--version"])?)?;
    let (found, expected) = (text.split_whitespace().nth(1).unwrap_or_default(), env!("CARGO_PKG_VERSION"));
    anyhow::ensure!(found == expected, "found a program of version {found:?}, expected {expected}; build it again");
    Ok(expected)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("could not read {}", path.display()))
}

/// The files directly in `folder`, below `name` in the archive.
fn in_folder(folder: &Path, name: &str) -> anyhow::Result<Vec<File>> {
    let entries = fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))?;
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry?.path();
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(File::new(format!("{name}/{file_name}"), read(&path)?))
    };
    let files: Vec<File> = entries.map(file).collect::<anyhow::Result<_>>()?;
    anyhow::ensure!(!files.is_empty(), "found no file in {}, expected some", folder.display());
    Ok(files)
}

/// What the program prints.
fn stdout(program: &Path, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| format!("could not start {}", program.display()))?;
    let (words, error) = (arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    anyhow::ensure!(output.status.success(), "{} {words}: {error}", program.display());
    Ok(output.stdout)
}

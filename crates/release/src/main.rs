//! Packs a release: the program with completions, manual pages, schemas and licences as one archive, a bill of materials beside it,
//! and their checksums. `scripts/release` builds the program and calls this.
//!
//! The same sources, program and time stamp give the same bytes.

mod archive;
mod contents;
mod dependencies;
mod licences;
mod sbom;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;

use archive::sha256;
use contents::Release;

/// Pack a release of hopedgn: archive, bill of materials, licences, checksums
#[derive(Debug, Parser)]
#[command(version, after_help = "Example:\n  scripts/release --check")]
struct Arguments {
    /// The program to pack
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// Target triple of the program
    #[arg(long, value_name = "TRIPLE")]
    target: String,
    /// Folder for the files
    #[arg(long, value_name = "DIR", default_value = "target/dist")]
    out: PathBuf,
    /// Time stamp of all files in the archive, in seconds since 1970
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH")]
    epoch: u64,
    /// Pack twice, compare, and write nothing
    #[arg(long)]
    check: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let Arguments { program, target, epoch, .. } = &arguments;
    let pack = || Release::collect(program, target, *epoch)?.pack(*epoch);
    let files = pack()?;
    if arguments.check {
        let again = pack()?;
        for ((name, bytes), (_, other)) in files.iter().zip(&again) {
            anyhow::ensure!(bytes == other, "found other bytes in {name} the second time, expected the same");
        }
    }
    let mut stdout = std::io::stdout().lock();
    for (name, bytes) in &files {
        writeln!(stdout, "{name}: {} bytes, SHA-256 {}", bytes.len(), sha256(bytes))?;
    }
    if !arguments.check {
        let folder = &arguments.out;
        fs::create_dir_all(folder).with_context(|| format!("could not create {}", folder.display()))?;
        for (name, bytes) in &files {
            fs::write(folder.join(name), bytes).with_context(|| format!("could not write {name}"))?;
        }
        writeln!(stdout, "in {}", folder.display())?;
    }
    Ok(())
}

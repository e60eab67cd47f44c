//! Files of scores.

use std::io::{self, Write};
use std::path::Path;

use ctdg::dataset::{self, PendingFile, WriteFormat};

use super::rows::Scores;

/// Format of a file of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutFormat {
    /// CSV, TSV or Parquet.
    Table(WriteFormat),
    /// A JSON object a line.
    JsonLines,
}

impl OutFormat {
    /// By the extension.
    pub(crate) fn of_path(path: &Path) -> anyhow::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let plain = [".gz", ".zst", ".zstd"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
        if Path::new(plain).extension().is_some_and(|ending| ending == "jsonl" || ending == "ndjson") {
            return Ok(Self::JsonLines);
        }
        match WriteFormat::of_path(path) {
            Ok(format @ (WriteFormat::Text(_) | WriteFormat::Parquet)) => Ok(Self::Table(format)),
            _ => anyhow::bail!(
                "found --out {}, expected a name that ends in .csv, .tsv, .jsonl or .ndjson (or these with .gz or .zst), or in .parquet",
                path.display()
            ),
        }
    }
}

impl Scores<'_> {
    /// Writes a file, which appears complete or not at all.
    pub(crate) fn write_file(&self, path: &Path, format: OutFormat) -> anyhow::Result<()> {
        match format {
            OutFormat::Table(format) => dataset::write_table(path, format, self.len(), &self.typed_columns())?,
            OutFormat::JsonLines => PendingFile::write(path, |out| self.write_json_lines(out))?.commit()?,
        }
        Ok(())
    }

    fn write_json_lines(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..self.len() {
            serde_json::to_writer(&mut *out, &self.row(row))?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extension_decides_the_format() {
        let format = |name: &str| OutFormat::of_path(Path::new(name)).ok();
        assert_eq!(format("a/scores.csv"), Some(OutFormat::Table(WriteFormat::Text(b','))));
        assert_eq!(format("scores.tsv.gz"), Some(OutFormat::Table(WriteFormat::Text(b'\t'))));
        assert_eq!(format("scores.parquet"), Some(OutFormat::Table(WriteFormat::Parquet)));
        for name in ["scores.jsonl", "scores.ndjson", "scores.jsonl.gz", "scores.ndjson.zst"] {
            assert_eq!(format(name), Some(OutFormat::JsonLines), "{name}");
        }
        for name in ["scores", "scores.json", "scores.ctdg", "scores.parquet.gz", ".gz", "csv"] {
            assert_eq!(format(name), None, "{name}");
        }
    }
}

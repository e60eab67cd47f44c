//! Datasets of an experiment: `--data-dir`, and where a dataset is looked for.

use std::path::{Path, PathBuf};

use clap::Args;
use ctdg::dataset;
use ctdg::fetch;

use crate::commands::data_args::default_data_folder;

/// The folder of datasets.
#[derive(Debug, Clone, Args)]
pub(crate) struct DataDirArgs {
    /// Folder of datasets as NAME.ctdg, NAME.csv.gz, NAME.csv or NAME/NAME.csv.gz [default: ~/.local/share/hopedgn]
    #[arg(long, value_name = "DIR", env = "HOPEDGN_DATA_DIR", hide_env_values = true)]
    data_dir: Option<PathBuf>,
}

impl DataDirArgs {
    /// The argument of `hopedgn train --data` for the dataset `name`; if it is missing, how to get it.
    pub(crate) fn find(&self, name: &str) -> Result<String, String> {
        if name == dataset::COLLEGEMSG {
            return Ok(name.to_owned());
        }
        let default = default_data_folder();
        let known = fetch::Source::named(name).is_ok();
        for folder in self.data_dir.iter().chain(default.as_ref().filter(|_| known)) {
            let fetched = folder.join(name).with_extension(fetch::EXTENSION);
            let files = [fetched, folder.join(format!("{name}.csv.gz")), folder.join(format!("{name}.csv"))];
            let inner = folder.join(name).join(format!("{name}.csv.gz"));
            if let Some(file) = files.into_iter().chain([inner]).find(|file| file.is_file()) {
                return Ok(file.display().to_string());
            }
        }
        Err(if known {
            format!("hopedgn data fetch {name}{}", self.flag())
        } else {
            format!("put {name}.csv.gz into a folder and name the folder with --data-dir")
        })
    }

    /// The folder, if one was named.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.data_dir.as_deref()
    }

    /// The flag as a command line takes it.
    pub(crate) fn flag(&self) -> String {
        self.data_dir.as_ref().map(|folder| format!(" --data-dir {}", folder.display())).unwrap_or_default()
    }
}

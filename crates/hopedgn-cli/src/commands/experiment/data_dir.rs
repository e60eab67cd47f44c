//! Where the data of an experiment lie.

use std::path::PathBuf;

use clap::Args;
use ctdg::dataset;
use ctdg::fetch;

use crate::commands::data_args::own_folder;

/// Where data sets lie.
#[derive(Debug, Clone, Args)]
pub(crate) struct Place {
    /// Folder with the data sets as NAME.ctdg, NAME.csv.gz, NAME.csv or NAME/NAME.csv.gz [default: that of fetched ones]
    #[arg(long, value_name = "DIR", env = "HOPEDGN_DATA_DIR", hide_env_values = true)]
    data_dir: Option<PathBuf>,
}

impl Place {
    /// What `hopedgn train --data` takes for the data set `name`; if it is not there, how to get it.
    pub(crate) fn find(&self, name: &str) -> Result<String, String> {
        if name == dataset::COLLEGEMSG {
            return Ok(name.to_owned());
        }
        let own = own_folder();
        let known = fetch::Source::named(name).is_ok();
        for folder in self.data_dir.iter().chain(own.as_ref().filter(|_| known)) {
            let fetched = folder.join(name).with_extension(fetch::EXTENSION);
            let files = [fetched, folder.join(format!("{name}.csv.gz")), folder.join(format!("{name}.csv"))];
            let inner = folder.join(name).join(format!("{name}.csv.gz"));
            if let Some(file) = files.into_iter().chain([inner]).find(|file| file.is_file()) {
                return Ok(file.display().to_string());
            }
        }
        Err(if known {
            format!("hopedgn data fetch {name}{}", self.typed())
        } else {
            format!("put {name}.csv.gz into a folder and name that with --data-dir")
        })
    }

    pub(crate) fn typed(&self) -> String {
        self.data_dir.as_ref().map(|folder| format!(" --data-dir {}", folder.display())).unwrap_or_default()
    }
}

//! Error messages with the way out as flags and commands. Libraries state what was found and expected; this module adds what to
//! type. Only flags of the command at hand are named; without them the words of the library stand.

use std::borrow::Cow;
use std::error::Error as StdError;

use ctdg::error::Remedy;
use hopedgn::Error;
use hopedgn::tensor::Error as TensorError;

/// The message of an error of a command with `flags`, which have no dashes: its causes from the outermost to the innermost, each
/// with the way out.
pub(crate) fn message(error: &anyhow::Error, flags: &[String]) -> String {
    let causes: Vec<String> = error.chain().map(|cause| cause_message(cause, flags)).collect();
    causes.join(": ")
}

fn cause_message(cause: &(dyn StdError + 'static), flags: &[String]) -> String {
    let message = if let Some(error) = cause.downcast_ref::<ctdg::Error>() {
        data_message(error)
    } else if let Some(error) = cause.downcast_ref::<TensorError>() {
        tensor_message(error)
    } else if let Some(error) = cause.downcast_ref::<Error>() {
        match error {
            Error::Data(error) => data_message(error),
            Error::Tensor(error) => tensor_message(error),
            error => model_message(error),
        }
    } else {
        return cause.to_string();
    };
    let plain = cause.to_string();
    let is_new = |flag: &&str| !plain.contains(&format!("--{flag}"));
    let is_known = named_flags(&message).into_iter().filter(is_new).all(|flag| flags.iter().any(|known| known == flag));
    if is_known { message } else { plain }
}

/// The flags that a text names, without those of other commands in backticks.
fn named_flags(text: &str) -> Vec<&str> {
    let own = text.split('`').step_by(2);
    let flags =
        own.flat_map(|part| part.split([' ', '(', ')', ',', ';', ':', '.'])).filter_map(|word| word.strip_prefix("--"));
    flags.filter(|flag| !flag.is_empty()).collect()
}

/// The words of the library where the way out is no flag.
fn data_message(error: &ctdg::Error) -> String {
    match error.remedy().and_then(data_advice) {
        Some(advice) => format!("{}; {advice}", error.finding()),
        None => error.to_string(),
    }
}

fn data_advice(remedy: Remedy) -> Option<Cow<'static, str>> {
    Some(match remedy {
        Remedy::NameColumns => {
            "name the columns with --src, --dst and --time (a name or a position from 1), or give --no-header".into()
        }
        Remedy::ChooseColumnsByPosition => {
            "rename one, or choose columns by position with --src, --dst and --time".into()
        }
        Remedy::RepairLog => "restore a backup, or give --repair, which keeps every whole event".into(),
        Remedy::Sort => "sort the file, or let --sort do it".into(),
        Remedy::DeclareTimeUnit => {
            "if these are Unix times, state their unit with --time-unit s, ms, us or ns; otherwise subtract the first time, or divide"
                .into()
        }
        Remedy::CorrectTimeUnit => "state another unit with --time-unit, or leave it out".into(),
        Remedy::NameDelimiter(None) => "state the character between fields with --delimiter".into(),
        Remedy::NameDelimiter(Some(guess)) => {
            format!("state the character between fields with --delimiter, here perhaps --delimiter '{guess}'").into()
        }
        Remedy::WaiveVerification => "accept what cannot be verified with --insecure".into(),
        Remedy::TextIds => "read the ids as text with --ids text".into(),
        Remedy::CorrectValue => {
            "correct the value, or choose other columns with --src, --dst, --time, --label and --features".into()
        }
        Remedy::Fetch(name) => format!("fetch it with `hopedgn data fetch {name}`").into(),
        Remedy::ListDatasets => "see `hopedgn data list`".into(),
        Remedy::SmallerK => "take a smaller --k, or allow more with --max-memory".into(),
        Remedy::ConvertAgain => "convert the original file again with `hopedgn data convert`".into(),
        Remedy::IndexAgain => "build it again with `hopedgn data index`, or remove its folder".into(),
        Remedy::BuildIndex => {
            "write them as .ctdg with `hopedgn data convert` and build its index with `hopedgn data index`, which takes more".into()
        }
        Remedy::RetryLater => "the server is busy or down; run the same command again later".into(),
        Remedy::DownloadByHand => {
            "the file may have moved; download it by hand and read it with `hopedgn data convert`".into()
        }
        Remedy::CheckConnection => {
            "check the connection and the proxy settings, then run the same command again".into()
        }
        Remedy::Resume => "run the same command again; the download continues from there".into(),
        Remedy::Redownload => "the download has been removed; run the same command again".into(),
        _ => return None,
    })
}

fn tensor_message(error: &TensorError) -> String {
    match error {
        TensorError::NoGpu { .. } | TensorError::NotOnGpu { .. } => format!("{error}; compute with --device cpu"),
        TensorError::Cuda { .. } => format!("{error}; continue with --device cpu"),
        _ => error.to_string(),
    }
}

fn model_message(error: &Error) -> String {
    let advice: Cow<'static, str> = match error {
        // These name no way out of their own.
        Error::Config { .. } => {
            let message = error.to_string();
            let separator = if message.ends_with('?') { "" } else { ";" };
            return format!("{message}{separator} `hopedgn train --show-config` lists every setting");
        }
        Error::NoTestEvents { .. } => return format!("{error}; name a file with such events with --data"),
        Error::Labels { .. } => return format!("{error}; name the column of labels with --label"),
        Error::NotExplained { .. } => return format!("{error}; score without --explain"),
        Error::TooMuchMemory { .. } => {
            "allow more with --max-memory, choose a smaller model with --set model.d-out, or use a machine with more memory".into()
        }
        Error::DataMismatch { .. } => "name that file with --data, and read it with the same flags".into(),
        Error::RunFolderTaken { .. } => "continue a run with --resume, or name another folder with --out".into(),
        Error::OtherSplit { .. } => "train another run with `hopedgn train --protocol tgb`".into(),
        Error::NotARunFolder { .. } => "`hopedgn train` makes one".into(),
        Error::NoWeights { folder } => {
            let folder = folder.display();
            format!("train further with `hopedgn train --resume {folder} --epochs N`, or train again in a new folder")
                .into()
        }
        Error::NoCheckpoint { .. } => "take the file from a copy, or train in a new folder with --out".into(),
        Error::TrainingNotComplete { folder } => {
            format!("continue its training with `hopedgn train --resume {}`", folder.display()).into()
        }
        _ => return error.to_string(),
    };
    error.with_advice(&advice)
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use ctdg::Problem;

    use super::*;

    /// The message where every flag that it names exists.
    fn message_of(error: impl Into<anyhow::Error>) -> String {
        let flags = "src dst time no-header sort time-unit delimiter ids label features device data resume out explain";
        let flags: Vec<String> = flags.split(' ').map(str::to_owned).collect();
        message(&error.into(), &flags)
    }

    #[test]
    fn flags_that_the_command_lacks_are_not_named() {
        let error = || ctdg::Error::from(Problem::TimeBackwards { found: 2.0, previous: 3.0 });
        assert_eq!(message(&error().into(), &["src".to_owned()]), error().to_string());
        let no_gpu = TensorError::NoGpu { reason: "no driver".into() };
        assert_eq!(message(&no_gpu.into(), &[]), "no GPU can be used: no driver");
        let taken = Error::RunFolderTaken { folder: "runs/a".into() };
        assert!(
            message(&taken.into(), &["out".to_owned()]).ends_with("continue the run in it, or choose another folder")
        );
        let fetch = ctdg::Error::from(Problem::NotFetched { name: "reddit".into() });
        assert!(message(&fetch.into(), &[]).ends_with("`hopedgn data fetch reddit`"), "a command of its own");
    }

    #[test]
    fn flags_are_found_in_words_and_not_in_commands() {
        assert_eq!(named_flags("name it with --data, or (--sort); see `hopedgn train --resume DIR`"), ["data", "sort"]);
        assert_eq!(named_flags("here perhaps --delimiter ';' -- or not"), ["delimiter"]);
    }

    #[test]
    fn flags_replace_the_neutral_remedy_of_the_library() {
        let error = || ctdg::Error::from(Problem::TimeBackwards { found: 2.0, previous: 3.0 });
        let expected =
            "found the time 2 after 3, expected times that never go backwards; sort the file, or let --sort do it";
        assert_eq!(message_of(error()), expected);
        assert_eq!(message_of(Error::from(error())), expected, "the same inside an error of hopedgn");
        assert!(!error().to_string().contains("--"), "the library names no flag: {}", error());
    }

    #[test]
    fn a_dataset_to_fetch_is_named_in_the_command() {
        let error = ctdg::Error::from(Problem::NotFetched { name: "reddit".into() });
        assert!(message_of(error).ends_with("; fetch it with `hopedgn data fetch reddit`"));
    }

    #[test]
    fn contexts_stand_before_their_cause_and_remedies_behind() {
        let failed: Result<(), _> = Err(TensorError::NoGpu { reason: "no driver".into() });
        let message = message_of(failed.context("training stopped").expect_err("an error"));
        assert!(message.starts_with("training stopped: no GPU can be used: no driver; "), "{message}");
        assert!(message.ends_with("--device cpu"), "{message}");
    }

    #[test]
    fn commands_replace_the_neutral_remedy_of_a_run_folder() {
        let (taken, none) = ("runs/a; b".into(), "runs/c".into());
        assert_eq!(
            message_of(Error::RunFolderTaken { folder: taken }),
            "runs/a; b: the folder is not empty; continue a run with --resume, or name another folder with --out"
        );
        assert_eq!(
            message_of(Error::TrainingNotComplete { folder: none }),
            "runs/c: training is not complete; continue its training with `hopedgn train --resume runs/c`"
        );
    }

    #[test]
    fn every_setting_can_be_listed() {
        let error = Error::Config { place: "model.toml".into(), detail: "unknown field `kk`".into() };
        let expected = "model.toml: unknown field `kk`; `hopedgn train --show-config` lists every setting";
        assert_eq!(message_of(error), expected);
        let error = Error::Config { place: "model.kk=3".into(), detail: "no; did you mean `model.k`?".into() };
        assert!(
            message_of(error).ends_with("did you mean `model.k`? `hopedgn train --show-config` lists every setting")
        );
    }

    #[test]
    fn errors_without_flags_keep_the_words_of_the_library() {
        let error = ctdg::Error::from(Problem::NotUtf8);
        assert_eq!(message_of(ctdg::Error::from(Problem::NotUtf8)), error.to_string());
        assert_eq!(message_of(anyhow::anyhow!("found one, expected two")), "found one, expected two");
    }
}

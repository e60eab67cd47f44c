//! Error messages with the way out as arguments of Python. Libraries state what was found and expected; this module adds what to
//! write.

use std::borrow::Cow;

use ctdg::error::{Remedy, printable_lines};
use hopedgn::Error;
use hopedgn::tensor::Error as TensorError;

/// The message of an error.
pub(crate) fn message(error: &Error) -> String {
    let text = match error {
        Error::Data(error) => match error.remedy().and_then(data_advice) {
            Some(advice) => format!("{}; {advice}", error.finding()),
            None => error.to_string(),
        },
        Error::Tensor(error) => tensor_message(error),
        error => model_message(error),
    };
    printable_lines(&text).into_owned()
}

fn data_advice(remedy: Remedy) -> Option<Cow<'static, str>> {
    Some(match remedy {
        Remedy::NameColumns => {
            "name the columns with src=, dst= and time= (a name or a position from 1), or pass header=False for a file".into()
        }
        Remedy::ChooseColumnsByPosition => "rename one, or choose columns by position with src=, dst= and time=".into(),
        Remedy::Sort => "sort the events by time, or pass sort=True".into(),
        Remedy::DeclareTimeUnit => {
            "if these are Unix times, state their unit with time_unit=\"s\", \"ms\", \"us\" or \"ns\"; otherwise subtract the first \
             time, or divide"
                .into()
        }
        Remedy::CorrectTimeUnit => "state another unit with time_unit=, or leave it out".into(),
        Remedy::NameDelimiter(None) => "state the character between fields with delimiter=".into(),
        Remedy::NameDelimiter(Some(guess)) => {
            format!("state the character between fields with delimiter=, here perhaps delimiter={guess:?}").into()
        }
        Remedy::TextIds => "read the ids as text: pass the column as strings, or ids=\"text\" for a file".into(),
        Remedy::CorrectValue => {
            "correct the value, or choose other columns with src=, dst=, time=, label= and features=".into()
        }
        Remedy::FillNulls => "drop the rows without a value, or fill them in".into(),
        Remedy::Fetch(name) => format!("fetch it with `hopedgn data fetch {name}` in a shell").into(),
        Remedy::SmallerK => "take a smaller k, or allow more with max_memory=".into(),
        Remedy::ConvertAgain => "write the events again with Events.write".into(),
        _ => return None,
    })
}

fn tensor_message(error: &TensorError) -> String {
    match error {
        TensorError::NoGpu { .. } | TensorError::NotOnGpu { .. } | TensorError::Cuda { .. } => {
            format!("{error}; compute with device=\"cpu\"")
        }
        _ => error.to_string(),
    }
}

fn model_message(error: &Error) -> String {
    let advice: Cow<'static, str> = match error {
        Error::Config { .. } => {
            let message = error.to_string();
            let separator = if message.ends_with('?') { "" } else { ";" };
            return format!("{}{separator} hopedgn.settings(model) lists every setting", with_python_name(&message));
        }
        Error::NoTestEvents { .. } => return format!("{error}; pass events that have such"),
        Error::Labels { .. } => return format!("{error}; name the column of labels with label="),
        Error::DataMismatch { .. } => "pass the events that the model was fitted on with events=".into(),
        Error::RunFolderTaken { .. } => "continue its run with fit(events, resume=True), or name another folder".into(),
        Error::OtherSplit { .. } => "fit another model with protocol=\"tgb\"".into(),
        Error::NotARunFolder { .. } => "fit(…, run=…) and save make one".into(),
        Error::NoWeights { .. } | Error::TrainingNotComplete { .. } => {
            "continue its training with fit(events, resume=True)".into()
        }
        _ => return error.to_string(),
    };
    error.with_advice(&advice)
}

/// The setting of "did you mean" under its name in Python: `train.lr` as `train__lr`.
fn with_python_name(message: &str) -> String {
    const ASKED: &str = "did you mean `";
    match message.split_once(ASKED) {
        Some((before, rest)) => {
            let (name, after) = rest.split_once('`').unwrap_or((rest, ""));
            format!("{before}{ASKED}{}`{after}", name.replace('.', "__").replace('-', "_"))
        }
        None => message.to_owned(),
    }
}

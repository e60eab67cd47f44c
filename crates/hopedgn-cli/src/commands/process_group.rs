//! The processes that train together, as the environment names them: `RANK`, `WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`.

use std::time::Duration;

use anyhow::Context;
use hopedgn::distributed::{GroupOptions, join};
use hopedgn::tensor::ProcessGroup;

use crate::output::Output;

const NAMES: [&str; 4] = ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"];

/// Waits for the other processes of the environment; without `WORLD_SIZE`, or with 1, this process is alone.
pub(crate) fn from_environment(output: &Output) -> anyhow::Result<ProcessGroup> {
    let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let Some(options) = options(&variable)? else { return Ok(ProcessGroup::default()) };
    let GroupOptions { rank, n_ranks, address, .. } = &options;
    output.remark(format_args!("rank {rank} of {n_ranks}: waiting for the others at {address}"));
    Ok(join(options)?)
}

fn options(variable: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Option<GroupOptions>> {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty());
    let needed = |name: &str| {
        let others = NAMES.join(", ");
        given(name).with_context(|| {
            format!("found WORLD_SIZE but no {name}, expected all of {others}; set it for every process")
        })
    };
    let number = |name: &'static str| -> anyhow::Result<usize> {
        let text = needed(name)?;
        text.parse().ok().with_context(|| format!("found {name}={text}, expected a whole number of at least 0"))
    };
    let seconds = |name: &'static str, usual: Duration| -> anyhow::Result<Duration> {
        let Some(text) = given(name) else { return Ok(usual) };
        let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        time.filter(|time| !time.is_zero()).with_context(|| format!("found {name}={text}, expected seconds above 0"))
    };
    if given("WORLD_SIZE").is_none() || number("WORLD_SIZE")? == 1 {
        return Ok(None);
    }
    let (rank, n_ranks) = (number("RANK")?, number("WORLD_SIZE")?);
    let port = number("MASTER_PORT")?;
    let address = format!("{}:{port}", needed("MASTER_ADDR")?);
    Ok(Some(GroupOptions {
        hosts: rank == 0,
        silence: seconds("HOPEDGN_SILENCE", GroupOptions::SILENCE)?,
        patience: seconds("HOPEDGN_PATIENCE", GroupOptions::PATIENCE)?,
        ..GroupOptions::new(rank, n_ranks, &address)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Option<GroupOptions>, String> {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        options(&find).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_make_a_group_and_wrong_ones_are_named() {
        let place = [("RANK", "1"), ("MASTER_ADDR", "node-0"), ("MASTER_PORT", "29500")];
        let with = |more: &[(&str, &str)]| of(&[&place, more].concat());
        assert!(
            of(&[]).unwrap().is_none()
                && with(&[]).unwrap().is_none()
                && with(&[("WORLD_SIZE", "1")]).unwrap().is_none()
        );
        let group = with(&[("WORLD_SIZE", "2"), ("HOPEDGN_SILENCE", "2.5")]).unwrap().unwrap();
        assert_eq!((group.rank, group.n_ranks, group.address.as_str(), group.hosts), (1, 2, "node-0:29500", false));
        assert_eq!((group.silence, group.patience), (Duration::from_millis(2500), GroupOptions::PATIENCE));
        assert!(
            of(&[("WORLD_SIZE", "2")]).unwrap_err().starts_with("found WORLD_SIZE but no RANK, expected all of RANK,")
        );
        assert_eq!(
            with(&[("WORLD_SIZE", "two")]).unwrap_err(),
            "found WORLD_SIZE=two, expected a whole number of at least 0"
        );
        let silence = with(&[("WORLD_SIZE", "2"), ("HOPEDGN_SILENCE", "-1")]).unwrap_err();
        assert_eq!(silence, "found HOPEDGN_SILENCE=-1, expected seconds above 0");
    }
}

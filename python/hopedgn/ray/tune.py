"""A search over settings with Ray Tune, which stops bad trials early."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from hopedgn import _native
from hopedgn._settings import flattened
from hopedgn.errors import HopedgnError
from hopedgn.events import Events
from hopedgn.predictor import LinkPredictor
from hopedgn.ray._cluster import connect, most_workers, ray, resources
from hopedgn.ray._files import shared_path, write_whole
from hopedgn.ray._job import digest
from hopedgn.ray._model import device_of
from hopedgn.ray._shown import Shown

__all__ = ["Tuned", "tune"]

RESULT = "_tuned.json"
#: How often a trial is begun again when its node or its process dies.
RETRIES = 3


class Tuned(NamedTuple):
    """What a search found."""

    #: The settings of the best trial, as :class:`~hopedgn.LinkPredictor` takes them.
    best: dict[str, Any]
    #: Its metric, at its best epoch.
    value: float
    #: Its run folder, trained to the end and tested.
    run: Path
    #: A row for each trial, the best first: settings, the metric at its best epoch, that epoch, epochs that were trained, state.
    trials: list[dict[str, Any]]

    def table(self) -> Any:
        """The trials as a ``pandas.DataFrame``."""
        import pandas

        return pandas.DataFrame([{"trial": row["trial"]} | row["settings"] | {k: v for k, v in row.items() if k != "settings"} for row in self.trials])


def tune(
    space: Mapping[str, Any],
    events: Events | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    model: str = "stats",
    metric: str = "val_transductive_ap",
    mode: str = "max",
    samples: int = 20,
    epochs: int | None = None,
    grace_epochs: int = 1,
    reduction_factor: float = 3,
    search_seed: int = 0,
    num_cpus: float = 1,
    num_gpus: float = 0,
    keep_runs: bool = False,
    address: str | None = None,
    progress: str | bool = "auto",
    **settings: Any,
) -> Tuned:
    """Searches settings of a model by a validation metric: random search with ASHA, which after some epochs goes on with the best trials only.

    >>> import hopedgn.ray
    >>> from ray.tune import loguniform
    >>> found = hopedgn.ray.tune(  # doctest: +SKIP
    ...     {"train__lr": loguniform(1e-5, 1e-2), "model__dropout": [0.0, 0.1, 0.2]}, "mail.csv", model="hopedgn", samples=30, out="search")
    >>> found.best, found.run  # doctest: +SKIP
    ({'train__lr': 0.00042, 'model__dropout': 0.1}, PosixPath('search/best'))

    Parameters
    ----------
    space:
        Settings by the names of :func:`hopedgn.settings`, each with a list to choose from, ``ray.tune.grid_search([…])`` or a distribution
        such as ``ray.tune.loguniform(1e-5, 1e-2)``.
    events:
        Events, which are sent to the nodes, or a file that every node sees.
    out:
        A folder that every node can write. The winner's run folder is ``out/best``; calling again continues the same search, and returns
        its result once it is complete.
    metric, mode:
        A number of ``LinkPredictor.history_`` and whether it is to be the largest (``"max"``) or smallest (``"min"``). A trial counts by its
        best epoch, which is also the one whose weights a run keeps by its own rule of selection.
    samples:
        How many trials; with ``grid_search`` how often the whole grid.
    epochs, grace_epochs, reduction_factor:
        Of ASHA: the most epochs of a trial, by default those of the settings; the fewest; and that one of so many trials goes on at each rung.
    num_cpus, num_gpus:
        Of each trial, which computes with as many threads.
    keep_runs:
        Whether to keep the run folders of all trials in ``out/trials``.
    **settings:
        Settings that all trials share, such as ``seed`` or ``train__batch``.

    Trials that lose their node resume from their last epoch elsewhere. The best trial is trained to its end if it was stopped early. Which
    trials are stopped depends on which finish their epochs first, so two searches may try the same settings for different numbers of
    epochs; the run of a trial is bit for bit that of ``LinkPredictor`` with its settings.
    """
    resources(num_cpus, num_gpus)
    folder = shared_path(out, "out")
    source = events if isinstance(events, Events) else str(shared_path(events, "events"))
    spec: dict[str, Any] = {"model": model, "epochs": epochs, "metric": metric, "threads": max(1, int(num_cpus)), "device": device_of(num_gpus)}
    spec |= {"folder": str(folder), "settings": settings}
    most = _check(space, spec, mode)
    identity = digest([_written(space), spec, samples, mode, grace_epochs, reduction_factor, search_seed, _about(source)])
    done = _opened(folder, identity)
    if done is None:
        connect(address)
        most_workers(num_cpus, num_gpus)
        shown = Shown(progress, "trials")
        # One more than there are: a trial that reached its last epoch is tested, too.
        scheduler = {"max_t": most + 1, "grace_period": min(grace_epochs, most), "reduction_factor": reduction_factor}
        search = {"metric": metric, "mode": mode, "num_samples": samples, "seed": search_seed}
        results = _search(space, source, spec, scheduler, search, {"cpu": num_cpus, "gpu": num_gpus}, shown)
        done = _finish(results, source, spec, mode, {"num_cpus": num_cpus, "num_gpus": num_gpus})
        write_whole(folder / RESULT, lambda file: file.write(json.dumps({"job": identity} | done, indent=1).encode()))
        if not keep_runs:
            shutil.rmtree(folder / "trials", ignore_errors=True)
            shutil.rmtree(folder / "tune", ignore_errors=True)
    return Tuned(done["best"], done["value"], folder / "best", done["trials"])


def _check(space: Mapping[str, Any], spec: dict[str, Any], mode: str) -> int:
    """Refuses settings that the model does not have, before anything starts; the most epochs of a trial."""
    if mode not in ("max", "min"):
        raise HopedgnError(f'found mode={mode!r}, expected "max" or "min"', "invalid-argument")
    if not space:
        raise HopedgnError("found an empty space, expected settings to search, such as {'train__lr': [1e-3, 1e-4]}", "invalid-argument")
    drawn = {name: _example(value) for name, value in space.items()}
    predictor = _predictor(spec, drawn, Path("run"))
    config = json.loads(_native.check_settings(predictor._options(Path("run"), False, None), "events"))
    return int(config["train"]["epochs"])


def _example(value: Any) -> Any:
    """Some value of a dimension of a space."""
    if isinstance(value, dict) and "grid_search" in value:
        return cast("Any", value)["grid_search"][0]
    if hasattr(value, "domain_str"):
        return cast("Any", value).sample()
    return value[0] if isinstance(value, (list, tuple)) else value


def _written(space: Mapping[str, Any]) -> dict[str, str]:
    """A space as text that is the same in every process."""
    return {name: f"{type(value).__name__} {value.domain_str}" if hasattr(value, "domain_str") else repr(value) for name, value in space.items()}


def _about(source: Events | str) -> Any:
    if isinstance(source, str):
        status = os.stat(source)
        return [source, status.st_size, status.st_mtime_ns]
    return [len(source), source.n_nodes, source._native.end]


def _opened(folder: Path, identity: str) -> dict[str, Any] | None:
    """Makes the folder, or continues in it; the result if it is there."""
    begun, result = folder / "_search.json", folder / RESULT
    if begun.exists():
        if json.loads(begun.read_text(encoding="utf-8")).get("job") != identity:
            raise HopedgnError(f"{folder}: found another search, expected a new folder or the same search; choose another folder", "other-job")
        return json.loads(result.read_text(encoding="utf-8")) if result.exists() else None
    if folder.exists() and any(folder.iterdir()):
        raise HopedgnError(f"{folder}: found a folder with other files, expected a new folder; choose another one", "invalid-argument")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(begun, lambda file: file.write(json.dumps({"job": identity}).encode()))
    return None


def _predictor(spec: Mapping[str, Any], drawn: Mapping[str, Any], run: Path) -> LinkPredictor:
    shared = {"epochs": spec["epochs"], "device": spec["device"]} | spec["settings"]
    return LinkPredictor(spec["model"], run=run, **(shared | dict(drawn)))


def _trained(drawn: Mapping[str, Any], source: Any, spec: Mapping[str, Any], run: Path, report: Any) -> None:
    """Trains a trial, or continues it."""
    _native.set_num_threads(spec["threads"])
    events = source if isinstance(source, Events) else Events.read(source)
    callbacks = [] if report is None else [report]
    _predictor(spec, drawn, run).fit(events, callbacks=callbacks, progress=False, resume=(run / "state.safetensors").exists())


def _trial(config: dict[str, Any], source: Any = None, spec: Any = None) -> None:
    """What Ray Tune calls for each trial."""
    from ray import tune as ray_tune

    library: Any = ray_tune

    def report(record: Mapping[str, Any]) -> None:
        numbers = {name: float(value) for name, value in flattened(record, "_").items() if isinstance(value, (int, float))}
        if spec["metric"] not in numbers:
            names = ", ".join(sorted(name for name in numbers if name != "epoch"))
            raise HopedgnError(f"found metric={spec['metric']!r}, expected one of {names}", "invalid-argument")
        library.report(numbers | {"epoch": int(record["epoch"])})

    run = Path(spec["folder"], "trials", library.get_context().get_trial_id())
    run.parent.mkdir(parents=True, exist_ok=True)
    if (run / "summary.json").exists():
        # It was complete when its node died.
        return
    if run.exists() and not (run / "state.safetensors").exists():
        shutil.rmtree(run)
    try:
        _trained(config, source, spec, run, report)
    except HopedgnError as error:
        # These settings fail wherever they are tried; what Ray Tune sees is tried again.
        run.with_suffix(".error").write_text(str(error), encoding="utf-8")


def _search(space: Any, source: Any, spec: Any, scheduler: Any, search: Any, per_trial: Any, shown: Shown) -> Any:
    """Runs the search, or what is left of it."""
    # Its tables on stdout, which `verbose=0` removes from the old form only.
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    from ray import tune as ray_tune
    from ray.tune.schedulers import ASHAScheduler
    from ray.tune.search.basic_variant import BasicVariantGenerator

    library: Any = ray_tune
    storage = Path(spec["folder"], "tune")
    trainable = library.with_resources(library.with_parameters(_trial, source=source, spec=spec), per_trial)
    choices = {name: library.choice(list(value)) if isinstance(value, (list, tuple)) else value for name, value in space.items()}
    if library.Tuner.can_restore(str(storage / "search")):
        tuner = library.Tuner.restore(str(storage / "search"), trainable=trainable, resume_errored=True, param_space=choices)
    else:
        asha: Any = ASHAScheduler
        generator: Any = BasicVariantGenerator
        seed = search.pop("seed")
        configured = library.TuneConfig(
            **search,
            scheduler=asha(time_attr="epoch", **scheduler),
            search_alg=generator(random_state=seed),
            trial_dirname_creator=_trial_name,
        )
        run_config = library.RunConfig(
            name="search", storage_path=str(storage), verbose=0, callbacks=[_shown_by(library, shown, spec["metric"])],
            failure_config=library.FailureConfig(max_failures=RETRIES),
        )
        tuner = library.Tuner(trainable, param_space=choices, tune_config=configured, run_config=run_config)
    try:
        return tuner.fit()
    finally:
        shown.close()


def _trial_name(trial: Any) -> str:
    return str(trial.trial_id)


def _shown_by(library: Any, shown: Shown, metric: str) -> Any:
    """A callback of Ray Tune that shows each epoch of each trial."""

    def on_trial_result(_self: Any, iteration: int, trials: Any, trial: Any, result: Any, **_: Any) -> None:
        shown.say(f"trial {trial.trial_id}: epoch {result['epoch']}, {metric} {result[metric]:.4f}")

    return type("ShownTrials", (library.Callback,), {"on_trial_result": on_trial_result})()


def _finish(results: Any, source: Any, spec: Any, mode: str, resources_: Any) -> dict[str, Any]:
    """The trials in order, and the best one's run folder, trained to its end."""
    folder = Path(spec["folder"])
    trials = [_row(result, folder, spec["metric"], mode) for result in results]
    sign = -1 if mode == "max" else 1
    trials.sort(key=lambda row: (row["value"] is None, sign * (row["value"] or 0.0), row["trial"]))
    if not trials or trials[0]["value"] is None:
        reason = next((row["error"] for row in trials if row["error"]), "no trial reported its metric")
        for begun in ("trials", "tune"):
            shutil.rmtree(folder / begun, ignore_errors=True)
        (folder / "_search.json").unlink(missing_ok=True)
        raise HopedgnError(f"{folder}: found no trial that completed an epoch, expected one: {reason}", "no-trial")
    best, run = trials[0], folder / "best"
    if not run.exists():
        kept = folder / "trials" / best["trial"]
        if not (kept / "summary.json").exists():
            ray.get(ray.remote(_trained).options(**resources_).remote(best["settings"], source, spec, kept, None))
        os.replace(kept, run)
    return {"best": best["settings"], "value": best["value"], "trials": trials}


def _row(result: Any, folder: Path, metric: str, mode: str) -> dict[str, Any]:
    """A trial by what its run folder recorded, which is also there when its node died."""
    trial = Path(result.path).name
    run = folder / "trials" / trial
    run = run if run.exists() else folder / "best"
    file = run / "metrics.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    epochs = [flattened(json.loads(line), "_") for line in lines]
    values = [(record[metric], record["epoch"]) for record in epochs if record.get(metric) is not None]
    pick = max if mode == "max" else min
    value, epoch = pick(values, key=lambda pair: pair[0]) if values else (None, None)
    refused = folder / "trials" / f"{trial}.error"
    error = refused.read_text(encoding="utf-8") if refused.exists() else None if result.error is None else str(result.error).strip().splitlines()[-1]
    state = "failed" if error is not None else "complete" if (run / "summary.json").exists() else "stopped early"
    row = {"trial": trial, "settings": dict(result.config or {}), "value": value, "epoch": epoch, "epochs": len(epochs), "state": state}
    return row | {"error": error}

"""LinkPredictor: train, predict, recommend, explain, evaluate, save and load."""

from __future__ import annotations

import inspect
import io
import json
import os
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hopedgn import _columns, _native, metrics
from hopedgn._evaluation import Candidates, candidate_file, evaluate_options
from hopedgn._group import Group, from_environment
from hopedgn._progress import Callback, Progress
from hopedgn._runs import EVENTS_FILE, device_options, keep_events, recorded_events, zipped
from hopedgn._settings import command_name, dotted, flattened, is_same, written
from hopedgn._tables import as_events, as_pairs, repeated
from hopedgn.errors import HopedgnError, HopedgnWarning, NotFittedError
from hopedgn.events import Events
from hopedgn.results import Explanation, Recommendation, Report

__all__ = ["LinkPredictor"]


class LinkPredictor:
    """Predicts which pair of nodes interacts next, by the conventions of scikit-learn.

    Parameters
    ----------
    model:
        ``"stats"`` (trains in seconds), ``"hopedgn"``, ``"dygformer"``, ``"tgn"``, … ; :func:`hopedgn.models` lists all.
    mite:
        Whether the model sees MITE, the times at which each neighbour interacted with both nodes. By default as the model has it.
    preset:
        Settings that go together: ``"quick"``, ``"best"`` or the name of a dataset. By default that of the dataset, as ``hopedgn train``
        chooses it by the name of the events.
    protocol:
        ``"dyglib"`` or ``"tgb"``: whose rules split the data and select the best epoch.
    epochs, seed, device, precision:
        As the flags of ``hopedgn train``.
    run:
        A new folder for checkpoints, metrics and the report. Without it everything is kept until the object goes away, and :meth:`save`
        writes it.
    **settings:
        Any other setting by its name in ``hopedgn.settings(model)``, ``.`` written as ``__`` and ``-`` as ``_``:
        ``train__lr=0.001`` is ``train.lr``, ``model__d_channel=8`` is ``model.d-channel``.

    >>> import hopedgn, numpy as np
    >>> t = np.arange(400)
    >>> events = hopedgn.Events.from_numpy(t % 20, (t + 1) % 20, t)  # twenty people, each of whom writes to the next one
    >>> model = hopedgn.LinkPredictor(epochs=2).fit(events, progress=False)
    >>> likely, unlikely = model.predict_proba([3, 3], [4, 11], time=400)
    >>> bool(likely > unlikely)
    True
    >>> model.recommend(3, k=1)[0].dst
    4
    """

    def __init__(
        self,
        model: str = "stats",
        *,
        mite: bool | None = None,
        preset: str | None = None,
        protocol: Literal["dyglib", "tgb"] | None = None,
        epochs: int | None = None,
        seed: int | None = None,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        precision: Literal["f32", "tf32", "bf16"] | None = None,
        run: str | os.PathLike[str] | None = None,
        **settings: Any,
    ) -> None:
        self.model = model
        self.mite = mite
        self.preset = preset
        self.protocol = protocol
        self.epochs = epochs
        self.seed = seed
        self.device = device
        self.precision = precision
        self.run = run
        self._settings = settings
        self._native: _native.Predictor | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._check()

    # ------------------------------------------------------------------ parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by name, settings included."""
        return {name: getattr(self, name) for name in _PARAMETERS} | self._settings

    def set_params(self, **params: Any) -> LinkPredictor:
        """Changes parameters; settings by their names with ``__``, as in the constructor."""
        before = self.get_params()
        self._assign(params)
        try:
            self._check()
        except HopedgnError:
            self._settings = {}
            self._assign(before)
            raise
        return self

    def _assign(self, params: Mapping[str, Any]) -> None:
        for name, value in params.items():
            if name in _PARAMETERS:
                setattr(self, name, value)
            else:
                self._settings = self._settings | {name: value}

    def _check(self) -> None:
        """Refuses settings that the model does not have, with the nearest name."""
        _native.check_settings(self._options(Path("run"), False, None), "events")

    def _options(
        self, run: Path, resume: bool, warm_start: str | os.PathLike[str] | None, group: Group | None = None
    ) -> str:
        settings: list[str] = []
        for short, long in (("epochs", "train__epochs"), ("mite", "model__mite")):
            if getattr(self, short) is not None and long in self._settings:
                raise HopedgnError(f"found {short} and {long}, expected one of them", "invalid-argument")
        if self.protocol not in (None, "dyglib", "tgb"):
            raise HopedgnError(f'found protocol={self.protocol!r}, expected "dyglib" or "tgb"', "invalid-argument")
        named = {"train.epochs": self.epochs, "seed": self.seed, "model.mite": self.mite}
        settings += [f"{name}={written(value)}" for name, value in named.items() if value is not None]
        settings += [f"{dotted(name)}={written(value)}" for name, value in self._settings.items()]
        return json.dumps(
            {
                "model": self.model,
                "preset": self.preset,
                "protocol": self.protocol,
                "settings": settings,
                "run": os.fspath(run),
                "resume": resume,
                "warm_start": None if warm_start is None else os.fspath(warm_start),
                "command": [command_name(), *sys.argv[1:]],
                "group": group,
            }
            | device_options(self.device, self.precision)
        )

    def __repr__(self) -> str:
        default = inspect.signature(LinkPredictor).parameters
        changed = {n: v for n, v in self.get_params().items() if n not in default or v != default[n].default}
        return f"LinkPredictor({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=False),
            classifier_tags=ClassifierTags(multi_class=False),
            input_tags=InputTags(string=True, categorical=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return self._native is not None

    # ------------------------------------------------------------------ training

    def fit(
        self,
        X: Any,
        y: object = None,
        *,
        callbacks: Iterable[Callback] = (),
        progress: str | bool = "auto",
        resume: bool = False,
        warm_start: str | os.PathLike[str] | None = None,
    ) -> LinkPredictor:
        """Trains on the first part of the events, selects the best epoch on the second and tests it on the rest.

        ``X`` is :class:`~hopedgn.Events`, or a table whose rows are events: a data frame, or an array of source, destination and time.
        ``y`` is ignored, since every event is one that happened. Each of ``callbacks`` is called with the metrics of every epoch, a dict;
        an exception that it raises ends training. ``progress`` is ``"auto"`` (a bar in a terminal or notebook if tqdm is installed,
        otherwise lines), ``"bar"``, ``"lines"`` or ``False``.

        Ctrl-C finishes the current step and saves. With a run folder, ``KeyboardInterrupt`` is raised then, and
        ``fit(events, resume=True)`` continues bit by bit as if nothing had happened. Without one, the best epoch so far is kept: a
        warning says so and ``fit`` returns; before the first epoch is complete there is nothing to keep, and ``KeyboardInterrupt`` is
        raised. ``warm_start`` names a run whose weights training begins with, on events that have grown.

        Several processes train one model together, bit for bit as one, if each is started with ``WORLD_SIZE``, its own ``RANK`` from 0, and
        the ``MASTER_ADDR`` and ``MASTER_PORT`` of rank 0 in its environment; rank 0 has the run folder. :func:`hopedgn.ray.fit` starts them.
        """
        return self._fit(as_events(X), callbacks, progress, resume, warm_start, from_environment(os.environ))

    def _fit(
        self,
        events: Events,
        callbacks: Iterable[Callback],
        progress: str | bool,
        resume: bool,
        warm_start: str | os.PathLike[str] | None,
        group: Group | None,
    ) -> LinkPredictor:
        if resume and self.run is None:
            raise HopedgnError("found resume=True without a run folder, expected run=, the folder to continue in", "invalid-argument")
        is_first = group is None or group["rank"] == 0
        folder = None if self.run is not None and is_first else tempfile.TemporaryDirectory(prefix="hopedgn-")
        own = None if folder is None else Path(folder.name, "run")
        run = Path(self.run) if self.run is not None else own
        assert run is not None
        if group is not None and not is_first:
            group = {**group, "folder": str(own)}
        shown = Progress(progress, callbacks)
        try:
            trained, raised = _native.fit(events._native, self._options(run, resume, warm_start, group), shown)
        finally:
            shown.close()
        if trained is not None:
            self._native, self._folder = trained, folder
            if folder is None:
                keep_events(run, events)
        if raised is None:
            return self
        if trained is None or self.run is not None or not isinstance(raised, KeyboardInterrupt):
            raise raised
        warnings.warn("training was interrupted; the best epoch so far is kept", HopedgnWarning, stacklevel=2)
        return self

    def update(self, events: Events) -> LinkPredictor:
        """Lets predictions look back on ``events``, which begin with those of the training; no weight changes."""
        native = self._fitted()
        folder = native.folder
        assert folder is not None
        self._native = _native.load(folder, events._native, json.dumps(device_options(self.device, self.precision)), False)
        return self

    # ------------------------------------------------------------------ predictions

    def predict_proba(self, src: Any, dst: Any = None, time: Any = None) -> NDArray[np.float32]:
        """The score of each pair from events strictly before its time: between 0 and 1, the higher the likelier.

        With three arguments ``[n]``: the scores. With one, a table of sources, destinations and times, ``[n, 2]`` as in scikit-learn,
        whose second column has the scores. Without ``time``, just after the last event. For models that were trained for intensities,
        such as the default, it is the probability that the next partner of the source is the destination; for others it is a score that
        ranks. A node without events is a new one.
        """
        if dst is not None:
            return self._predictions(src, dst, time)[0]
        scores = self._predictions(*as_pairs(src))[0]
        return np.stack([1 - scores, scores], axis=1)

    def predict_lift(self, src: Any, dst: Any, time: Any = None) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """How often each pair interacts, relative to a random one that has interacted (intensity), and how many times likelier than by
        chance the destination is the next partner (lift). For models that were trained for intensities."""
        likelihood = self._predictions(src, dst, time)[1]
        if likelihood is None:
            raise HopedgnError(
                'found a model without intensities, expected one that was trained for them; set train__objective="intensity"',
                "no-intensities",
            )
        return likelihood

    def decision_function(self, src: Any, dst: Any = None, time: Any = None) -> NDArray[np.float32]:
        """The logit of each pair: above 0 where it is likelier than a random one. Arguments as in :meth:`predict_proba`."""
        src, dst, time = (src, dst, time) if dst is not None else as_pairs(src)
        native = self._fitted()
        return native.logits(*self._queries(src, dst, time))

    def predict(self, src: Any, dst: Any = None, time: Any = None) -> NDArray[np.int64]:
        """1 for each pair that is likelier than a random one, otherwise 0. Arguments as in :meth:`predict_proba`."""
        return (self.decision_function(src, dst, time) > 0).astype(np.int64)

    def score(self, X: Any, y: Any = None) -> float:
        """Average precision. With labels ``y``, of the pairs in ``X``; without, ``X`` are later events, which are compared with one random
        destination each, as evaluation does it, and each looks back on the events of the training and on those of ``X`` before it."""
        if y is not None:
            return metrics.average_precision(y, self.decision_function(X))
        events, later = self.events_, as_events(X)
        if later == events or float(later.time[-1]) <= float(events.time[-1]):
            raise HopedgnError(
                "found events that are not later than those of the training, expected later ones; pass labels y to score any pairs",
                "no-test-events",
            )
        grown = events.append(later)
        folder = self._fitted().folder
        assert folder is not None
        native = _native.load(folder, grown._native, json.dumps(device_options(self.device, self.precision)), False)
        pool = np.unique(grown.dst)
        other = pool[np.random.RandomState(0).randint(0, len(pool), len(later))]
        src = _columns.names(np.concatenate([later.src, later.src]), "src")
        dst = _columns.names(np.concatenate([later.dst, other]), "dst")
        at = np.concatenate([later.time, later.time])
        labels = np.arange(len(at)) < len(later)
        return metrics.average_precision(labels, native.logits(src, dst, at))

    def recommend(self, src: Any, k: int = 10, *, at: Any = None, exclude_seen: bool = False) -> list[Recommendation]:
        """The ``k`` likeliest destinations of ``src`` at a time, by default just after the last event, the likeliest first.

        ``exclude_seen`` leaves out those that it interacted with before.
        """
        native = self._fitted()
        time = native.events.end if at is None else _columns.one_time(at, native.events, "at")
        best = json.loads(native.recommend(_columns.one_name(src, "src"), time, int(k), exclude_seen))
        return [Recommendation(**one) for one in best]

    def explain(self, src: Any, dst: Any, time: Any = None) -> Explanation:
        """Why the pair gets its score: common past neighbours, and the effect of every event. For models that see events one by one, such
        as ``model="hopedgn"``."""
        native = self._fitted()
        at = native.events.end if time is None else _columns.one_time(time, native.events)
        fields, text = native.explain(_columns.one_name(src, "src"), _columns.one_name(dst, "dst"), at)
        return Explanation(json.loads(fields), text)

    def evaluate(
        self,
        negatives: str | Sequence[str] = "random",
        *,
        ranking: int | Literal["all"] | None = None,
        protocol: Literal["dyglib", "tgb"] = "dyglib",
        candidates: Candidates | None = None,
        new: bool = False,
        start: Any = None,
        until: Any = None,
        progress: str | bool = False,
    ) -> dict[str, Any]:
        """Test metrics with untrained heuristics beside the model: the document that ``hopedgn evaluate --json`` prints.

        ``negatives`` is ``"random"``, ``"historical"``, ``"inductive"``, ``"all"``, a list of these or ``()``; ``ranking`` also ranks
        each true destination among so many others. ``protocol="tgb"`` ranks among TGB's candidates, 999 by default, or among
        ``candidates``: a file of JSON Lines, or a dict with those of each (source, destination, time), as py-tgb keeps its lists. ``new``
        tests on events after those of the training (:meth:`update`), ``start`` and ``until`` on those of some times.
        """
        native = self._fitted()
        options = evaluate_options(negatives, ranking, protocol, candidates is not None) | {
            "new": new,
            "from": None if start is None else _columns.one_time(start, native.events, "start"),
            "until": None if until is None else _columns.one_time(until, native.events, "until"),
        }
        shown = Progress(progress)
        try:
            with candidate_file(candidates, native.events) as file:
                evaluation, raised = native.evaluate(json.dumps(options | {"candidates": file}), shown)
        finally:
            shown.close()
        if raised is not None:
            raise raised
        document: dict[str, Any] = json.loads(evaluation)
        return document

    # ------------------------------------------------------------------ what was learned

    @property
    def events_(self) -> Events:
        """The events that predictions look back on."""
        return Events._of(self._fitted().events)

    @property
    def classes_(self) -> NDArray[np.int64]:
        """0 for pairs that do not interact, 1 for pairs that do."""
        self._fitted()
        return np.asarray([0, 1])

    @property
    def history_(self) -> Any:
        """Loss and validation metrics of every epoch: a ``pandas.DataFrame`` if pandas is installed, otherwise a dict of arrays."""
        records = [flattened(record, "_") for record in json.loads(self._fitted().history)]
        columns = {name: np.asarray([record.get(name, np.nan) for record in records]) for name in (records[0] if records else {})}
        try:
            import pandas
        except ImportError:
            return columns
        return pandas.DataFrame(columns)

    @property
    def summary_(self) -> dict[str, Any] | None:
        """The test metrics of the best epoch and more, as ``summary.json`` has them; ``None`` if training was interrupted."""
        summary = self._fitted().summary
        return None if summary is None else json.loads(summary)

    @property
    def config_(self) -> dict[str, Any]:
        """All settings of the training."""
        config: dict[str, Any] = json.loads(self._fitted().config)
        return config

    @property
    def run_(self) -> Path | None:
        """The run folder, if there is one that stays."""
        folder = self._fitted().folder
        return None if folder is None or self._folder is not None else Path(folder)

    def report(self) -> Report:
        """The HTML report: settings, curves and test metrics. A notebook shows it."""
        folder = self._fitted().folder
        assert folder is not None
        return Report(Path(folder, "report.html").read_text(encoding="utf-8"))

    def plot(self, ax: Any = None) -> Any:
        """Draws loss and validation metrics by epoch with matplotlib, and returns the axes."""
        import matplotlib.pyplot as plt

        history = self.history_
        if ax is None:
            _, ax = plt.subplots()
        epochs = np.asarray(history["epoch"])
        ax.plot(epochs, np.asarray(history["loss"]), color="gray", label="loss")
        ax.set(xlabel="epoch", ylabel="loss")
        right = ax.twinx()
        for name, words in (("val_transductive_ap", "AP"), ("val_inductive_ap", "AP, new nodes")):
            if name in history:
                right.plot(epochs, np.asarray(history[name]), marker="o", label=words)
        right.set_ylabel("validation")
        right.legend(loc="lower right")
        return ax

    # ------------------------------------------------------------------ saving

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a new run folder, which :meth:`load` and the command line read. Events that come from no file are written beside."""
        native = self._fitted()
        native.save(path)
        keep_events(Path(path), Events._of(native.events))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        events: Events | None = None,
        *,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        any_events: bool = False,
    ) -> LinkPredictor:
        """The best weights of a run folder, of Python or of ``hopedgn train``.

        ``events`` begin with those the run was trained on; later ones extend the history. By default they are read again from their file,
        or from the folder. ``any_events`` applies the model to another stream.
        """
        recorded = json.loads(_native.recorded_data(path))
        events = recorded_events(Path(path), recorded["data"]) if events is None else events
        native = _native.load(path, events._native, json.dumps(device_options(device, None)), any_events)
        predictor = cls(**_parameters_of(recorded["config"]), device=device)
        predictor._native = native
        return predictor

    def _fitted(self) -> _native.Predictor:
        if self._native is None:
            raise NotFittedError("found a model that was not fitted, expected a fitted one; call fit(events) first", "not-fitted")
        return self._native

    def _queries(self, src: Any, dst: Any, time: Any) -> tuple[Any, Any, NDArray[np.float64]]:
        native = self._fitted()
        sources, destinations = _columns.names(src, "src"), _columns.names(dst, "dst")
        n = max(_columns.count(sources), _columns.count(destinations))
        sources, destinations = (repeated(names, n, what) for names, what in ((sources, "src"), (destinations, "dst")))
        at = _columns.times(native.events.end if time is None else time, n, native.events)
        return sources, destinations, at

    def _predictions(
        self, src: Any, dst: Any, time: Any
    ) -> tuple[NDArray[np.float32], tuple[NDArray[np.float32], NDArray[np.float32]] | None]:
        native = self._fitted()
        return native.predictions(*self._queries(src, dst, time))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {"params": self.get_params(), "run": None}
        if self._native is not None:
            with tempfile.TemporaryDirectory() as folder:
                saved = Path(folder, "run")
                self._native.save(saved)
                Events._of(self._native.events).write(saved / EVENTS_FILE)
                state["run"] = zipped(saved)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["params"])  # type: ignore[misc]
        if state["run"] is not None:
            self._folder = tempfile.TemporaryDirectory(prefix="hopedgn-")
            run = Path(self._folder.name, "run")
            with zipfile.ZipFile(io.BytesIO(state["run"])) as archive:
                archive.extractall(run)
            events = Events.read(run / EVENTS_FILE)
            device = json.dumps(device_options(self.device, self.precision))
            self._native = _native.load(run, events._native, device, False)


_PARAMETERS = ("model", "mite", "preset", "protocol", "epochs", "seed", "device", "precision", "run")


def _parameters_of(config: dict[str, Any]) -> dict[str, Any]:
    """Parameters with which a new model would be trained as one with these settings was."""
    settings = flattened({"model": config["model"], "train": config["train"]}, "__")
    name = settings.pop("model__name")
    plain = LinkPredictor(name)
    default = json.loads(_native.check_settings(plain._options(Path("run"), False, None), "events"))
    usual = flattened({"model": default["model"], "train": default["train"]}, "__")
    epochs = settings.pop("train__epochs", None)
    changed = {name: value for name, value in settings.items() if value is not None and not is_same(usual.get(name), value)}
    changed = {name.replace("-", "_"): value for name, value in changed.items()}
    # A preset may set what has no effect on this model, which is refused in settings of a user.
    while (idle := _without_effect(name, changed)) is not None:
        del changed[idle]
    if config["split"] == "tgb" and changed.get("train__select") == "mrr":
        del changed["train__select"]
        changed["protocol"] = "tgb"
    elif config["split"] != "dyglib":
        changed["split"] = config["split"]
    return {"model": name, "epochs": epochs, "seed": config["seed"]} | changed


def _without_effect(model: str, settings: dict[str, Any]) -> str | None:
    """The first of the settings that has no effect on a model."""
    try:
        LinkPredictor(model, **settings)
    except HopedgnError as error:
        message = str(error)
        if "found no effect" in message:
            return next((name for name in settings if message.startswith(f"{dotted(name)}=")), None)
        raise
    return None

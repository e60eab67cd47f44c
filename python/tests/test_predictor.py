"""LinkPredictor: the conventions of scikit-learn, callbacks, interruption, saving."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading

import numpy as np
import pytest

import hopedgn
from hopedgn import HopedgnError, LinkPredictor, NotFittedError


def test_parameters_are_read_changed_and_shown():
    model = LinkPredictor("hopedgn", epochs=3, train__lr=0.01)
    assert model.get_params()["train__lr"] == 0.01 and model.get_params()["epochs"] == 3
    model.set_params(epochs=4, model__d_channel=8)
    assert repr(model) == "LinkPredictor(model='hopedgn', epochs=4, train__lr=0.01, model__d_channel=8)"


def test_wrong_settings_are_refused_at_once_with_the_nearest_name():
    with pytest.raises(HopedgnError, match="did you mean `train__lr`?") as error:
        LinkPredictor(train__lrr=0.1)
    assert error.value.code == "invalid-config"
    for wrong in (dict(model="hopedgm"), dict(preset="bst"), dict(epochs=-1), dict(device="gpu"), dict(protocol="tbg"), dict(precision="f8")):
        with pytest.raises(HopedgnError):
            LinkPredictor(**wrong)
    with pytest.raises(HopedgnError):
        LinkPredictor().set_params(model__no_such=1)


def test_an_unfitted_model_says_so(events):
    with pytest.raises(NotFittedError, match="call fit"):
        LinkPredictor().predict_proba([1], [2])
    assert not hasattr(LinkPredictor(), "events_")


def test_scores_are_between_0_and_1_and_do_not_depend_on_other_pairs(fitted):
    scores = fitted.predict_proba(np.arange(10), np.arange(10)[::-1], 500.0)
    assert scores.dtype == np.float32 and ((scores >= 0) & (scores <= 1)).all()
    assert fitted.predict_proba([3], [6], 500.0)[0] == scores[3]
    assert fitted.predict_proba(3, np.arange(10), 500.0).shape == (10,)
    table = fitted.predict_proba(np.stack([np.arange(10), np.arange(10)[::-1], np.full(10, 500)], axis=1))
    np.testing.assert_array_equal(table[:, 1], scores)
    assert set(fitted.predict([3], [6], 500.0)) <= {0, 1}
    assert fitted.predict_proba(["never seen"], [3]).shape == (1,)
    intensity, lift = fitted.predict_lift([3], [6])
    assert intensity > 0 and lift > 0


def test_wrong_queries_are_refused(fitted):
    for src, dst, time, message in [
        ([1, 2], [1, 2, 3], None, "found 2 values of src, expected 3"),
        ([1, 2], [2, 3], [1.0, 2.0, 3.0], "found 3 times, expected 2"),
        ([1], [2], float("nan"), "row 0, time: found the time nan"),
        ([1.5], [2], None, "src: found values of type float64, expected integers or text"),
        ([1], [2], "2024-01-31", "found '2024-01-31', expected a number"),
        ([1], [2], np.datetime64("2024-01-31"), "found dates, expected numbers"),
    ]:
        with pytest.raises(HopedgnError, match=message):
            fitted.predict_proba(src, dst, time)


def test_callbacks_get_every_epoch_and_end_training_by_raising(events):
    epochs = []
    model = LinkPredictor(epochs=3, device="cpu").fit(events, callbacks=[epochs.append], progress=False)
    assert [epoch["epoch"] for epoch in epochs] == [1, 2, 3] and len(model.history_) == 3
    assert epochs[0]["val"]["transductive"]["ap"] == model.history_["val_transductive_ap"][0]

    def stop(epoch):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        LinkPredictor(epochs=3, device="cpu").fit(events, callbacks=[stop], progress=False)


def _interrupt_after_first_epoch(epoch):
    if epoch["epoch"] == 1:
        signal.raise_signal(signal.SIGINT)


needs_main_thread = pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals")


@needs_main_thread
def test_ctrl_c_keeps_the_best_epoch_with_a_warning_without_a_run_folder(events):
    model = LinkPredictor("hopedgn", epochs=2000, device="cpu", model__d_channel=4, model__length=4, train__patience=2000)
    with pytest.warns(hopedgn.HopedgnWarning, match="interrupted"):
        model.fit(events, callbacks=[_interrupt_after_first_epoch], progress=False)
    assert 1 <= len(model.history_) < 2000 and model.summary_ is None
    assert model.predict_proba([1], [2]).shape == (1,)


@needs_main_thread
def test_ctrl_c_keeps_the_run_and_resuming_gives_the_same_bits(events, tmp_path):
    settings = dict(epochs=15, device="cpu", model__d_channel=4, model__length=4, train__patience=15)
    whole = LinkPredictor("hopedgn", **settings).fit(events, progress=False)
    model = LinkPredictor("hopedgn", run=tmp_path / "run", **settings)
    with pytest.raises(KeyboardInterrupt):
        model.fit(events, callbacks=[_interrupt_after_first_epoch], progress=False)
    n_before = len(model.history_)
    assert 1 <= n_before < 15 and model.run_ == tmp_path / "run"
    resumed = LinkPredictor("hopedgn", run=tmp_path / "run", **settings).fit(events, resume=True, progress=False)
    assert len(resumed.history_) == 15 and resumed.summary_["test"] == whole.summary_["test"]
    np.testing.assert_array_equal(resumed.predict_proba([1, 2], [2, 3]), whole.predict_proba([1, 2], [2, 3]))
    with pytest.raises(HopedgnError, match="the folder is not empty; continue its run with fit"):
        LinkPredictor("hopedgn", run=tmp_path / "run", **settings).fit(events, progress=False)


def test_a_saved_loaded_or_pickled_model_gives_the_same_scores(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    expected = fitted.predict_proba([1, 2], [2, 3])
    loaded = LinkPredictor.load(tmp_path / "run", device="cpu")
    for other in (loaded, pickle.loads(pickle.dumps(fitted)), copy.deepcopy(loaded)):
        np.testing.assert_array_equal(other.predict_proba([1, 2], [2, 3]), expected)
        assert other.history_.equals(fitted.history_)
    assert loaded.get_params() == fitted.get_params() | {"seed": 0}
    pickle.loads(pickle.dumps(loaded)).save(tmp_path / "again")
    with pytest.raises(FileNotFoundError):
        LinkPredictor.load(tmp_path / "none")
    with pytest.raises(HopedgnError, match="pass the events that the model was fitted on"):
        LinkPredictor.load(tmp_path / "run", hopedgn.Events.from_numpy([1], [2], [3]))


def test_explanations_and_reports_can_be_read_and_shown(events, tmp_path):
    model = LinkPredictor("hopedgn", epochs=1, device="cpu", model__d_channel=4, model__length=4).fit(events, progress=False)
    why = model.explain(3, 24)
    assert why.src == 3 and why.to_dict()["dst"] == 24 and str(why) in why._repr_html_().replace("&#x27;", "'").replace("&gt;", ">")
    assert why.probability == pytest.approx(float(model.predict_proba([3], [24])[0]), abs=1e-7)
    report = model.report()
    assert "<iframe" in report._repr_html_()
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().lower().startswith("<!doctype html>")


def test_models_that_cannot_be_explained_say_so(events):
    model = LinkPredictor("tgn", epochs=1, device="cpu", model__d_out=8, model__neighbors=4).fit(events, progress=False)
    with pytest.raises(HopedgnError, match="keeps a memory of all earlier events") as error:
        model.explain(1, 2)
    assert error.value.code == "not-explained"


def test_predictions_look_back_on_events_that_were_added(fitted, events):
    model = pickle.loads(pickle.dumps(fitted))
    later = hopedgn.Events.from_numpy(np.full(30, 5), np.full(30, 6), np.arange(30) + events.end)
    grown = events.append(later)
    before = model.predict_proba([5], [6])[0]
    model.update(grown)
    assert model.predict_proba([5], [6])[0] > before and len(model.events_) == len(events) + 30
    assert model.evaluate(new=True)["tested"]["events"] == 30


def test_grid_search_with_a_time_split_finds_parameters(rows):
    sklearn = pytest.importorskip("sklearn.model_selection")
    pd = pytest.importorskip("pandas")
    from sklearn.base import clone

    model = LinkPredictor(epochs=1, device="cpu", train__lr=0.002)
    twin = clone(model)
    assert twin.get_params() == model.get_params() and not twin.__sklearn_is_fitted__()
    for table in (np.stack(rows, axis=1), pd.DataFrame(dict(zip(("src", "dst", "time"), rows)))):
        search = sklearn.GridSearchCV(
            model, {"train__lr": [0.001, 0.01]}, cv=sklearn.TimeSeriesSplit(2), error_score="raise"
        )
        search.fit(table)
        assert search.best_params_["train__lr"] in (0.001, 0.01) and 0.5 < search.best_score_ <= 1
        assert search.best_estimator_.predict_proba(table[-5:] if isinstance(table, np.ndarray) else table.tail(5)).shape == (5, 2)


def test_labels_score_any_pairs(fitted, events):
    split = events.split()
    test = events[split.test]
    negatives = hopedgn.NegativeSampler(split)
    table = np.concatenate(
        [np.stack([test.src, test.dst, test.time], axis=1), np.stack([negatives.src, negatives.dst, test.time], axis=1)]
    )
    labels = np.repeat([1, 0], len(test))
    assert fitted.score(table, labels) == fitted.evaluate()["negatives"]["random"]["stats"]["transductive"]["ap_global"]


def test_progress_is_a_bar_or_lines(events, capsys):
    pytest.importorskip("tqdm")
    LinkPredictor(epochs=1, device="cpu").fit(events, progress="bar")
    assert "epoch 1: loss" in capsys.readouterr().err
    LinkPredictor(epochs=1, device="cpu").fit(events, progress="lines")
    assert capsys.readouterr().err.startswith("epoch 1: loss")
    LinkPredictor(epochs=1, device="cpu").fit(events, progress=False)
    assert capsys.readouterr().err == ""
    with pytest.raises(HopedgnError, match="found progress='loud'"):
        LinkPredictor(epochs=1).fit(events, progress="loud")


def test_curves_are_drawn_where_matplotlib_is_there(fitted):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    assert fitted.plot().get_xlabel() == "epoch"


def test_nothing_is_left_behind(events, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    import tempfile

    tempfile.tempdir = None
    try:
        model = LinkPredictor(epochs=1, device="cpu").fit(events, progress=False)
        assert len(os.listdir(tmp_path)) == 1
        del model
        assert os.listdir(tmp_path) == []
    finally:
        tempfile.tempdir = None


def test_a_run_whose_preset_sets_what_the_model_does_not_read_is_loaded(tmp_path):
    events = hopedgn.Events.read("collegemsg")[:3000]
    model = LinkPredictor(epochs=1, preset="uci", device="cpu").fit(events, progress=False)
    model.save(tmp_path / "run")
    loaded = LinkPredictor.load(tmp_path / "run")
    assert loaded.config_ == model.config_
    np.testing.assert_array_equal(loaded.predict_proba([9], [10]), model.predict_proba([9], [10]))


def test_a_slice_of_the_bundled_data_is_kept_with_its_model(tmp_path):
    first = hopedgn.Events.read("collegemsg")[:2000]
    LinkPredictor(epochs=1, device="cpu").fit(first, progress=False).save(tmp_path / "run")
    assert LinkPredictor.load(tmp_path / "run").events_ == first


def test_arguments_of_an_evaluation_are_checked(fitted):
    with pytest.raises(HopedgnError, match="found negatives='hist', expected \"random\""):
        fitted.evaluate("hist")
    with pytest.raises(HopedgnError, match="found protocol='tbg', expected \"dyglib\" or \"tgb\""):
        fitted.evaluate(protocol="tbg")

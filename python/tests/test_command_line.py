"""The module and the command line give the same results, bit for bit."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hopedgn

MODELS = [
    ("stats", {}),
    ("hopedgn", {"model__d_channel": 4, "model__length": 4}),
    ("tgn", {"model__d_out": 8, "model__neighbors": 4}),
]


def _flags(settings):
    names = {name: name.replace("__", ".").replace("_", "-") for name in settings}
    return [word for name, value in settings.items() for word in ("--set", f"{names[name]}={value}")]


@pytest.mark.parametrize(("model", "settings"), MODELS)
def test_training_scores_and_metrics_equal_those_of_the_command_line(model, settings, csv, tmp_path, run_command):
    run = tmp_path / "run"
    flags = ["--data", csv, "--model", model, "--epochs", 2, "--seed", 3, "--device", "cpu", *_flags(settings)]
    summary = json.loads(run_command("train", *flags, "--out", run, "--json", "--quiet").stdout)

    events = hopedgn.Events.read(csv)
    fitted = hopedgn.LinkPredictor(model, epochs=2, seed=3, device="cpu", **settings).fit(events, progress=False)
    assert fitted.summary_["test"] == summary["test"] and fitted.summary_["val"] == summary["val"]

    src, dst = np.arange(20) % 11, (np.arange(20) * 3 + 1) % 40
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("src,dst,time\n" + "".join(f"{s},{d},{300 + 10 * i}\n" for i, (s, d) in enumerate(zip(src, dst))))
    scores = json.loads(run_command("score", run, "--pairs", pairs, "--json", "--quiet", "--device", "cpu").stdout)
    expected = np.asarray([row["score"] for row in scores["scores"]], dtype=np.float32)
    times = 300 + 10 * np.arange(20)
    np.testing.assert_array_equal(fitted.predict_proba(src, dst, times), expected)
    loaded = hopedgn.LinkPredictor.load(run, device="cpu")
    np.testing.assert_array_equal(loaded.predict_proba(src, dst, times), expected)


def test_evaluation_equals_that_of_the_command_line(csv, tmp_path, run_command):
    run = tmp_path / "run"
    run_command("train", "--data", csv, "--model", "stats", "--epochs", 1, "--out", run, "--quiet", "--device", "cpu")
    flags = ["--negatives", "all", "--ranking", 5, "--json", "--quiet", "--device", "cpu"]
    expected = json.loads(run_command("evaluate", run, *flags).stdout)
    assert hopedgn.LinkPredictor.load(run, device="cpu").evaluate("all", ranking=5) == expected


def test_recommendations_equal_those_of_the_command_line(csv, tmp_path, run_command):
    run = tmp_path / "run"
    run_command("train", "--data", csv, "--model", "stats", "--epochs", 1, "--out", run, "--quiet", "--device", "cpu")
    expected = json.loads(run_command("recommend", run, 7, "--top", 4, "--exclude-seen", "--json", "--quiet").stdout)
    best = hopedgn.LinkPredictor.load(run).recommend(7, 4, exclude_seen=True)
    assert [(one.dst, one.probability) for one in best] == [(one["dst"], one["probability"]) for one in expected["items"]]


def test_the_command_line_works_with_a_saved_model_whose_events_came_from_memory(fitted, tmp_path, run_command):
    fitted.save(tmp_path / "run")
    document = json.loads(run_command("recommend", tmp_path / "run", 3, "--json", "--quiet").stdout)
    assert [item["dst"] for item in document["items"]] == [one.dst for one in fitted.recommend(3)]


def test_the_script_passes_on_output_and_exit_status(run_command, tmp_path):
    assert run_command("--version").stdout.startswith(f"hopedgn {hopedgn.__version__}")
    refused = run_command("data", "info", tmp_path / "none.csv", "--json", ok=False)
    assert refused.returncode == 2 and json.loads(refused.stdout)["error"]["code"] == "unknown-data"
    module = subprocess.run([sys.executable, "-m", "hopedgn", "--version"], capture_output=True, text=True, check=True)
    assert module.stdout == run_command("--version").stdout


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_stops_the_command_as_it_stops_the_program(csv, tmp_path):
    run = tmp_path / "run"
    small = ["--set", "model.d-channel=4", "--set", "model.length=4", "--set", "train.patience=10000"]
    words = ["train", "--data", csv, "--model", "hopedgn", "--epochs", 10_000, *small, "--device", "cpu", "--out", run]
    command = [sys.executable, "-m", "hopedgn", *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("epoch"):
                break
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=120)
    assert process.returncode == 1 and "--resume" in rest, rest
    assert Path(run, "config.toml").exists()

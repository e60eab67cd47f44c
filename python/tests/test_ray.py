"""Scores, recommendations, grids and searches on a Ray cluster of two raylets with one CPU each, one of which dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import hopedgn
from hopedgn._processes import PARENT

pytest.importorskip("ray", reason="Ray is not installed: pip install 'hopedgn[ray]'")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import pyarrow.parquet as pq  # noqa: E402
import ray  # noqa: E402
import ray.data  # noqa: E402
import ray.tune  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

import hopedgn.ray  # noqa: E402

N_PAIRS = 40_000
#: A dead node is noticed in seconds rather than in half a minute.
SYSTEM = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_timeout_ms": 5000, "health_check_failure_threshold": 3}


class TwoNodes:
    """A cluster of two raylets, either of which can be killed and is replaced then."""

    def __init__(self) -> None:
        self._memory = {"object_store_memory": 80 * 2**20}
        self._cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, "_system_config": SYSTEM, **self._memory})
        self.address = self._cluster.address
        self.nodes = [self._cluster.add_node(num_cpus=1, **self._memory) for _ in range(2)]

    def kill(self, node: int) -> None:
        """Kills a raylet and all of its workers at once, as a node without power."""
        raylet = self.nodes[node].all_processes["raylet"][0].process.pid
        children = Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split()
        for process in [raylet, *map(int, children)]:
            os.kill(process, signal.SIGKILL)

    def replace(self, node: int) -> None:
        self._cluster.remove_node(self.nodes[node], allow_graceful=False)
        self.nodes[node] = self._cluster.add_node(num_cpus=1, **self._memory)

    def close(self) -> None:
        ray.shutdown()
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def two_nodes():
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    nodes = TwoNodes()
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    yield nodes
    nodes.close()


@pytest.fixture(scope="module")
def run(fitted, tmp_path_factory):
    """A run folder that keeps its events."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    fitted.save(folder)
    return folder


def _pairs(n, seed=0):
    random = np.random.RandomState(seed)
    return {"src": random.randint(0, 45, n), "dst": random.randint(0, 45, n), "time": random.randint(1, 700, n).astype(float), "id": np.arange(n)}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Pairs in two files, one of them with several row groups."""
    folder, columns = tmp_path_factory.mktemp("pairs"), _pairs(N_PAIRS)
    at = N_PAIRS // 3
    pq.write_table(pa.table({name: values[:at] for name, values in columns.items()}), folder / "a.parquet", row_group_size=1_000)
    pq.write_table(pa.table({name: values[at:] for name, values in columns.items()}), folder / "b.parquet")
    return folder


def _read(out):
    return pq.read_table(out).sort_by("row")


def _check(table, columns, expected):
    """Every row once, in order of the input, with the bits of one process."""
    np.testing.assert_array_equal(table["row"].to_numpy(), np.arange(len(expected)))
    for name in ("src", "dst", "time"):
        np.testing.assert_array_equal(table[name].to_numpy(), columns[name])
    np.testing.assert_array_equal(table["score"].to_numpy().view(np.uint32), expected.view(np.uint32))


def _expected(model, columns):
    return model.predict_proba(columns["src"], columns["dst"], columns["time"])


# ---------------------------------------------------------------------- scores


def test_scores_equal_those_of_one_process_and_are_written_once(two_nodes, run, pairs, fitted, tmp_path, run_command):
    columns, out = _pairs(N_PAIRS), tmp_path / "scores"
    written = hopedgn.ray.score(run, pairs, out, keep=["id"], rows_per_part=3_000, progress=False)
    assert (written.rows, written.parts, written.reused, written.lost) == (N_PAIRS, 14, 0, 0)
    table = _read(out)
    _check(table, columns, _expected(fitted, columns))
    np.testing.assert_array_equal(table["id"].to_numpy(), columns["id"])
    intensity, lift = fitted.predict_lift(columns["src"], columns["dst"], columns["time"])
    for name, values in (("probability", _expected(fitted, columns)), ("intensity", intensity), ("lift", lift)):
        np.testing.assert_array_equal(table[name].to_numpy(), values)

    run_command("score", run, "--pairs", pairs / "a.parquet", "--out", tmp_path / "one.parquet", "--device", "cpu", "--quiet")
    of_command = pq.read_table(tmp_path / "one.parquet")
    np.testing.assert_array_equal(table.slice(0, of_command.num_rows)["score"].to_numpy(), of_command["score"].to_numpy())

    manifest = json.loads((out / "_manifest.json").read_text())
    assert manifest["complete"] and manifest["rows"] == N_PAIRS and (out / "_SUCCESS").exists()
    before = {file.name: file.stat().st_mtime_ns for file in out.glob("part-*")}
    again = hopedgn.ray.score(run, pairs, out, keep=["id"], rows_per_part=3_000, progress=False)
    assert again.reused == 14 and {file.name: file.stat().st_mtime_ns for file in out.glob("part-*")} == before


def test_a_raylet_that_is_killed_costs_no_row_and_doubles_none(two_nodes, events, tmp_path):
    model = hopedgn.LinkPredictor("hopedgn", epochs=1, device="cpu", model__d_channel=4, model__length=8, run=tmp_path / "run")
    model.fit(events, progress=False)
    columns, out = _pairs(12_000), tmp_path / "scores"
    pq.write_table(pa.table(columns), tmp_path / "pairs.parquet")

    def kill_in_mid_work() -> None:
        while len(list(out.glob("part-*"))) < 8:
            time.sleep(0.01)
        two_nodes.kill(1)

    killer = threading.Thread(target=kill_in_mid_work)
    killer.start()
    try:
        written = hopedgn.ray.score(tmp_path / "run", tmp_path / "pairs.parquet", out, rows_per_part=300, progress=False)
    finally:
        killer.join()
        two_nodes.replace(1)
    assert (written.rows, written.parts, written.reused) == (12_000, 40, 0)
    _check(_read(out), columns, _expected(model, columns))
    assert sum(pq.read_metadata(file).num_rows for file in out.glob("part-*")) == 12_000
    assert not list(out.glob(".*")), "nothing half-written is left"


def test_what_is_missing_is_done_and_nothing_else(two_nodes, run, pairs, fitted, tmp_path):
    out = tmp_path / "scores"
    hopedgn.ray.score(run, pairs, out, rows_per_part=5_000, progress=False)
    (out / "part-000002.parquet").unlink()
    # As after a crash of the machine: a file that was never synced, and one that was not renamed.
    (out / "part-000004.parquet").write_bytes(b"PAR1")
    (out / ".part-000002.parquet.0123.tmp").write_bytes(b"PAR1")
    (out / "_SUCCESS").unlink()
    before = {file.name: file.stat().st_mtime_ns for file in out.glob("part-*")}
    written = hopedgn.ray.score(run, pairs, out, rows_per_part=5_000, progress=False)
    assert (written.parts, written.reused) == (9, 7) and (out / "_SUCCESS").exists() and not list(out.glob(".*"))
    after = {file.name: file.stat().st_mtime_ns for file in out.glob("part-*")}
    assert {name for name in after if after[name] != before.get(name)} == {"part-000002.parquet", "part-000004.parquet"}
    columns = _pairs(N_PAIRS)
    _check(_read(out), columns, _expected(fitted, columns))


def test_a_folder_of_another_job_is_refused(two_nodes, run, pairs, events, tmp_path):
    out = tmp_path / "scores"
    hopedgn.ray.score(run, pairs / "a.parquet", out, progress=False)
    with pytest.raises(hopedgn.HopedgnError, match="another job, which differs in input"):
        hopedgn.ray.score(run, pairs / "b.parquet", out, progress=False)
    other = hopedgn.LinkPredictor(epochs=1, seed=7, device="cpu").fit(events, progress=False)
    with pytest.raises(hopedgn.HopedgnError, match="another job, which differs in run"):
        hopedgn.ray.score(other, pairs / "a.parquet", out, progress=False)
    # The same run with a history that has grown.
    (out / "part-000000.parquet").unlink()
    grown = events.append(hopedgn.Events.from_numpy([1], [2], [10_000.0]))
    with pytest.raises(hopedgn.HopedgnError, match="looks back on 601 events until .*, expected 600 events"):
        hopedgn.ray.score(run, pairs / "a.parquet", out, events=grown, progress=False)
    with pytest.raises(hopedgn.HopedgnError, match="found a folder with other files"):
        hopedgn.ray.score(run, pairs / "a.parquet", pairs, progress=False)


def test_a_model_and_events_that_are_no_files_are_sent_to_the_workers(two_nodes, fitted, pairs, tmp_path):
    hopedgn.ray.score(fitted, pairs / "a.parquet", tmp_path / "out", progress=False)
    columns = {name: values[: N_PAIRS // 3] for name, values in _pairs(N_PAIRS).items()}
    _check(_read(tmp_path / "out"), columns, _expected(fitted, columns))


def test_pairs_without_times_and_with_text_are_scored_just_after_the_last_event(two_nodes, tmp_path):
    names = np.asarray(["ann", "bob", "cem", "dan"])
    events = hopedgn.Events.from_numpy(names[np.arange(200) % 4], names[(np.arange(200) + 1) % 4], np.arange(200))
    model = hopedgn.LinkPredictor(epochs=1, device="cpu").fit(events, progress=False)
    table = pa.table({"from": pa.array(["ann", "new"]).dictionary_encode(), "to": ["bob", "ann"]})
    pq.write_table(table, tmp_path / "pairs.parquet")
    hopedgn.ray.score(model, tmp_path / "pairs.parquet", tmp_path / "out", columns=("from", "to"), progress=False)
    scored = _read(tmp_path / "out")
    np.testing.assert_array_equal(scored["score"].to_numpy(), model.predict_proba(["ann", "new"], ["bob", "ann"]))
    assert set(scored["time"].to_pylist()) == {events._native.end}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"src": [1, None], "dst": [2, 3], "time": [1.0, 2.0]}, "bad.parquet, counted from row 0: row 1, src: found no value"),
        ({"src": [1.5, 2.5], "dst": [2, 3], "time": [1.0, 2.0]}, "src: found values of type double, expected integers or text"),
        ({"src": [1, 2], "dst": [2, 3], "time": [1.0, float("nan")]}, "row 1, time: found the time nan"),
        ({"a": [1, 2], "b": [2, 3]}, "expected"),
    ],
)
def test_bad_pairs_are_named(two_nodes, run, tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "bad.parquet")
    with pytest.raises(hopedgn.HopedgnError, match=message):
        hopedgn.ray.score(run, tmp_path / "bad.parquet", tmp_path / "out", progress=False)


def test_arguments_are_checked_before_anything_starts(two_nodes, run, pairs, tmp_path):
    for arguments, message in [
        ({"run": tmp_path}, "expected a run folder with weights"),
        ({"pairs": tmp_path / "none.parquet"}, "found no Parquet file at"),
        ({"pairs": "s3://bucket/pairs"}, "hopedgn.ray.Scorer"),
        ({"keep": ["none"]}, "expected a column among"),
        ({"num_cpus": 0}, "expected more than 0 CPUs"),
        ({"num_cpus": 64}, "found no node with num_cpus=64"),
        ({"rows_per_part": 0}, "expected at least 1"),
    ]:
        with pytest.raises(hopedgn.HopedgnError, match=message):
            hopedgn.ray.score(**{"run": run, "pairs": pairs, "out": tmp_path / "out", "progress": False} | arguments)


def test_a_scorer_works_in_a_pipeline_of_ray_data(two_nodes, run, pairs, fitted):
    ray.data.DataContext.get_current().enable_progress_bars = False
    dataset = ray.data.read_parquet(str(pairs / "b.parquet"))
    scored = dataset.map_batches(
        hopedgn.ray.Scorer,
        fn_constructor_args=(str(run),),
        fn_constructor_kwargs={"keep": ["id"]},
        batch_format="pyarrow",
        batch_size=4_000,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(size=1),
    )
    found = pa.concat_tables(scored.iter_batches(batch_format="pyarrow", batch_size=None)).sort_by("id")
    columns = {name: values[N_PAIRS // 3 :] for name, values in _pairs(N_PAIRS).items()}
    np.testing.assert_array_equal(found["score"].to_numpy(), _expected(fitted, columns))


# ---------------------------------------------------------------------- recommendations


def test_recommendations_equal_those_of_one_process(two_nodes, run, fitted, tmp_path):
    sources = np.arange(50)
    written = hopedgn.ray.recommend(run, sources, 3, tmp_path / "out", exclude_seen=True, reasons=True, rows_per_part=7, progress=False)
    assert (written.rows, written.parts) == (50, 8)
    table = pq.read_table(tmp_path / "out").sort_by([("row", "ascending"), ("rank", "ascending")]).to_pylist()
    expected = [
        (row, src, rank, one.dst, np.float32(one.score), np.float32(one.probability), one.known, one.reason)
        for row, src in enumerate(sources.tolist())
        for rank, one in enumerate(fitted.recommend(src, 3, exclude_seen=True), 1)
    ]
    found = [tuple(line[name] for name in ("row", "src", "rank", "dst", "score", "probability", "known", "reason")) for line in table]
    assert found == expected and len(expected) > 100
    again = hopedgn.ray.recommend(run, sources, 3, tmp_path / "out", exclude_seen=True, reasons=True, rows_per_part=7, progress=False)
    assert again.reused == 8
    with pytest.raises(hopedgn.HopedgnError, match="differs in k"):
        hopedgn.ray.recommend(run, sources, 4, tmp_path / "out", exclude_seen=True, reasons=True, rows_per_part=7, progress=False)
    with pytest.raises(hopedgn.HopedgnError, match="another job"):
        hopedgn.ray.recommend(run, sources[:9], 3, tmp_path / "out", progress=False)


# ---------------------------------------------------------------------- grids

ONE = """title = "A grid"
kind = "link-prediction"
metrics = ["ap"]
[grid]
model = ["stats"]
data = ["mail"]
seed = [0]
"""
GRID = ONE.replace('"stats"', '"stats", "tgn"') + """[[override]]
when = { model = "tgn" }
set = { model.d-out = 8, model.neighbors = 4 }
source = "small"
[[override]]
when = { data = "mail" }
set = { train.epochs = 2 }
source = "short"
"""


def _grid(csv, folder, text=GRID):
    folder.mkdir(exist_ok=True)
    (folder / "grid.toml").write_text(text)
    (folder / "data").mkdir()
    (folder / "data" / "mail.csv").write_bytes(csv.read_bytes())
    return folder


def test_cells_on_a_cluster_give_the_runs_of_one_machine(two_nodes, csv, tmp_path, run_command):
    home = _grid(csv, tmp_path)
    where = {"data_dir": home / "data", "device": "cpu", "progress": False}
    state = hopedgn.ray.experiment(home / "grid.toml", runs=home / "on-ray", **where)
    assert [cell["state"] for cell in state["cells"]] == ["done", "done"]
    flags = ["--data-dir", home / "data", "--runs", home / "here"]
    here = json.loads(run_command("experiment", "run", home / "grid.toml", *flags, "--device", "cpu", "--json", "--quiet").stdout)
    assert [cell["test"] for cell in state["cells"]] == [cell["test"] for cell in here["cells"]]
    manifests = [Path(cell["run"], "manifest.json") for cell in state["cells"]]
    before = [file.stat().st_mtime_ns for file in manifests]
    assert hopedgn.ray.experiment(home / "grid.toml", runs=home / "on-ray", **where) == state
    assert [file.stat().st_mtime_ns for file in manifests] == before, "finished cells are skipped"
    report = run_command("experiment", "report", home / "grid.toml", "--data-dir", home / "data", "--runs", home / "on-ray")
    assert report.stdout.startswith("2 of 2 runs done")


def test_a_failing_cell_is_named_and_the_command_line_says_so(two_nodes, csv, tmp_path, run_command):
    home = _grid(csv, tmp_path, ONE.replace('"mail"', '"mail", "broken", "lastfm"'))
    (home / "data" / "broken.csv").write_text("src,dst,time\n1,2,x\n")
    words = ["experiment", "run", "grid.toml", "--data-dir", "data", "--out", "out", "--device", "cpu", "--on", two_nodes.address]
    done = run_command(*words, "--json", ok=False, cwd=home)
    assert done.returncode == 1, done.stderr
    states = {cell["data"]: (cell["state"], cell["note"]) for cell in json.loads(done.stdout)["cells"]}
    assert states["mail"] == ("done", None) and states["lastfm"][0] == "missing data"
    assert states["broken"][0] == "failed" and 'found "x"' in states["broken"][1], states
    assert "broken-stats-0: failed: " in done.stderr and "mail-stats-0: AP " in done.stderr, done.stderr


def test_a_cell_whose_raylet_is_killed_resumes_elsewhere(two_nodes, csv, tmp_path, run_command):
    long = ONE.replace("stats", "hopedgn") + (
        '[[override]]\nwhen = { model = "hopedgn" }\nsource = "long"\n'
        "set = { model.d-channel = 4, model.length = 8, train.epochs = 8, train.patience = 100 }\n"
    )
    home = _grid(csv, tmp_path, long)
    cell = home / "runs" / "mail-hopedgn-0"

    def kill_after_two_epochs() -> None:
        metrics = cell / "metrics.jsonl"
        while not metrics.exists() or metrics.read_text().count("\n") < 2:
            time.sleep(0.01)
        pids.extend(_trainers(cell))
        for node, raylet in enumerate(two_nodes.nodes):
            if any(_descends(pid, raylet.all_processes["raylet"][0].process.pid) for pid in pids):
                two_nodes.kill(node)
                killed.append(node)

    pids: list[int] = []
    killed: list[int] = []
    killer = threading.Thread(target=kill_after_two_epochs)
    killer.start()
    try:
        state = hopedgn.ray.experiment(home / "grid.toml", out=home / "runs", data_dir=home / "data", device="cpu", progress=False)
    finally:
        killer.join()
        for node in killed:
            two_nodes.replace(node)
    assert len(killed) == 1 and [one["state"] for one in state["cells"]] == ["done"]
    assert [json.loads(line)["epoch"] for line in (cell / "metrics.jsonl").read_text().splitlines()] == list(range(1, 9))
    here = run_command("experiment", "run", home / "grid.toml", "--data-dir", home / "data", "--out", home / "here", "--device", "cpu", "--json")
    assert json.loads(here.stdout)["cells"][0]["test"] == state["cells"][0]["test"], "bit by bit as without an interruption"


def _trainers(folder):
    """Processes that train in a run folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"train" in words and str(folder).encode() in words:
            found.append(int(process.name))
    return found


def _descends(pid, ancestor):
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False


def test_a_program_that_is_started_for_a_task_ends_with_it():
    child = "import time; from hopedgn._processes import end_with_parent_if_asked as e; e(); print('here', flush=True); time.sleep(60)"
    parent = (
        "import os, subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], env=os.environ | {{{PARENT!r}: str(os.getpid())}}, stdout=subprocess.PIPE, text=True)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        pid = int(process.stdout.readline())
        process.kill()
    for _ in range(500):
        if not Path(f"/proc/{pid}").exists() or "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
            return
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    pytest.fail("the program outlived its parent")


# ---------------------------------------------------------------------- searches


def test_a_search_finds_the_better_setting_and_keeps_its_run(two_nodes, events, tmp_path):
    space = {"train__lr": ray.tune.grid_search([1e-7, 3e-3]), "train__batch": [50]}
    options = {"out": tmp_path / "search", "samples": 1, "epochs": 4, "seed": 3, "reduction_factor": 2, "progress": False}
    found = hopedgn.ray.tune(space, events, **options)
    assert found.best == {"train__lr": 3e-3, "train__batch": 50}
    assert [row["settings"]["train__lr"] for row in found.trials] == [3e-3, 1e-7] and found.trials[0]["value"] > found.trials[1]["value"]
    assert {"trial", "train__lr", "value", "epochs", "state"} <= set(found.table().columns)
    again = hopedgn.LinkPredictor(epochs=4, seed=3, device="cpu", **found.best).fit(events, progress=False)
    kept = hopedgn.LinkPredictor.load(found.run, device="cpu")
    assert kept.summary_["test"] == again.summary_["test"] and found.value == max(again.history_["val_transductive_ap"])
    assert sorted(path.name for path in (tmp_path / "search").iterdir()) == ["_search.json", "_tuned.json", "best"]
    assert hopedgn.ray.tune(space, events, **options) == found
    with pytest.raises(hopedgn.HopedgnError, match="found another search"):
        hopedgn.ray.tune(space, events, **options | {"samples": 2})


def test_a_search_refuses_what_the_model_does_not_have(two_nodes, events, tmp_path):
    with pytest.raises(hopedgn.HopedgnError, match="lenght"):
        hopedgn.ray.tune({"model__lenght": [1]}, events, model="hopedgn", out=tmp_path / "search")
    with pytest.raises(hopedgn.HopedgnError, match="expected one of .*val_transductive_ap"):
        hopedgn.ray.tune({"train__lr": [1e-3]}, events, metric="accuracy", samples=1, epochs=1, out=tmp_path / "search", progress=False)


# ---------------------------------------------------------------------- without Ray


def test_without_ray_the_error_names_the_extra():
    code = "import sys; sys.modules['ray'] = None; import hopedgn\ntry:\n    import hopedgn.ray\nexcept ImportError as error:\n    print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'hopedgn[ray]'" in done.stdout, done

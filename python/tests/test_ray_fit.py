"""Training on several Ray workers: the bits of one process, also when a worker dies."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import hopedgn

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

SETTINGS = {
    "epochs": 8,
    "seed": 3,
    "device": "cpu",
    "train__batch": 100,
    "model__d_channel": 16,
    "model__length": 32,
    "model__d_time": 4,
    "model__d_mite": 4,
    "model__d_out": 4,
}


@pytest.fixture(scope="module")
def two_raylets():
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    yield
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    random = np.random.RandomState(0)
    n = 1000
    made = hopedgn.Events.from_numpy(random.randint(0, 30, n), 30 + random.randint(0, 30, n), np.arange(n) // 2)
    file = tmp_path_factory.mktemp("data") / "made.ctdg"
    made.write(file)
    return hopedgn.Events.read(file)


@pytest.fixture(scope="module")
def alone(events):
    """At least fifty steps in one process of two threads."""
    model = hopedgn.LinkPredictor("hopedgn", **SETTINGS).fit(events, progress=False)
    assert len(model.history_) * -(-700 // SETTINGS["train__batch"]) >= 50
    return model


def weights(model: hopedgn.LinkPredictor, folder: Path) -> bytes:
    model.save(folder)
    return (folder / "model.safetensors").read_bytes()


def same(found: hopedgn.LinkPredictor, expected: hopedgn.LinkPredictor, folder: Path) -> bool:
    columns = ["loss", "val_transductive_ap", "val_transductive_auc"]
    pairs = (np.arange(30), 30 + np.arange(30))
    return (
        weights(found, folder / "found") == weights(expected, folder / "expected")
        and all(np.array_equal(found.history_[name], expected.history_[name]) for name in columns)
        and found.summary_["test"] == expected.summary_["test"]
        and np.array_equal(found.predict_proba(*pairs), expected.predict_proba(*pairs))
    )


def test_two_workers_train_the_bits_of_one_process(two_raylets, events, alone, tmp_path):
    import hopedgn.ray

    path = str(events._native.file)
    found = hopedgn.ray.fit(path, workers=2, model="hopedgn", run=tmp_path / "run", progress=False, **SETTINGS)
    assert found.run_ == tmp_path / "run"
    assert same(found, alone, tmp_path)


def test_a_killed_worker_is_replaced_and_the_bits_stay(two_raylets, events, alone, tmp_path):
    """Both workers, one after the other, by SIGKILL in the middle of training; events from memory, no run folder."""
    import hopedgn.ray

    killed = []

    def kill():
        for nth in (0, 1):
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and len(killed) == nth:
                found = [pid for pid in _training() if pid not in killed]
                if len(found) == 2:
                    time.sleep(0.2)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(found[nth], signal.SIGKILL)
                        killed.append(found[nth])
                time.sleep(0.02)

    killer = threading.Thread(target=kill)
    killer.start()
    found = hopedgn.ray.fit(events, workers=2, model="hopedgn", progress=False, **SETTINGS)
    killer.join()
    assert len(killed) == 2, "both were killed while they trained"
    assert found.run_ is None
    assert same(found, alone, tmp_path)


def _training() -> list[int]:
    """Processes of Ray that are in ``_Worker.fit``."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and "ray::_Worker.fit" in (entry / "cmdline").read_text():
                found.append(int(entry.name))
        except OSError:
            continue
    return sorted(found)


def test_a_model_with_a_memory_says_why_it_runs_on_one_worker(two_raylets, events):
    import hopedgn.ray

    with pytest.raises(hopedgn.HopedgnError, match="found 2 workers for TGN, expected one") as refused:
        hopedgn.ray.fit(str(events._native.file), workers=2, model="tgn", epochs=1, progress=False)
    assert refused.value.code == "one-worker"


def test_processes_of_the_environment_train_together(events, alone, tmp_path):
    """Without Ray: two processes with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT."""
    program = (
        "import sys, json, hopedgn; events = hopedgn.Events.read(sys.argv[1]);"
        "model = hopedgn.LinkPredictor('hopedgn', **json.loads(sys.argv[2])).fit(events, progress=False); model.save(sys.argv[3])"
    )
    port = str(_free_port())
    environment = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RAYON_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(events._native.file), json.dumps(SETTINGS), str(tmp_path / str(rank))],
            env=environment | {"RANK": str(rank)},
        )
        for rank in range(2)
    ]
    assert [rank.wait(timeout=300) for rank in ranks] == [0, 0]
    expected = weights(alone, tmp_path / "expected")
    assert all((tmp_path / str(rank) / "model.safetensors").read_bytes() == expected for rank in range(2))


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_importing_the_package_does_not_import_ray():
    program = "import sys, hopedgn; assert 'ray' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

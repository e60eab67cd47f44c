"""Threads, forks and spawned processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import hopedgn

SRC, DST = np.arange(2000) % 40, np.arange(2000) * 7 % 40


def _scores(model):
    return model.predict_proba(SRC, DST, 500.0)


def _work(n):
    """In another process: everything that uses threads."""
    random = np.random.RandomState(0)
    events = hopedgn.Events.from_numpy(random.randint(0, 20, n), random.randint(20, 40, n), np.arange(n))
    model = hopedgn.LinkPredictor(epochs=1, device="cpu").fit(events, progress=False)
    past = hopedgn.Store(events).history(events.src, events.time, 5)
    return float(model.predict_proba([1], [21])[0]), int(past.offsets[-1])


def test_threads_get_the_same_scores_at_once(fitted):
    expected = _scores(fitted)
    with ThreadPoolExecutor(8) as pool:
        for scores in pool.map(lambda _: _scores(fitted), range(24)):
            np.testing.assert_array_equal(scores, expected)


def test_other_threads_run_while_a_model_is_trained(events):
    model, trained, ticks = hopedgn.LinkPredictor(epochs=2, device="cpu"), threading.Event(), 0
    worker = threading.Thread(target=lambda: (model.fit(events, progress=False), trained.set()))
    worker.start()
    while not trained.wait(0.0005):
        ticks += 1
    worker.join()
    assert ticks > 10 and len(model.history_) == 2


def _in_fork(function, *arguments):
    """The result of a function in a forked process, which is ended when it hangs."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(function(*arguments), pipe)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        received = pipe.read()
    assert os.waitpid(child, 0)[1] == 0 and received, "the forked process hung or failed"
    return pickle.loads(received)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_computes_with_threads_of_its_own(fitted):
    expected, worked = _scores(fitted), _work(300)
    np.testing.assert_array_equal(_in_fork(_scores, fitted), expected)
    assert _in_fork(_work, 300) == worked
    assert _in_fork(_in_fork, _work, 300) == worked, "a fork of a fork"
    np.testing.assert_array_equal(_scores(fitted), expected)


def test_a_spawned_process_gets_models_and_events_by_pickle(fitted):
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        np.testing.assert_array_equal(pool.submit(_scores, fitted).result(timeout=120), _scores(fitted))
        assert pool.submit(len, fitted.events_).result(timeout=120) == len(fitted.events_)


def test_the_number_of_threads_changes_no_bit(fitted, events):
    before = hopedgn.get_num_threads()
    try:
        results = []
        for n in (1, 3):
            hopedgn.set_num_threads(n)
            assert hopedgn.get_num_threads() == n
            model = hopedgn.LinkPredictor("hopedgn", epochs=1, device="cpu", model__d_channel=4, model__length=4).fit(events, progress=False)
            results.append(_scores(model))
        np.testing.assert_array_equal(*results)
    finally:
        hopedgn.set_num_threads(before)


def test_importing_needs_numpy_alone():
    code = "import sys, hopedgn; print([m for m in ('torch', 'pandas', 'sklearn', 'pyarrow', 'tqdm', 'matplotlib', 'ray') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("progress", ["bar", "lines"])
def test_training_goes_on_when_nobody_reads_its_progress(progress):
    code = (
        "import hopedgn\n"
        "events = hopedgn.Events.from_numpy([i % 9 for i in range(200)], [(i + 1) % 9 for i in range(200)], range(200))\n"
        f"hopedgn.LinkPredictor(epochs=2, device='cpu').fit(events, progress='{progress}')\n"
        "print('done')\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=writer, timeout=300, text=True)
    finally:
        os.close(writer)
    assert ended.stdout == "done\n"

"""The notebooks and example programs run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("notebooks/*.ipynb"))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path, tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "notebooks are kept without output"
    client = nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    warned = [output["text"] for output in outputs if output.get("name") == "stderr"]
    assert not warned, warned


@pytest.mark.parametrize(
    "words",
    [("torch_model.py", "--epochs", "1", "--events", "3000"), ("loader_speed.py", "--batches", "2")],
    ids=["torch_model", "loader_speed"],
)
def test_an_example_runs(words, tmp_path):
    if words[0] == "torch_model.py":
        pytest.importorskip("torch", reason="torch is not installed")
    script, *flags = words
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "python" / script), *flags], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert ("test: AP" if script == "torch_model.py" else "ms a batch") in done.stdout

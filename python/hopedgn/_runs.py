"""Run folders: where to compute, the events of a run, its bytes."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

from hopedgn import _native
from hopedgn.errors import HopedgnError
from hopedgn.events import Events

#: Events of a run that was not trained on a file, in its folder.
EVENTS_FILE = "events.ctdg"


def device_options(device: str, precision: str | None) -> dict[str, Any]:
    if device not in ("auto", "cpu", "cuda"):
        raise HopedgnError(f'found device={device!r}, expected "auto", "cpu" or "cuda"', "invalid-argument")
    if precision not in (None, "f32", "tf32", "bf16"):
        raise HopedgnError(f'found precision={precision!r}, expected "f32", "tf32" or "bf16"', "invalid-argument")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return {"device": device, "precision": precision, "cache": os.path.join(cache, "hopedgn", "kernels")}


def keep_events(run: Path, events: Events) -> None:
    """Writes events that come from no file into their run folder, so that the run can be loaded without them."""
    is_bundled = events.name == "collegemsg" and events == Events.read("collegemsg")
    if events._native.file is None and not is_bundled:
        events.write(run / EVENTS_FILE)


def recorded_events(run: Path, data: dict[str, Any]) -> Events:
    """The events that a run was trained on."""
    if data["file"] is not None and os.path.exists(data["file"]):
        return Events._of(_native.Events.read(data["file"], json.dumps(data.get("read") or {})).named(data["name"]))
    if (run / EVENTS_FILE).exists():
        return Events.read(run / EVENTS_FILE)
    if data["name"] == "collegemsg" and data["file"] is None:
        return Events.read("collegemsg")
    where = f"no file {data['file']}" if data["file"] else "no file of its events"
    raise HopedgnError(f"{run}: found {where}, expected the data of the run; pass them with events=", "missing-data")


def zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return buffer.getvalue()

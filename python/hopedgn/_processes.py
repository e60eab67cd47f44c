"""Processes that end with the one that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

#: Set to the id of the parent in the environment of a process that is to be killed when its parent dies, with all that it starts.
PARENT = "HOPEDGN_PARENT"

_PR_SET_PDEATHSIG = 1


def end_with_parent_if_asked() -> None:
    """Lets the system kill this process when its parent ends, where :data:`PARENT` asks for it and the system is Linux.

    A task of a cluster that is killed cannot end what it has started; a process that went on would keep the lock of its run folder.
    """
    parent = os.environ.get(PARENT)
    if parent is None or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent != str(os.getppid()):
        # It died before.
        os.kill(os.getpid(), signal.SIGKILL)
    os.environ[PARENT] = str(os.getpid())

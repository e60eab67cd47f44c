"""What the runners of all peers share: arguments, data and the report of one model."""

import argparse
import json
import os
import statistics
import time

BATCH = 200
MODELS = ["DyGFormer", "GraphMixer", "TCL", "TGAT", "CAWN", "JODIE", "DyRep", "TGN"]
WITH_MEMORY = {"JODIE", "DyRep", "TGN"}


def arguments(description, peer):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", required=True, help=f"checkout of {peer}")
    parser.add_argument("--data", required=True, help="CSV with the columns src, dst, timestamp, label; may be gzipped")
    parser.add_argument("--model", required=True)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--steps", type=int, default=8, help="training steps to time")
    parser.add_argument("--evaluate", type=int, default=5, help="batches of test events to evaluate and time; 0: none")
    parser.add_argument("--work", default="peer-data", help="folder for converted data")
    return parser


def waiter(device):
    """A function that waits for the device."""
    if device == "cpu":
        return lambda: None
    import torch

    return torch.cuda.synchronize


class Clock:
    """Times of steps."""

    def __init__(self, device):
        self.wait, self.seconds = waiter(device), []

    def step(self, work):
        start = time.perf_counter()
        result = work()
        self.wait()
        self.seconds.append(time.perf_counter() - start)
        return result


def peak_memory():
    """Bytes that this process had in memory at most."""
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def report(peer, ask, seconds, steps_per_epoch, batches=0, evaluation=None):
    """Prints the line of one model."""
    import torch

    print(
        json.dumps(
            {
                "peer": peer,
                "model": ask.model,
                "device": ask.device,
                "threads": torch.get_num_threads(),
                "torch": torch.__version__,
                "steps": len(seconds),
                "step": statistics.median(seconds),
                "best": min(seconds),
                "epoch": statistics.fmean(seconds) * steps_per_epoch,
                "evaluation": evaluation / batches if batches else None,
                "peak_memory": peak_memory(),
            }
        ),
        flush=True,
    )


def inside(folder):
    """`folder` as an absolute path, which exists."""
    os.makedirs(folder, exist_ok=True)
    return os.path.abspath(folder)

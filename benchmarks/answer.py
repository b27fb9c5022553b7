"""Seconds to the answer: whole trainings, from the command to the exponent."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from typing import Any

from toydepth.errors import RunError


def time_answer(experiment: str, *overrides: str) -> dict[str, Any]:
    """Trains an experiment in a process of its own; returns seconds, and alpha of each start (averaged weights).

    Raises:
        RunError: where the command fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        words = [f"+experiment={experiment}", "tracker=none", f"hydra.run.dir={folder}/run", *overrides]
        command = [sys.executable, "-m", "toydepth.train", *words, "--json"]
        begun = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        seconds = time.perf_counter() - begun
    if done.returncode:
        raise RunError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    fits = [fit for fit in json.loads(done.stdout)[0]["fits"] if fit["weights"] == "average"]
    alphas = {fit["init"]: {name: fit[name] for name in ("alpha", "low", "high", "replicates")} for fit in fits}
    return {"name": f"answer {experiment}", "seconds_median": seconds, "alpha": alphas}

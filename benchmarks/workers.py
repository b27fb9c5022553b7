"""A process a row, asked over a pipe: it sets up, then runs one repetition for every line it is sent.

Run as `python -m benchmarks.workers KIND CASE`. It prints a JSON line when ready, one a repetition, and one at the end
with its peak memory: of the process on CPU, of the device elsewhere.
"""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
import time
from typing import Any

from toydepth.errors import RunError


class Worker:
    """The other end of the pipe: a row that has been set up.

    Raises:
        RunError: for a row that ends before it answers; its own message is above it on stderr.
    """

    def __init__(self, kind: str, case: str):
        self.name = f"{kind} {case}".strip()
        command = [sys.executable, "-m", "benchmarks.workers", kind, case]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.about = self._answer()
        self.seconds: list[float] = []

    def repeat(self) -> None:
        """Runs one repetition."""
        self._say("go\n")
        self.seconds.append(self._answer()["seconds"])

    def close(self) -> dict[str, Any]:
        """Ends the process and returns what it says about itself."""
        assert self._process.stdin
        self._process.stdin.close()
        told = self._answer()
        self._end()
        return self.about | told

    def _end(self) -> None:
        """Waits for the process; it ends when it is sent no more lines."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        self._process.wait()

    def _say(self, word: str) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(word)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: what is read next says so

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            self._end()
            raise RunError(f"the row {self.name} ended early: see above")
        return json.loads(line)


def _serve(kind: str, case: str) -> None:
    begun = time.perf_counter()
    repeat, about = importlib.import_module(f"benchmarks.{kind}_row").set_up(case)
    print(json.dumps(about | {"setup_seconds": time.perf_counter() - begun}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"seconds": repeat()}), flush=True)
    print(json.dumps({"peak_memory_bytes": _peak_memory()}), flush=True)


def _peak_memory() -> int:
    if "jax" in sys.modules:
        stats = sys.modules["jax"].devices()[0].memory_stats() or {}
        if "peak_bytes_in_use" in stats:
            return stats["peak_bytes_in_use"]
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    _serve(*sys.argv[1:3])

"""`make bench`: every row in one run, interleaved; a table, and benchmarks/results/latest.json beside it."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.answer import time_answer
from benchmarks.peak_row import product_flops
from benchmarks.table import add_ratios, make_row, print_rows
from benchmarks.workers import Worker
from toydepth.errors import RunError
from toydepth.runs import find_git, find_versions, utc_now

RESULTS = Path(__file__).parent / "results" / "latest.json"
STEPS = {
    "bank": ("paper_mse", "paper_mse_one", "paper_kl", "laptop"),
    "torch": ("paper_mse_one", "paper_kl", "laptop"),
    "plain": ("paper_mse_one", "laptop"),
}
COMPILE = ("6", "48", "192", "6-12-16-24-32-48")
TRAINING = ("20", "400")
LAW = ("answer", "large")


def main() -> int:
    """Runs the rows that were asked for; exit code 1 where one fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="repetitions of each row (default 7)")
    kinds = ["bank", "torch", "plain", "compile", "training", "law", "answer"]
    parser.add_argument("--only", nargs="*", default=kinds, choices=kinds, help="kinds of row")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be 1 or more")
    try:
        options.output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--output must be in a folder that can be made, got {options.output} ({error.strerror})")
    console = Console()
    kinds = [kind for kind in STEPS if kind in options.only]
    if "torch" in kinds and importlib.util.find_spec("torch") is None:
        console.print("torch is not installed (extra bench): its rows are left out")
        kinds.remove("torch")
    try:
        rows = _time_steps(kinds, options.rounds, console)
        if "compile" in options.only:
            rows += [_time_alone("compile", depths, min(options.rounds, 3), console) for depths in COMPILE]
        if "training" in options.only:
            rows += [_time_alone("training", steps, 1, console) for steps in TRAINING]
        if "law" in options.only:
            rows += [_time_alone("law", case, options.rounds, console) for case in LAW]
        if "answer" in options.only:
            console.print("answer tied: one whole training", highlight=False)
            rows.append(time_answer("tied"))
    except RunError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return error.exit_code
    add_ratios(rows)
    print_rows(rows, console)
    for row in rows:
        for init, fit in row.get("alpha", {}).items():
            interval = f"[{fit['low']:.2f}, {fit['high']:.2f}]"
            console.print(f"{row['name']}: {init} start, alpha {fit['alpha']:.2f} {interval}", highlight=False)
    about = {"time": utc_now(), "versions": find_versions(), "git": find_git()}
    options.output.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")
    console.print(f"written: {options.output}", highlight=False, soft_wrap=True)
    return 0


def _time_steps(kinds: list[str], rounds: int, console: Console) -> list[dict]:
    names = [("peak", "")] + [(kind, case) for kind in kinds for case in STEPS[kind]]
    workers = []
    for kind, case in names:
        console.print(f"setting up {kind} {case}", highlight=False)
        workers.append(Worker(kind, case))
    for number in range(rounds):
        console.print(f"round {number + 1} of {rounds}", highlight=False)
        for worker in workers:
            worker.repeat()
    told = [worker.close() for worker in workers]
    peak = product_flops() / min(workers[0].seconds)
    rows = [
        make_row(worker.name, kind, case, worker.seconds, about, peak)
        for worker, (kind, case), about in zip(workers, names, told, strict=True)
    ]
    rows[0]["gflops"], rows[0]["fraction_of_peak"] = peak / 1e9, 1.0
    return rows


def _time_alone(kind: str, case: str, rounds: int, console: Console) -> dict:
    """A row whose repetitions are too long, or too heavy on memory, to be interleaved."""
    console.print(f"{kind} {case}", highlight=False)
    worker = Worker(kind, case)
    for _ in range(rounds):
        worker.repeat()
    return make_row(worker.name, kind, case, worker.seconds, worker.close(), 1.0)


if __name__ == "__main__":
    sys.exit(main())

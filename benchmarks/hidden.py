"""What statistics of hidden states cost: `python -m benchmarks.hidden MODEL TEXT` (extra llm; some minutes).

In turns, on one batch: the bare forward pass of the backbone, with angles, norms, progress, histograms, components and
sample, and with each readout; medians, and ratios to the bare pass. Then the peak memory of a measurement of 50 and of
500 documents, each in a process of its own; and the last angle before and after the final norm.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np


def main() -> int:
    """Prints the costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--field", default="text")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--memory", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    from toydepth.llm import load_model, measure_model, read_documents

    loaded = load_model(given.model, device="cpu")
    if given.memory:
        documents = itertools.islice(read_documents(given.text, given.field), given.memory)
        measure_model(loaded.model, loaded.tokenizer, documents, max_length=64, profiles=True)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000)
        return 0
    documents = list(itertools.islice(read_documents(given.text, given.field), 4))
    _times(loaded, documents, given.rounds)
    for count in (50, 500):
        command = [sys.executable, "-m", "benchmarks.hidden", given.model, given.text, "--field", given.field]
        done = subprocess.run([*command, "--memory", str(count)], check=True, stdout=subprocess.PIPE, text=True)
        print(f"{count} documents of at most 64 tokens: {int(done.stdout):,} MB at most")
    return 0


def _times(loaded: Any, documents: list[str], rounds: int) -> None:
    import torch  # pyright: ignore[reportMissingImports]

    from toydepth.hidden import angle
    from toydepth.llm import measure_model
    from toydepth.llm.adapters import find_parts
    from toydepth.llm.batches import token_batches

    parts, options = find_parts(loaded.model), {"batch_size": 4, "max_length": 256}
    (batch,) = token_batches(documents, loaded.tokenizer, **options)
    ids, mask = torch.as_tensor(batch.ids), torch.as_tensor(batch.mask).long()

    def bare() -> None:
        with torch.inference_mode():
            parts.backbone(input_ids=ids, attention_mask=mask, use_cache=False)

    def measure(**more: Any) -> None:
        measure_model(loaded.model, loaded.tokenizer, documents, **options, **more)

    works = {"bare": bare, "statistics": lambda: measure(profiles=True)}
    works |= {kind: lambda kind=kind: measure(readouts=(kind,)) for kind in ("lens", "last_block")}
    spent: dict[str, list[float]] = {name: [] for name in works}
    bare()
    for turn, (name, work) in itertools.product(range(rounds), works.items()):
        if turn < 2 or name in ("bare", "statistics"):  # readouts take ten times as long
            began = time.perf_counter()
            work()
            spent[name].append(time.perf_counter() - began)
    middle = {name: statistics.median(seconds) for name, seconds in spent.items()}
    for name, seconds in spent.items():
        ratio = middle[name] / middle["bare"]
        print(f"{name:>10}: {middle[name]:6.2f} s ({min(seconds):.2f} ... {max(seconds):.2f}), {ratio:.2f} of the bare")
    angles: list[np.ndarray] = []

    def after_norm(_found: Any, seen: Any) -> None:
        before, last = seen.stream.states[-2:]
        for state in (last, parts.norm(last).detach()):
            angles.append(angle(before.numpy(), state.numpy())[seen.positions > 0])

    measure(after_batch=after_norm)
    print(f"last angle: {angles[0].mean():.3f} rad before the final norm, {angles[1].mean():.3f} after it")


if __name__ == "__main__":
    sys.exit(main())

"""`toydepth hidden --model`: a language model on text."""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING, Any, Literal

from toydepth.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

AT_FIRST = "model at position 0"


def measure_text(
    name: str,
    text: tuple[str, ...],
    docs: int,
    field: str,
    batch_size: int,
    max_length: int,
    skip_first: int,
    dtype: Literal["float32", "bfloat16", "float16"],
    device: str,
    readouts: tuple[str, ...],
    allow_non_finite: bool,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Returns the table by layer, of the bulk and of position 0, and what it was measured on."""
    from toydepth.llm import load_model, measure_model, read_documents

    if docs < 1:
        raise InputError(f"docs must be 1 or more, got {docs}. 1000 is the default.")
    loaded = load_model(name, dtype=dtype, device=device)
    documents = itertools.islice(itertools.chain.from_iterable(read_documents(one, field) for one in text), docs)

    def progress(found: Any, _: Any) -> None:
        if sys.stderr.isatty():
            words = f"{found.documents} documents, {found.tokens} tokens, {found.tokens_per_second:.0f} tokens/s"
            print(f"\r{words}", end="", file=sys.stderr, flush=True)

    found = measure_model(
        loaded.model,
        loaded.tokenizer,
        documents,
        batch_size=batch_size,
        max_length=max_length,
        skip_first=skip_first,
        allow_non_finite=allow_non_finite,
        readouts=readouts,
        after_batch=progress,
    )
    if sys.stderr.isatty():
        print(file=sys.stderr)
    table = found.table()
    depth = found.bulk.depth
    network = ["model" if position == "bulk" else AT_FIRST for position in table["position"]]
    labels = {"run": name, "network": network, "teacher": None, "replicate": 0, "depth": depth, "init": None}
    labels |= {"temperature": None, "block": None, "weights": None}
    for place, (column, value) in enumerate(labels.items()):
        table.insert(place, column, value)
    about = {"model": name, "weights": loaded.weights, "dtype": str(loaded.dtype), "device": str(loaded.device)}
    counts = ("documents", "empty", "shortened", "tokens", "tokens_per_second", "readout_seconds")
    return table, {**about, "text": list(text)} | {count: getattr(found, count) for count in counts}


def print_layers(table: pd.DataFrame, about: dict[str, Any]) -> None:
    """Prints the table by layer, the bulk beside position 0."""
    from toydepth.fit.law.text import align

    print(f"{about['model']}: {about['weights']}, computed in {about['dtype']} on {about['device']}")
    print(
        f"{about['documents']} documents ({about['empty']} empty, {about['shortened']} cut), {about['tokens']} tokens, "
        f"{about['tokens_per_second']:.0f} a second\n"
    )
    known = ("theta_states", "theta_updates", "norm", "progress", "cross_entropy_lens", "cross_entropy_last_block")
    shown = [name for name in known if name in table]
    records: list[dict[str, Any]] = table.to_dict("records")  # pyright: ignore[reportAssignmentType]
    first = {row["layer"]: row["norm"] for row in records if row["position"] == "first"}
    rows = [["layer", *shown, "norm at position 0", "not finite", "zero"]]
    for row in records:
        if row["position"] == "bulk":
            cells = ["-" if row[name] != row[name] else f"{row[name]:.4g}" for name in shown]
            counts = [f"{row[name]:.0f}" for name in ("num_not_finite", "num_zero")]
            rows.append([f"{row['layer']:.0f}", *cells, f"{first[row['layer']]:.4g}", *counts])
    print("\n".join(align(rows)))
    print(
        "theta in rad, pi/2 = 1.571; theta_states of the step that leaves a layer, theta_updates of the two around it\n"
    )

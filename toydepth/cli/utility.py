"""`toydepth utility`: what a language model loses where a block is skipped, swapped with the next, or repeated."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Literal

from toydepth.cli.output import StatusLine, check_given, make_folder, print_json
from toydepth.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def utility(
    model: str,
    text: tuple[str, ...] = (),
    docs: int = 50,
    field: str = "text",
    interventions: tuple[Literal["skip", "swap", "repeat"], ...] = ("skip", "swap", "repeat"),
    batch_size: int = 8,
    max_length: int = 512,
    skip_first: int = 1,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    device: str = "auto",
    revision: str | None = None,
    folder: str = "utility",
    json: bool = False,
) -> int:
    """Depth utility of a language model: the loss with each block skipped, swapped with the next, or repeated.

    Args:
        model: A safetensors folder, a .gguf file, or a name on the hub (extra `llm`).
        text: Its text: txt, jsonl or parquet files, or fineweb.
        docs: Documents of the text to read at most.
        field: Of jsonl and parquet, the text.
        interventions: Of skip, swap, repeat; each costs half as many passes as the model has blocks.
        batch_size: Documents at a time; changes no number.
        max_length: Tokens of a document that are read; the rest is counted.
        skip_first: Positions before it predict nothing.
        dtype: That the model computes in.
        device: auto, cpu, cuda, mps, or split over several.
        revision: Of a model on the hub: a branch, a tag such as step3000, a commit.
        folder: For utility.parquet, utility.json and the figure.
        json: Print the table by intervention and layer.
    """
    from toydepth.fit.checks import plain
    from toydepth.llm import load_model, read_documents
    from toydepth.llm.utility import measure_utility
    from toydepth.report.utility_figure import write_utility_figure
    from toydepth.runs.files import replacing, write_json

    check_given("folder", folder)
    if not text:
        raise InputError("text must be files (txt, jsonl, parquet) or fineweb, got none. Give --text FILE.")
    if docs < 1:
        raise InputError(f"docs must be 1 or more, got {docs}. 50 is the default.")
    sources = [read_documents(one, field) for one in text]
    target = make_folder(folder)
    loaded = load_model(model, dtype=dtype, device=device, revision=revision)

    with StatusLine() as line:
        found = measure_utility(
            loaded.model,
            loaded.tokenizer,
            itertools.islice(itertools.chain.from_iterable(sources), docs),
            batch_size=batch_size,
            max_length=max_length,
            skip_first=skip_first,
            interventions=interventions,
            after_batch=lambda now: line.tell(f"{now.documents} documents, {now.tokens} tokens, {now.seconds:.0f} s"),
        )
    table = found.table()
    about: dict[str, Any] = {"model": model, "weights": loaded.weights, "dtype": str(loaded.dtype)}
    about |= {"device": str(loaded.device), "text": list(text), "depth": found.depth}
    about |= {"cross_entropy": found.intact, "cross_entropy_error": found.intact_error}
    about |= {name: getattr(found, name) for name in ("documents", "empty", "shortened", "tokens", "seconds")}
    about = plain(about)
    with replacing(target / "utility.parquet") as temporary:
        table.to_parquet(temporary)
    layers = plain(table.to_dict("records"))
    write_json(target / "utility.json", {"schema": 1, **about, "layers": layers})
    written = [target / "utility.parquet", target / "utility.json", *write_utility_figure(table, target).paths]
    if json:
        print_json({**about, "layers": layers, "written": [str(path) for path in written]})
        return 0
    _print(table, about)
    print(f"\nwritten: {target}: {', '.join(path.name for path in written)}")
    return 0


def _print(table: pd.DataFrame, about: dict[str, Any]) -> None:
    """A line a layer; a change and its standard error for each intervention."""
    from toydepth.fit.law.text import align

    print(f"{about['model']}: {about['weights']}, computed in {about['dtype']} on {about['device']}")
    error = about["cross_entropy_error"]
    known = "" if error is None else f" +- {error:.4f}"
    print(
        f"{about['documents']} documents ({about['empty']} empty, {about['shortened']} cut), {about['tokens']} tokens "
        f"predicted; intact {about['cross_entropy']:.4f}{known} nats per token\n"
    )
    kinds = list(dict.fromkeys(table["intervention"]))
    records: list[dict[str, Any]] = table.to_dict("records")  # pyright: ignore[reportAssignmentType]
    cells = {(row["intervention"], row["layer"]): _cell(row) for row in records}
    rows = [["layer", *kinds]]
    for layer in range(1, about["depth"] + 1):
        rows.append([str(layer), *(cells.get((kind, layer), "-") for kind in kinds)])
    print("\n".join(align(rows)))
    print("change of the cross-entropy in nats per token, +- its standard error over documents; swap: with the next")


def _cell(row: dict[str, Any]) -> str:
    error = row["change_error"]
    return f"{row['change']:.4f}" + ("" if error != error else f" +- {error:.4f}")

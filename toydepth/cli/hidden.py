"""`toydepth hidden`: how each block moves each example of a run's networks, or each token of a language model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from toydepth.cli.hidden_model import AT_FIRST, measure_text, print_layers
from toydepth.cli.output import check_given, print_json
from toydepth.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_NAMES = ["network", "teacher", "replicate", "depth", "init", "temperature", "weights"]


def hidden(
    runs: tuple[str, ...] = (),
    model: str | None = None,
    text: tuple[str, ...] = (),
    docs: int = 1000,
    field: str = "text",
    batch_size: int = 8,
    max_length: int = 512,
    skip_first: int = 1,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    device: str = "auto",
    readouts: tuple[Literal["lens", "last_block"], ...] = (),
    allow_non_finite: bool = False,
    folder: str = "hidden",
    weights: Literal["average", "raw"] = "average",
    examples: int = 2048,
    seed: int = 0,
    json: bool = False,
) -> int:
    """Angles between states and between updates, norms and progress, layer by layer: of runs, or of a language model.

    Args:
        runs: Folders of finished runs, or that hold such: their teachers and students.
        model: Or a language model (extra `llm`): a safetensors folder, a .gguf file, or a name on the hub.
        text: Its text: txt, jsonl or parquet files, or fineweb.
        docs: Documents of the text to read at most.
        field: Of jsonl and parquet, the text.
        batch_size: Documents at a time; changes no number.
        max_length: Tokens of a document that are read; the rest is counted.
        skip_first: Positions from here on are the bulk; position 0 is reported apart.
        dtype: Of the model's weights.
        device: auto, cpu, cuda, mps, or split over several.
        readouts: Cross-entropy read out of every layer: lens, last_block, or both.
        allow_non_finite: Count states with NaN or inf and go on.
        folder: For hidden.parquet, hidden.json and the figure.
        weights: Of students: their moving average, or the raw ones.
        examples: Fresh inputs of a run's networks, the same for every one.
        seed: Of the inputs.
        json: Print the table by layer.
    """
    import pandas as pd

    from toydepth.fit.checks import plain
    from toydepth.report.hidden_figure import write_hidden_figure
    from toydepth.runs import find_runs
    from toydepth.runs.files import replacing, write_json
    from toydepth.states import states_of_run

    check_given("folder", folder)
    if bool(runs) == (model is not None):
        got = "both" if runs else "neither"
        raise InputError(
            f"runs or model must be given, one of them, got {got}. Give --runs FOLDER, or --model and --text."
        )
    about: dict[str, Any] = {}
    if model is not None:
        if not text:
            raise InputError("text must be files (txt, jsonl, parquet) or fineweb, got none. Give --text FILE.")
        options = (docs, field, batch_size, max_length, skip_first, dtype, device, readouts, allow_non_finite)
        table, about = measure_text(model, text, *options)
    else:
        folders, empty = find_runs(list(runs))
        if empty:
            raise InputError(f"runs must hold a record.json, in them or below, got {empty[0]}. Train it first.")
        table = pd.concat(
            [states_of_run(one, weights=weights, num_examples=examples, seed=seed) for one in folders],
            ignore_index=True,
        )
    verdicts = _verdicts(table)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with replacing(target / "hidden.parquet") as temporary:
        table.to_parquet(temporary)
    layers = plain(table.to_dict("records"))
    write_json(target / "hidden.json", {"schema": 1, **about, "layers": layers, "regimes": verdicts})
    written = [target / "hidden.parquet", target / "hidden.json", *write_hidden_figure(table, target).paths]
    if json:
        print_json({**about, "layers": layers, "regimes": verdicts, "written": [str(path) for path in written]})
        return 0
    if about:
        print_layers(table, about)
    _print(verdicts)
    print(f"\nwritten: {target}: {', '.join(path.name for path in written)}")
    return 0


def _verdicts(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A regime a network: its labels, the verdict and the numbers behind it."""
    from toydepth.fit.checks import plain
    from toydepth.hidden import find_regime

    found = []
    keys = ["run", *_NAMES]
    groups: list[tuple[Any, Any]] = list(table.groupby(keys, dropna=False, sort=False))
    for labels, layers in groups:
        if labels[1] == AT_FIRST:  # a sink of attention is no regime
            continue
        regime = find_regime(layers)
        told: dict[str, Any] = dict(zip(keys, labels, strict=True))
        told |= {
            name: getattr(regime, name) for name in ("verdict", "why", "updates", "unevenness", "stopped_fraction")
        }
        found.append(plain(told))
    return found


def _print(verdicts: list[dict[str, Any]]) -> None:
    """A line a network, teachers first; replicates stand beside each other."""
    from toydepth.fit.law.text import align

    for run in dict.fromkeys(one["run"] for one in verdicts):
        print(run)
        rows = [["network", "depth", "regime", "updates / (pi/2)", "unevenness of steps", "middle stopped"]]
        for one in verdicts:
            if one["run"] != run:
                continue
            parts = [one["teacher"] if one["network"] == "teacher" else "", one["network"], one["init"] or ""]
            name = " ".join(filter(None, [*parts, f"({one['replicate']})"]))
            numbers = [_number(one[key]) for key in ("updates", "unevenness", "stopped_fraction")]
            rows.append([name, str(one["depth"]), one["verdict"], *numbers])
        print("\n".join(align(rows)))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"

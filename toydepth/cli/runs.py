"""The commands about runs of training: fit, figures, export; and train, which hydra reads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from toydepth.cli.output import check_given, print_json
from toydepth.errors import InputError

# Everything large is imported where it is used: inside main, which answers an interrupt in one way, and only as needed.
if TYPE_CHECKING:
    import pandas as pd


def fit(
    runs: tuple[str, ...],
    /,
    json: bool = False,
    all_steps: bool = False,
    weights: Literal["both", "raw", "average"] = "both",
    floor: bool = False,
    offset: float = 0.0,
    window: tuple[float, float] | None = None,
    noise_factor: float = 10.0,
    confidence: float = 0.95,
    seed: int = 0,
    allow_unfinished: bool = False,
) -> int:
    """Fits alpha in loss = c * depth^-alpha over finished runs: one bank, or many jobs, in any number of folders.

    Args:
        runs: Folders of runs, or folders that hold such.
        json: Print a list of objects, one for each group of arms and kind of weights.
        all_steps: Every evaluation, not only the last (with --json).
        weights: Those of the last step (raw), their moving average, or both (then the table shows averages).
        floor: Fit an irreducible loss as well.
        offset: Subtracted from every depth.
        window: Lowest and highest depth to use.
        noise_factor: Losses within this factor of the noise floor are left out.
        confidence: Of the intervals.
        seed: Of the bootstrap.
        allow_unfinished: Also runs that were interrupted.
    """
    from rich.console import Console

    from toydepth.fit import fit_curves
    from toydepth.report import print_table

    curves = _load(runs, allow_unfinished)
    table = fit_curves(
        curves,
        weights=("raw", "average") if weights == "both" else (weights,),
        all_steps=all_steps,
        floor=floor,
        offset=offset,
        window=window,
        noise_factor=noise_factor,
        confidence=confidence,
        seed=seed,
    )
    if json:
        for group in table.refused:
            print(f"toydepth fit: refused: {group['reason']}", file=sys.stderr)
        print_json([row.to_dict() for row in table.rows])
    else:
        print_table(table, Console(), weights="raw" if weights == "raw" else "average")
    return 0


def figures(
    runs: tuple[str, ...], /, folder: str | None = None, json: bool = False, allow_unfinished: bool = False
) -> int:
    """Draws loss against depth, alpha against step and training curves of finished runs, as PNG and SVG.

    Args:
        runs: Folders of runs, or folders that hold such.
        folder: Where to put them; default: figures inside the one folder given, or here for several.
        json: Print {paths, skipped}.
        allow_unfinished: Also runs that were interrupted.
    """
    from toydepth.fit import fit_curves
    from toydepth.report import write_figures

    check_given("folder", folder)
    curves = _load(runs, allow_unfinished)
    table, why = None, None
    # Training curves need no fit; which figures are left out is said below, with this reason.
    try:
        table = fit_curves(curves, all_steps=True)
    except InputError as error:
        why = error
    where = Path(folder) if folder else (Path(runs[0]) / "figures" if len(runs) == 1 else Path("figures"))
    done = write_figures(curves, table, where)
    if why:  # said only now: curves that cannot be drawn either, for the same reason, take one line
        print(f"toydepth figures: no fit: {why}", file=sys.stderr)
    if json:
        print_json({"paths": [str(p) for p in done.paths], "skipped": [list(pair) for pair in done.skipped]})
        return 0
    for path in done.paths:
        print(path)
    for name, reason in done.skipped:
        print(f"not drawn: {name}: {reason}")
    return 0


def export(run: str, /, output: str | None = None, json: bool = False) -> int:
    """Writes teacher and student weights of a run as .npz; the names are in docs/notation.md.

    Args:
        run: The folder of a run.
        output: The file; default: weights.npz inside the run.
        json: Print {path, arrays: {name: shape}}.
    """
    from toydepth.export import export_weights

    check_given("run", run)
    check_given("output", output)
    path = Path(output) if output else Path(run) / "weights.npz"
    arrays = export_weights(run, path)
    if json:
        print_json({"path": str(path), "arrays": {name: list(a.shape) for name, a in arrays.items()}})
    else:
        print(f"{path}: {len(arrays)} arrays")
    return 0


def train() -> int:
    """Trains a bank of students; arguments are hydra's, e.g. `toydepth train +experiment=tied seed=1 --json`."""
    raise AssertionError("`train` is dispatched before tyro sees it")


def _load(runs: tuple[str, ...], allow_unfinished: bool) -> pd.DataFrame:
    from toydepth.runs import load_runs

    if not runs:
        raise InputError("runs must be the folder of a run, or several, got none. Name one after the command.")
    curves = load_runs(list(runs), allow_unfinished=allow_unfinished)
    for skipped in curves.attrs.get("skipped", []):
        print(f"left out: {skipped['run']}: {skipped['reason']}", file=sys.stderr)
    return curves

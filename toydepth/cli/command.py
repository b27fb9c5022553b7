"""The `toydepth` command: train, fit, figures, export."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from toydepth.errors import InputError, RunError, did_you_mean

# Everything large is imported where it is used: inside main, which answers an interrupt in one way, and only as needed.
if TYPE_CHECKING:
    import pandas as pd

_INTERRUPTED = 130  # as a shell has it: 128 and the number of SIGINT


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
        _print_json([row.to_dict() for row in table.rows])
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

    _check_given("folder", folder)
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
        _print_json({"paths": [str(p) for p in done.paths], "skipped": [list(pair) for pair in done.skipped]})
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

    _check_given("run", run)
    _check_given("output", output)
    path = Path(output) if output else Path(run) / "weights.npz"
    arrays = export_weights(run, path)
    if json:
        _print_json({"path": str(path), "arrays": {name: list(a.shape) for name, a in arrays.items()}})
    else:
        print(f"{path}: {len(arrays)} arrays")
    return 0


def train() -> int:
    """Trains a bank of students; arguments are hydra's, e.g. `toydepth train +experiment=tied seed=1 --json`."""
    raise AssertionError("`train` is dispatched before tyro sees it")


_COMMANDS: dict[str, Any] = {"train": train, "fit": fit, "figures": figures, "export": export}


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns the exit code.

    0; 2 for an input that cannot be used; 130 after an interrupt. Train has more: see toydepth.train.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if arguments[:1] == ["train"]:
            from toydepth.train import main as train_main

            return train_main(arguments[1:])
        with _no_interrupt_ignored():
            return _run(arguments)
    except KeyboardInterrupt:
        return _INTERRUPTED


@contextlib.contextmanager
def _no_interrupt_ignored() -> Iterator[None]:
    """Ends the process where an interrupt falls into a callback: Python would print its traceback, and go on."""
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            os._exit(_INTERRUPTED)
        before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _run(arguments: list[str]) -> int:
    """Runs a command other than train; returns the exit code."""
    word = arguments[0] if arguments else "--help"
    if not word.startswith("-") and word not in _COMMANDS:
        hint = did_you_mean(word, _COMMANDS)
        print(f"toydepth: command must be one of {' | '.join(_COMMANDS)}, got {word}.{hint}", file=sys.stderr)
        return 2
    complaint = io.StringIO()
    name = f"toydepth {word}" if word in _COMMANDS else "toydepth"
    try:
        with contextlib.redirect_stderr(complaint):
            command = _parse(arguments or ["--help"])
        return command()
    except SystemExit as stop:
        if stop.code not in (0, None):
            print(f"{name}: {_first_sentence(complaint.getvalue())}", file=sys.stderr)
            return 2
        return 0
    except (InputError, RunError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        if error.filename is None:
            raise
        print(f"{name}: {error.filename} must be readable or writable, got: {error.strerror}.", file=sys.stderr)
        return InputError.exit_code


def _parse(arguments: list[str]) -> Any:
    """Returns the command with its arguments filled in, not yet run: what it prints must not be taken for usage."""
    import tyro

    def later(function: Any) -> Any:
        @functools.wraps(function)
        def bound(*positional: Any, **named: Any) -> Any:
            return lambda: function(*positional, **named)

        return bound

    commands = {name: later(function) for name, function in _COMMANDS.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tyro.extras.subcommand_cli_from_dict(
            commands, prog="toydepth", args=arguments, description=__doc__, config=(tyro.conf.FlagCreatePairsOff,)
        )


def _first_sentence(text: str) -> str:
    """What a usage box says between its title and the next rule, in one line, with what it thinks was meant."""
    lines = [re.sub(r"[╭╮╰╯│]|\x1b\[[0-9;]*m", " ", line).strip() for line in text.strip().splitlines()]
    body = itertools.dropwhile(lambda line: not line.strip("-─ "), lines[1:])
    said = list(itertools.takewhile(lambda line: line.strip("-─ "), body))
    if not said:
        return "the arguments were not understood. See --help."
    words = re.sub(r"\s+", " ", " ".join(said)).rstrip(".")
    meant = re.search(r"Perhaps you meant:\W*?(--[\w-]+)", "\n".join(lines))
    return f"{words}.{f' Did you mean {meant.group(1)!r}?' if meant else ' See --help.'}"


def _load(runs: tuple[str, ...], allow_unfinished: bool) -> pd.DataFrame:
    from toydepth.runs import load_runs

    if not runs:
        raise InputError("runs must be the folder of a run, or several, got none. Name one after the command.")
    curves = load_runs(list(runs), allow_unfinished=allow_unfinished)
    for skipped in curves.attrs.get("skipped", []):
        print(f"left out: {skipped['run']}: {skipped['reason']}", file=sys.stderr)
    return curves


def _check_given(name: str, value: str | None) -> None:
    if value == "":  # an unset variable of the shell
        raise InputError(f"{name} must be the name of a file or folder, got ''. Give one, or leave it out.")


def _print_json(value: Any) -> None:
    print(json.dumps(value, allow_nan=False))


if __name__ == "__main__":
    sys.exit(main())

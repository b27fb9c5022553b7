"""`toydepth hidden`: how each block moves each example of a run's networks, or each token of language models."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toydepth.cli.hidden_model import AT_FIRST, Measured, measure_models, print_model
from toydepth.cli.hidden_options import ComputeOptions, OutputOptions, SourceOptions, StatisticsOptions
from toydepth.cli.hidden_runs import print_networks
from toydepth.cli.output import check_given, check_unused, make_folder, print_json
from toydepth.errors import InputError
from toydepth.hidden.rules import ClusterRule, RegimeRule

if TYPE_CHECKING:
    import pandas as pd

_NAMES = ["network", "teacher", "replicate", "depth", "init", "temperature", "weights"]
_SCHEMA = 2


def hidden(
    source: SourceOptions = SourceOptions(),  # noqa: B008
    compute: ComputeOptions = ComputeOptions(),  # noqa: B008
    statistics: StatisticsOptions = StatisticsOptions(),  # noqa: B008
    regime: RegimeRule = RegimeRule(),  # noqa: B008
    clusters: ClusterRule = ClusterRule(),  # noqa: B008
    output: OutputOptions = OutputOptions(),  # noqa: B008
) -> int:
    """Angles between states and between updates, norms and progress, layer by layer: of runs, or of language models.

    For example: toydepth hidden --model EleutherAI/pythia-410m --text fineweb --docs 4800. A measurement that was
    stopped goes on at the same document when the command is given again. Every column: docs/notation.md, "Hidden
    states".

    Args:
        source: What is measured.
        compute: How language models are run.
        statistics: What is kept.
        regime: Thresholds of the regime.
        clusters: Thresholds of the clusters.
        output: What is written.
    """
    check_given("folder", output.folder)
    if bool(source.runs) == bool(source.model):
        got = "both" if source.runs else "neither"
        raise InputError(
            f"runs or model must be given, one of them, got {got}. Give --runs FOLDER, or --model and --text."
        )
    _check_used(source, compute, statistics, clusters)
    target = make_folder(output.folder)
    models: list[Measured] = []
    if source.model:
        models, signal = measure_models(source, compute, statistics, clusters, target)
        if signal:
            return 128 + signal
        table = _join([one.table for one in models])
    else:
        table = _measure_runs(source.runs, statistics)
    told = _told(table, models, regime, clusters)
    written = _write(table, told, models, target, output.figures == "yes")
    if output.json:
        print_json({**told, "written": [str(path) for path in written]})
        return 0
    for one in models:
        print_model(one)
    if not models:
        print_networks(table)
    _print(told["regimes"])
    print(f"\nwritten: {target}: {', '.join(str(path.relative_to(target)) for path in written)}")
    return 0


def _check_used(
    source: SourceOptions, compute: ComputeOptions, statistics: StatisticsOptions, clusters: ClusterRule
) -> None:
    """Raises InputError for an option that nothing would read."""
    if source.model:
        advice = "It is of runs' networks."
        check_unused(statistics, "come with --runs", advice, ("weights", "examples"))
        return
    ours = ("runs", "weights", "examples", "seed")
    for group in (source, compute, statistics, clusters):
        names = [one.name for one in dataclasses.fields(group) if one.name not in ours]
        check_unused(group, "come with --model", "It is of language models.", names)


def _measure_runs(runs: tuple[str, ...], statistics: StatisticsOptions) -> pd.DataFrame:
    from toydepth.runs import find_runs
    from toydepth.states import states_of_run

    folders, empty = find_runs(list(runs))
    if empty:
        raise InputError(f"runs must hold a record.json, in them or below, got {empty[0]}. Train it first.")
    options = {"weights": statistics.weights, "num_examples": statistics.examples, "seed": statistics.seed}
    return _join([states_of_run(one, **options) for one in folders])


def _join(tables: list[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    return pd.concat(tables, ignore_index=True)


def _told(table: pd.DataFrame, models: list[Measured], regime: RegimeRule, clusters: ClusterRule) -> dict[str, Any]:
    """What hidden.json holds: what was measured, on what, and the verdicts with their thresholds."""
    from toydepth.runs.files import plain

    told: dict[str, Any] = {"schema": _SCHEMA, "layers": table.to_dict("records"), "regimes": _verdicts(table, regime)}
    told["rules"] = {"regime": dataclasses.asdict(regime)}
    if models:
        told["rules"]["clusters"] = dataclasses.asdict(clusters)
        told |= {"models": [one.about for one in models], "clusters": [one.clusters_told() for one in models]}
    return plain(told)


def _write(
    table: pd.DataFrame, told: dict[str, Any], models: list[Measured], target: Path, figures: bool
) -> list[Path]:
    from toydepth.report.hidden_figure import write_hidden_figure
    from toydepth.runs.files import replacing, write_json

    with replacing(target / "hidden.parquet") as temporary:
        table.to_parquet(temporary)
    write_json(target / "hidden.json", told)
    written = [target / "hidden.parquet", target / "hidden.json"]
    for one in models:
        written += one.write()
    if figures:
        written += write_hidden_figure(table, target).paths
        if "cross_entropy" in table or "cross_entropy_last_block" in table:
            from toydepth.report.hidden_readouts_figure import write_hidden_readouts_figure

            written += write_hidden_readouts_figure(table, target).paths
        for one in models:
            written += one.draw()
    return written


def _verdicts(table: pd.DataFrame, rule: RegimeRule) -> list[dict[str, Any]]:
    """A regime a network: its labels, the verdict and the numbers behind it."""
    from toydepth.hidden import find_regime

    found = []
    keys = ["run", *_NAMES]
    groups: list[tuple[Any, Any]] = list(table.groupby(keys, dropna=False, sort=False))
    for labels, layers in groups:
        if labels[1] == AT_FIRST:  # a sink of attention is no regime
            continue
        found.append({**dict(zip(keys, labels, strict=True)), **dataclasses.asdict(find_regime(layers, rule))})
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
            name = " ".join(filter(None, [*parts, "" if one["network"] == "model" else f"({one['replicate']})"]))
            numbers = [_number(one[key]) for key in ("updates", "unevenness", "stopped_fraction")]
            rows.append([name, str(one["depth"]), one["verdict"], *numbers])
        print("\n".join(align(rows)))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"

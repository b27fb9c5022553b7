"""`toydepth transport`: the avalanche probe of gradients, over models of several sizes and steps of their training."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toydepth.cli.output import StatusLine, check_given, check_unused, known, make_folder, print_json
from toydepth.cli.transport_options import FieldOptions, OutputOptions, ProbeOptions, QuestionOptions
from toydepth.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from toydepth.transport import ProbeSettings

_SCHEMA = 1


def transport(
    fields: FieldOptions = FieldOptions(),  # noqa: B008
    probe: ProbeOptions = ProbeOptions(),  # noqa: B008
    questions: QuestionOptions = QuestionOptions(),  # noqa: B008
    output: OutputOptions = OutputOptions(),  # noqa: B008
) -> int:
    """Gradient transport: cascades of gradients on a graph, and their exponents D, z, delta over sizes of models.

    For example: toydepth transport --runs runs/transport. Every word, formula and column: docs/notation.md, "Gradient
    transport".

    Args:
        fields: Where the fields come from.
        probe: The probe.
        questions: What else to ask.
        output: What is written.
    """
    from toydepth.cli.transport_answers import print_study
    from toydepth.cli.transport_fields import join_curve, merged_sizes, open_fields, read_curve
    from toydepth.transport import associate_study, effects_by_step, exponents_by_step, measure_study

    check_given("folder", output.folder)
    check_given("curve", questions.curve)
    if not questions.sensitivity:
        check_unused(questions, "come with --sensitivity", "Add --sensitivity.", ("sensitivity_step", "tensors"))
    settings = _settings(probe)
    source = open_fields(fields)
    if source.num_sizes < 3:
        advice = f"Add models, or change --sizes {fields.sizes}." if fields.runs else "Add models of other sizes."
        raise InputError(f"sizes must be 3 or more in a family, got {source.num_sizes} at most. {advice}")
    curve = None if questions.curve is None else read_curve(questions.curve, source.steps)
    _check_step(questions.sensitivity_step, source.steps)
    target, draw = make_folder(output.folder), output.figures == "yes"
    with StatusLine() as line:
        table = measure_study(source.read(()), settings, max_nodes=probe.max_nodes, on_field=_counting(line.tell))
    source.notes.extend(merged_sizes(table))
    if curve is not None:
        table = join_curve(table, curve)
    exponents = exponents_by_step(table, questions.confidence)
    tables = {"cascades": table, "exponents": exponents, "effects": effects_by_step(table, questions.confidence)}
    options: dict[str, Any] = {
        name: getattr(questions, name) for name in ("block", "num_bootstrap", "confidence", "seed")
    }
    tables["association"] = associate_study(table, exponents, **options)
    if questions.sensitivity:
        # What is known is kept first: the rest may take as long again.
        _write(tables, _told(tables, settings, probe, fields, source.notes), target, False, questions.confidence)
        tables["sensitivity"] = _sensitivity(fields, settings, probe, questions, exponents)
    told = _told(tables, settings, probe, fields, source.notes)
    written, skipped = _write(tables, told, target, draw, questions.confidence)
    if output.json:
        print_json({**told, "written": [str(path) for path in written]})
        return 0
    print_study(tables, settings, source.notes)
    for name, reason in skipped:
        print(f"figure {name}: {reason}")
    print(f"\nwritten: {output.folder}: {', '.join(path.name for path in written)}")
    return 0


def _check_step(step: int | None, steps: tuple[int, ...]) -> None:

    if step is not None and step not in steps:
        there = ", ".join(map(str, steps))
        raise InputError(f"sensitivity_step must be a step of the study, got {step}. There are {there}.")


def _told(
    tables: dict[str, pd.DataFrame],
    settings: ProbeSettings,
    probe: ProbeOptions,
    fields: FieldOptions,
    notes: list[str],
) -> dict[str, Any]:
    """What transport.json holds."""
    from toydepth.runs.files import plain

    told = {"schema": _SCHEMA, "settings": settings.record(), "max_nodes": probe.max_nodes}
    told |= {"fields": dataclasses.asdict(fields), "notes": notes}
    return plain(told | {name: own.to_dict("records") for name, own in tables.items() if name != "cascades"})


def _settings(probe: ProbeOptions) -> ProbeSettings:
    from toydepth.transport import ProbeSettings

    if probe.num_seeds < 1:
        raise InputError(f"num_seeds must be 1 or more, got {probe.num_seeds}. 4 is the default.")
    if probe.max_nodes is not None and probe.max_nodes < 10:
        raise InputError(f"max_nodes must be 10 or more, got {probe.max_nodes}. Leave it out for no limit.")
    own = {name: getattr(probe, name) for name in ("percentile", "cap", "sign", "order", "order_seed")}
    return ProbeSettings(m_BA=probe.m_ba, seeds=tuple(range(probe.num_seeds)), **own)


def _counting(tell: Callable[[str], None]) -> Callable[[Any], None]:
    count = itertools.count(1)
    return lambda field: tell(f"{next(count)} fields: {field.family}, {field.model}, step {field.step}")


def _sensitivity(
    given: FieldOptions,
    settings: ProbeSettings,
    probe: ProbeOptions,
    questions: QuestionOptions,
    exponents: pd.DataFrame,
) -> pd.DataFrame:
    from toydepth.cli.transport_fields import open_fields
    from toydepth.transport import measure_sensitivity

    rows = exponents.to_dict("records")
    whole = sorted({int(row["step"]) for row in rows if row["kind"] == "field" and not known(row["missing"])})
    step = whole[-1] if questions.sensitivity_step is None else questions.sensitivity_step
    if step not in whole:
        there = ", ".join(map(str, whole))
        raise InputError(f"sensitivity_step must be a step with three sizes, got {step}. There are {there}.")

    def of(options: FieldOptions) -> Any:
        source = open_fields(options)
        return lambda: source.read((step,))

    patterns = questions.tensors or (("*w1", "*w2") if given.runs else ())
    tensors = {pattern: of(dataclasses.replace(given, include=(pattern,))) for pattern in patterns}
    options = {"max_nodes": probe.max_nodes, "confidence": questions.confidence}
    return measure_sensitivity(of(given), settings, tensors=tensors, **options)


def _write(
    tables: dict[str, pd.DataFrame], told: dict[str, Any], target: Path, figures: bool, confidence: float
) -> tuple[list[Path], list[tuple[str, str]]]:
    """Returns the files, and which figures are missing, and why."""
    from toydepth.runs.files import replacing, write_json

    with replacing(target / "transport.parquet") as temporary:
        tables["cascades"].to_parquet(temporary)
    write_json(target / "transport.json", told)
    written = [target / "transport.parquet", target / "transport.json"]
    if not figures:
        return written, []
    from toydepth.report.transport_figures import write_transport_figures

    drawn = write_transport_figures(tables, target, confidence)
    return written + drawn.paths, drawn.skipped

"""Fields of models of several sizes over a training: cascades of all, exponents at each step, effects of the nulls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from toydepth.errors import InputError
from toydepth.transport.exponents import Exponents, fit_exponents
from toydepth.transport.nulls import null_effects
from toydepth.transport.probe import NUMBERS, ProbeSettings, measure_field, slopes_by_seed, unmeasured

CHANNELS = ("D", "z", "beta", "delta")
LABELS = ("family", "model", "replicate", "step")


@dataclass(frozen=True, eq=False)
class StudyField:
    """One field, and whose it is.

    Attributes:
        family: models that differ in size alone; exponents are over these.
        model: of which size, in words. replicate: of models that differ in nothing but their seed.
        step: of the training.
        values: (N,), flattened parameters in a fixed order.
        about: more numbers of that model and step, such as loss and learning_rate.
        problem: why it is not measured, known to whoever read it; its row says so, as for a field without a cascade.
    """

    family: str
    model: str
    replicate: int
    step: int
    values: np.ndarray
    about: Mapping[str, Any]
    problem: str | None = None


def measure_study(
    fields: Iterable[StudyField],
    settings: ProbeSettings,
    *,
    max_nodes: int | None = None,
    on_field: Callable[[StudyField], None] = lambda field: None,
) -> pd.DataFrame:
    """Returns a row a cascade: of each field, in the settings' order and `as_is`, and of its nulls.

    N0 does not depend on the field: it is run once for each number of nodes. Fields are held one at a time.

    Args:
        fields: in any order.
        settings: of the probe.
        max_nodes: larger fields are sampled down to it (`place_nodes`); None for no limit.
        on_field: called after each.

    Returns:
        family, model, replicate, step, num_values (of the whole field), then the columns of `measure_field`, kind being
        field, as_is, N0, N1 or N2, and those of `about`.

    Raises:
        InputError: for no field; for the same model, replicate and step twice.
    """
    tables, gaussian = [], {}
    seen: set[tuple[Any, ...]] = set()
    as_is = replace(settings, order="as_is")
    for field in fields:
        labels = {name: getattr(field, name) for name in LABELS}
        key = tuple(labels.values())
        if key in seen:
            got = f"{field.model}, replicate {field.replicate}, step {field.step} of {field.family} twice"
            raise InputError(f"fields must be one a model, replicate and step, got {got}. Leave one out.")
        seen.add(key)
        count = len(field.values)
        nodes = None if max_nodes is None or count <= max_nodes else max_nodes
        if field.problem is None:
            own = measure_field(field.values, settings, num_nodes=nodes, kinds=("field", "N1", "N2"))
        else:
            own = unmeasured(nodes or count, settings, field.problem)
        parts = [own]
        if bool(own["problem"].isna().all()):
            placed = measure_field(field.values, as_is, num_nodes=nodes, kinds=("field",))
            size = nodes or count
            if size not in gaussian:
                # Any finite field of that size will do: N0 is drawn anew.
                gaussian[size] = measure_field(np.arange(1.0, size + 1), settings, kinds=("N0",))
            parts += [placed.assign(kind="as_is"), gaussian[size]]
        table = pd.concat(parts, ignore_index=True)
        for name, value in ({**labels, "num_values": count} | dict(field.about)).items():
            table[name] = value
        tables.append(table)
        on_field(field)
    if not tables:
        raise InputError("fields must be one or more, got none. Check the folders and the steps.")
    joined = pd.concat(tables, ignore_index=True)
    first = [*LABELS, "kind", "seed", "num_nodes", "num_values", *NUMBERS, "capped", "problem"]
    return joined.reindex(columns=[*first, *(name for name in joined.columns if name not in first)])


def exponents_by_step(table: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Returns D, z, beta, delta of each family, step and kind, or why there are none.

    Args:
        table: of `measure_study`.
        confidence: of the intervals.

    Returns:
        A row a family, step and kind: family, step, kind; of each channel its value (by its name), `_error`, `_low`,
        `_high`, `_r_squared`, `_curved`; v_rel, its geometric mean over sizes, with `_low`, `_high`; num_sizes,
        num_cascades, num_capped, capped_sizes, closure_error; missing, the reason where there are no numbers.

    Raises:
        InputError: where no family has three sizes at any step.
    """
    rows, most = [], 0
    for keys, own in _grouped(table, ["family", "step", "kind"]):
        usable = pd.DataFrame(own[own["problem"].isna()])
        sizes = len(usable["num_nodes"].unique())
        most = max(most, len(own["num_nodes"].unique()))
        row: dict[str, Any] = dict(zip(("family", "step", "kind"), keys, strict=True))
        if sizes < 3:
            problems = ", ".join(sorted(set(own["problem"].dropna()))) or "none is missing"
            rows.append(
                row | {"num_sizes": sizes, "missing": f"{sizes} sizes, of 3 or more that it takes ({problems})"}
            )
            continue
        columns = [usable[name].to_numpy() for name in ("num_nodes", "size", "duration", "capped")]
        rows.append(row | _told(fit_exponents(*columns, confidence=confidence)))
    if most < 3:
        raise InputError(f"sizes must be 3 or more in a family, got {most} at most. Add models of other sizes.")
    return pd.DataFrame(rows)


def _told(fit: Exponents) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name in CHANNELS:
        slope = getattr(fit, name)
        low, high = slope.interval or (np.nan, np.nan)
        told |= {name: slope.slope, f"{name}_error": slope.standard_error, f"{name}_low": low, f"{name}_high": high}
        told |= {f"{name}_r_squared": slope.r_squared, f"{name}_curved": slope.is_curved}
    low, high = fit.delta.level_interval or (np.nan, np.nan)
    told |= {"v_rel": np.exp(fit.delta.level), "v_rel_low": np.exp(low), "v_rel_high": np.exp(high)}
    counts = ("num_sizes", "num_cascades", "num_capped", "capped_sizes", "closure_error")
    return told | {name: getattr(fit, name) for name in counts} | {"missing": None}


def effects_by_step(table: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Returns both effects on D, z, beta, delta of each family and step, paired by graph seed.

    distribution = N2 - N0; assignment = the field with its nodes `as_is` - N2, whatever the settings' order is: after a
    permutation a field is itself a draw of N2, and has none.

    Returns:
        A row a family, step, effect and channel: family, step, effect, channel, mean, low, high, num_pairs, num_capped
        (cascades of both kinds that reached the cap).
    """
    rows = []
    for (family, step), own in _grouped(table, ["family", "step"]):
        slopes = slopes_by_seed(own)
        capped = {str(kind): int(np.sum(some["capped"])) for kind, some in own.groupby("kind")}
        for channel in CHANNELS:
            by_kind = {
                name: slopes.query("kind == @kind").sort_values("seed")[channel].to_numpy()
                for name, kind in (("field", "as_is"), ("N0", "N0"), ("N2", "N2"))
            }
            if len({len(values) for values in by_kind.values()}) > 1 or not len(by_kind["field"]):
                continue
            for effect, found in null_effects(by_kind, order="as_is", confidence=confidence).items():
                low, high = found.interval or (np.nan, np.nan)
                row = {"family": family, "step": step, "effect": effect, "channel": channel, "mean": found.mean}
                kinds = ("N2", "N0") if effect == "distribution" else ("as_is", "N2")
                row["num_capped"] = sum(capped.get(kind, 0) for kind in kinds)
                rows.append(row | {"low": low, "high": high, "num_pairs": found.num_pairs})
    columns = ["family", "step", "effect", "channel", "mean", "low", "high", "num_pairs", "num_capped"]
    return pd.DataFrame(rows, columns=columns)


def _grouped(table: pd.DataFrame, keys: list[str]) -> list[tuple[Any, pd.DataFrame]]:
    return [(names, pd.DataFrame(own)) for names, own in table.groupby(keys, sort=False, dropna=False)]

"""The probe: a field and its nulls on graphs of several seeds, a row a cascade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from toydepth.errors import InputError
from toydepth.transport.cascade import SignRule, run_cascade
from toydepth.transport.checks import check_word
from toydepth.transport.exponents import fit_exponents
from toydepth.transport.fields import NodeOrder, check_field, place_nodes
from toydepth.transport.nulls import null_field
from toydepth.transport.stored import load_graph

KINDS = ("field", "N0", "N1", "N2")
NUMBERS = ("size", "duration", "efficiency", "threshold", "conservation_error")


@dataclass(frozen=True)
class ProbeSettings:
    """What the sources leave open, and what they fix; recorded with each result.

    Args:
        m_BA: edges a new node. percentile, sign, cap: of `run_cascade`.
        order, order_seed: of `place_nodes`.
        seeds: of graphs and null draws; one replicate each.
    """

    m_BA: int = 2
    percentile: float = 90.0
    sign: SignRule = "signed"
    cap: int = 500
    order: NodeOrder = "permuted"
    order_seed: int = 0
    seeds: tuple[int, ...] = (0, 1, 2, 3)

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"seeds must be one or more distinct numbers, got {self.seeds}. Each is a replicate.")

    def record(self) -> dict[str, Any]:
        """Returns the settings as plain values."""
        return asdict(self)


def measure_field(
    values: np.ndarray,
    settings: ProbeSettings | None = None,
    *,
    num_nodes: int | None = None,
    kinds: Sequence[str] = KINDS,
    keep_graphs: bool = True,
) -> pd.DataFrame:
    """Runs the cascades of a field and of its nulls, on the same graph for each seed.

    Args:
        values: (length,), flattened parameters in a fixed order.
        num_nodes: a sample of that many; None takes all.
        kinds: of field, N0, N1, N2.
        keep_graphs: on disk, for the next field of that size.

    Returns:
        A row a kind and seed: kind, seed, num_nodes, size, duration, efficiency, threshold, capped,
        conservation_error, problem. A field that has no cascade has one row a seed of kind `field`, NaN for numbers,
        and the problem's words; so has a null of it that has none.

    Raises:
        InputError: for settings out of range, or fewer values than num_nodes.

    Example:
        >>> table = measure_field(np.random.default_rng(0).normal(size=500), ProbeSettings(seeds=(0,)))
        >>> table["kind"].tolist(), bool(table["capped"].any())
        (['field', 'N0', 'N1', 'N2'], False)
    """
    settings = settings or ProbeSettings()
    for kind in kinds:
        check_word("kinds", kind, KINDS)
    # A sample of what is not finite might be finite, and pass: the whole field is looked at first.
    problem = check_field(values, settings.percentile).problem
    field = place_nodes(values, num_nodes, order=settings.order, seed=settings.order_seed) if len(values) else values
    problem = problem or check_field(field, settings.percentile).problem
    if problem:
        return unmeasured(len(field), settings, str(problem))
    rows = []
    for seed in settings.seeds:
        graph = load_graph(len(field), settings.m_BA, seed, keep=keep_graphs)
        for kind in kinds:
            drawn = field if kind == "field" else null_field(kind, field, seed)
            found = check_field(drawn, settings.percentile).problem
            if found:
                rows.append(_row(kind, seed, len(field), problem=str(found)))
                continue
            cascade = run_cascade(graph, drawn, percentile=settings.percentile, sign=settings.sign, cap=settings.cap)
            numbers = {name: getattr(cascade, name) for name in NUMBERS}
            rows.append(_row(kind, seed, len(field), capped=cascade.capped, **numbers))
    return pd.DataFrame(rows)


def unmeasured(num_nodes: int, settings: ProbeSettings, problem: str) -> pd.DataFrame:
    """Returns the rows of a field without a cascade: one a seed, with the reason and no number."""
    return pd.DataFrame([_row("field", seed, num_nodes, problem=problem) for seed in settings.seeds])


def measure_sizes(
    values: np.ndarray, sizes: Sequence[int], settings: ProbeSettings | None = None, **options: Any
) -> pd.DataFrame:
    """Returns the rows of `measure_field` for samples of one field of several sizes.

    Slopes over them say how cascades of one field's values grow with nodes; not how those of larger models do, whose
    fields differ.

    Args:
        sizes: numbers of nodes, each once; samples are drawn independently.
        options: of `measure_field`.

    Raises:
        InputError: as `measure_field`; for no sizes, or one given twice.
    """
    if not len(sizes) or len(set(sizes)) < len(sizes):
        raise InputError(
            f"sizes must be one or more numbers of nodes, each once, got {tuple(sizes)}. Give three or more."
        )
    tables = [measure_field(values, settings, num_nodes=size, **options) for size in sizes]
    return pd.concat(tables, ignore_index=True)


def _row(kind: str, seed: int, num_nodes: int, **known: Any) -> dict[str, Any]:
    blank = {**dict.fromkeys(NUMBERS, float("nan")), "capped": False, "problem": None}
    return {"kind": kind, "seed": seed, "num_nodes": num_nodes, **blank, **known}


def slopes_by_seed(table: pd.DataFrame) -> pd.DataFrame:
    """Returns D, z, beta, delta of each kind and seed: what `null_effects` pairs.

    Args:
        table: rows of `measure_field`, of three sizes or more; rows with a problem are left out.

    Returns:
        A row a kind and seed: kind, seed, D, z, beta, delta; NaN where a seed has fewer than three sizes left.
    """
    rows = []
    usable = table["problem"].isna().to_numpy()
    columns = [table[name].to_numpy() for name in ("num_nodes", "size", "duration")]
    for (kind, seed), places in table.groupby(["kind", "seed"], sort=False).indices.items():  # pyright: ignore
        nodes, size, duration = (column[places[usable[places]]] for column in columns)
        found = dict.fromkeys(("D", "z", "beta", "delta"), float("nan"))
        if len(np.unique(nodes)) >= 3:
            fit = fit_exponents(nodes, size, duration)
            found = {name: getattr(fit, name).slope for name in found}
        rows.append({"kind": kind, "seed": seed} | found)
    return pd.DataFrame(rows)

"""How exponents move with what the sources leave open: one setting at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from toydepth.transport.probe import ProbeSettings, measure_field, unmeasured
from toydepth.transport.study import StudyField, exponents_by_step

Fields = Callable[[], Iterable[StudyField]]
VARIANTS: dict[str, tuple[Any, ...]] = {
    "m_BA": (1, 2, 3, 5),
    "percentile": (80.0, 85.0, 90.0, 95.0),
    "sign": ("signed", "absolute"),
    "order": ("permuted", "as_is"),
    "order_seed": (0, 1, 2),
}


def vary(settings: ProbeSettings) -> Iterator[tuple[str, Any, ProbeSettings]]:
    """Yields (setting, value, settings with it), the given value of each first and once."""
    for name, values in VARIANTS.items():
        own = getattr(settings, name)
        for value in (own, *(other for other in values if other != own)):
            yield name, value, replace(settings, **{name: value})


def measure_sensitivity(
    fields: Fields,
    settings: ProbeSettings,
    *,
    tensors: Mapping[str, Fields] | None = None,
    max_nodes: int | None = None,
    confidence: float = 0.95,
    on_variant: Callable[[str, Any], None] = lambda name, value: None,
) -> pd.DataFrame:
    """Returns the exponents of the fields of one step under each variant of one setting, the others as they are.

    Args:
        fields: gives the fields anew each time it is called: those of one step, of every size.
        settings: around which it is varied.
        tensors: the same of some tensors alone, by a name of these; each is a variant.
        max_nodes: as `measure_study`; where fields are sampled, half of it is a variant too.
        confidence: of the intervals.
        on_variant: called before each.

    Returns:
        A row a family and variant: setting, value, is_default, then as `exponents_by_step`.
    """
    variants = [(name, value, fields, own, max_nodes) for name, value, own in vary(settings)]
    if max_nodes is not None:
        variants += [("max_nodes", number, fields, settings, number) for number in (max_nodes, max_nodes // 2)]
    if tensors:
        parts = {"as given": fields, **tensors}
        variants += [("tensors", name, given, settings, max_nodes) for name, given in parts.items()]
    tables, plain = [], None
    for name, value, given, own, most in variants:
        on_variant(name, value)
        is_default = given is fields and own == settings and most == max_nodes
        if is_default and plain is not None:
            table = plain.copy()
        else:
            table = exponents_by_step(_measure(given(), own, most), confidence)
            plain = table.copy() if is_default else plain
        table.insert(0, "setting", name)
        table.insert(1, "value", str(value))
        table.insert(2, "is_default", is_default)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _measure(fields: Iterable[StudyField], settings: ProbeSettings, max_nodes: int | None) -> pd.DataFrame:
    """Of the fields alone, without nulls."""
    tables = []
    for field in fields:
        count = len(field.values)
        nodes = None if max_nodes is None or count <= max_nodes else max_nodes
        if field.problem is None:
            table = measure_field(field.values, settings, num_nodes=nodes, kinds=("field",))
        else:
            table = unmeasured(nodes or count, settings, field.problem)
        tables.append(table.assign(family=field.family, model=field.model, replicate=field.replicate, step=field.step))
    return pd.concat(tables, ignore_index=True)

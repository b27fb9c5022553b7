"""`toydepth hidden --runs`: the table by layer that is printed, shortened where networks are deep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = ("theta_states", "theta_updates", "norm", "progress")
_MOST_LAYERS = 9


def print_networks(table: pd.DataFrame) -> None:
    """Prints the layers of every kind of network, means over its replicates; of deep ones nine, evenly spaced."""
    from toydepth.cli.output import known
    from toydepth.fit.law.text import align

    groups: dict[tuple[Any, ...], dict[int, list[dict[str, Any]]]] = {}
    for row in table.to_dict("records"):
        labels = (row["run"], row["teacher"], row["network"], row["init"], row["temperature"], row["depth"])
        # Missing labels as None: NaN is not equal to itself.
        key = tuple(value if known(value) else None for value in labels)
        groups.setdefault(key, {}).setdefault(int(row["layer"]), []).append({str(k): v for k, v in row.items()})
    cells = [["network", "layer", *_SHOWN, "examples"]]
    for (_, teacher, network, init, temperature, depth), layers in groups.items():
        hot = "" if temperature is None else f", T {temperature:g}"
        name = f"{teacher} teacher" if network == "teacher" else f"{teacher}, {init} init{hot}, depth {depth}"
        places = sorted({round(step * depth / (_MOST_LAYERS - 1)) for step in range(_MOST_LAYERS)})
        for layer in places:
            means = [_mean([row[column] for row in layers[layer]]) for column in _SHOWN]
            cells.append([name, str(layer), *means, str(layers[layer][0]["tokens"])])
            name = ""
    print("\n".join(align(cells)))
    print("theta in rad, pi/2 = 1.571; means over replicates; all layers are in hidden.parquet\n")


def _mean(values: list[float]) -> str:
    finite = [value for value in values if value == value]
    return f"{sum(finite) / len(finite):.4g}" if finite else "-"

"""What `toydepth transport` prints: exponents by step, effects, flags, association, sensitivity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from toydepth.cli.output import known

if TYPE_CHECKING:
    import pandas as pd

    from toydepth.transport import ProbeSettings

Row = dict[str, Any]
_CHANNELS = ("D", "z", "beta", "delta")
_NULLS = {
    "field": "field",
    "as_is": "field, nodes as they are",
    "N0": "N0 Gaussian",
    "N1": "N1 Gaussian, its mean and variance",
    "N2": "N2 its values permuted",
}
_EFFECTS = {"distribution": "distribution effect, N2 - N0", "assignment": "assignment effect, as they are - N2"}


def print_study(tables: dict[str, pd.DataFrame], settings: ProbeSettings, notes: list[str]) -> None:
    """Prints the tables of a study."""
    rows = {name: _records(table) for name, table in tables.items()}
    given = ", ".join(f"{name} {value}" for name, value in settings.record().items() if name != "seeds")
    print(f"probe: {given}, {len(settings.seeds)} graphs of each size")
    for family in _distinct(rows["exponents"], "family"):
        own = {name: [row for row in some if row["family"] == family] for name, some in rows.items()}
        print(f"\n{family}\n{_sizes(own['cascades'])}")
        _print_exponents(own)
        _print_nulls(own)
    _print_association(rows["association"])
    _print_sensitivity(rows.get("sensitivity", []))
    _print_flags(rows["cascades"], notes)


def _sizes(cascades: list[Row]) -> str:
    """Such as `width 4: N = 912; width 8: N = 3360`."""
    sizes = {row["model"]: row for row in cascades if row["kind"] == "field"}
    words = []
    for model, row in sorted(sizes.items(), key=lambda item: item[1]["num_nodes"]):
        sampled = f" of {row['num_values']}" if row["num_values"] > row["num_nodes"] else ""
        words.append(f"{model}: N = {row['num_nodes']}{sampled}")
    return "; ".join(words)


def _print_exponents(own: dict[str, list[Row]]) -> None:
    """A line a step."""
    cells = [["step", *_CHANNELS, "v_rel", "R^2 of s, n, v_rel", "flags"]]
    most = max(row["num_sizes"] for row in own["exponents"])
    for row in own["exponents"]:
        if row["kind"] != "field":
            continue
        if known(row["missing"]):
            cells.append([str(row["step"]), *["-"] * 6, str(row["missing"])])
            continue
        fits = ", ".join(_two(row[f"{name}_r_squared"]) for name in ("D", "z", "delta"))
        flags = [f"{name} curved" for name in ("D", "z", "delta") if row[f"{name}_curved"] is True]
        if row["num_sizes"] < most:
            flags.append(f"{row['num_sizes']} of {most} sizes")
        flags += filter(None, [_capped(row)])
        numbers = [_with_interval(row, name) for name in _CHANNELS]
        cells.append([str(row["step"]), *numbers, _with_interval(row, "v_rel", ".3g"), fits, ", ".join(flags)])
    _print_table(cells)


def _print_nulls(own: dict[str, list[Row]]) -> None:
    """At the last step with exponents: D, z, delta of the nulls, and both effects."""
    whole = [row for row in own["exponents"] if not known(row["missing"])]
    if not whole:
        return
    step = max(row["step"] for row in whole)
    cells = [[f"step {step}", "D", "z", "delta", "flags"]]
    for row in whole:
        if row["step"] == step:
            numbers = [_with_interval(row, name) for name in ("D", "z", "delta")]
            cells.append([_NULLS[row["kind"]], *numbers, _capped(row)])
    for effect, words in _EFFECTS.items():
        found = {row["channel"]: row for row in own["effects"] if (row["step"], row["effect"]) == (step, effect)}
        if found:
            numbers = [_effect(found.get(name)) for name in ("D", "z", "delta")]
            cells.append([words, *numbers, _capped(next(iter(found.values())))])
    print()
    _print_table(cells)


def _print_association(rows: list[Row]) -> None:
    if not rows:
        print("\nno association: it takes 12 steps or more with a loss (--curve)")
        return
    cells = [["association with ln loss", "channel", "rho", "given learning rate", "given step", "of changes", "flags"]]
    found: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["family"], row["model"], row["channel"]), {})[row["kind"]] = row
    for (family, model, channel), kinds in found.items():
        parts = [_rho(kinds.get(kind)) for kind in ("raw", "partial", "given_step", "differences")]
        trend = kinds["raw"]["trend"]
        flags = [f"a trend? lost {trend}" if trend else "", _capped(kinds["raw"])]
        cells.append([f"{family}, {model}", channel, *parts, ", ".join(filter(None, flags))])
    print()
    _print_table(cells)
    print("rank correlations with their intervals; * p < 0.05 after Holm over the channels of a model, or of a family")


def _print_sensitivity(rows: list[Row]) -> None:
    for family in _distinct(rows, "family"):
        own = [row for row in rows if row["family"] == family]
        cells = [[f"{family}, step {own[0]['step']}", "", "D", "z", "delta", "flags"]]
        for row in own:
            value = row["value"] + (" (as above)" if row["is_default"] else "")
            missing = known(row["missing"])
            numbers = ["-"] * 3 if missing else [_with_interval(row, name) for name in ("D", "z", "delta")]
            cells.append([row["setting"], value, *numbers, str(row["missing"]) if missing else _capped(row)])
        print()
        _print_table(cells)


def _print_flags(cascades: list[Row], notes: list[str]) -> None:
    bad: dict[str, dict[tuple[Any, ...], Row]] = {}
    for row in cascades:
        if row["kind"] == "field" and known(row["problem"]):
            key = (row["family"], row["model"], row["replicate"], row["step"])
            bad.setdefault(row["problem"], {})[key] = row
    for problem, some in bad.items():
        first = next(iter(some.values()))
        print(f"{len(some)} fields without a cascade, {problem}: {first['model']} at step {first['step']}, ...")
    capped = sum(bool(row["capped"]) for row in cascades)
    if capped:
        print(f"{capped} cascades reached the cap: their size and duration are lower bounds")
    for note in notes:
        print(f"note: {note}")


def _print_table(cells: list[list[str]]) -> None:
    from toydepth.fit.law.text import align

    print("\n".join(line.rstrip() for line in align(cells)))


def _records(table: pd.DataFrame) -> list[Row]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def _distinct(rows: Iterable[Row], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in rows))


def _with_interval(row: Row, name: str, form: str = ".3f") -> str:
    if not known(row[name]):
        return "-"
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    return f"{value:{form}} [{low:{form}}, {high:{form}}]" if known(low) else f"{value:{form}}"


def _capped(row: Row) -> str:
    return f"{row['num_capped']:.0f} cascades capped: lower bounds" if row["num_capped"] else ""


def _two(value: Any) -> str:
    return f"{value:.2f}" if known(value) else "-"


def _effect(row: Row | None) -> str:
    if row is None or not known(row["mean"]):
        return "-"
    if not known(row["low"]):
        return f"{row['mean']:+.3f}"
    return f"{row['mean']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"


def _rho(row: Row | None) -> str:
    if row is None:
        return ""
    if not known(row["rho"]):
        return f"- ({row['problem']})"
    mark = "*" if known(row["p_holm"]) and row["p_holm"] < 0.05 else ""
    if not known(row["low"]):
        return f"{row['rho']:+.2f}{mark}"
    return f"{row['rho']:+.2f}{mark} [{row['low']:+.2f}, {row['high']:+.2f}]"

"""What repeating arXiv 2602.05970 gave, as text: side by side, along the steps, and the standard errors."""

from __future__ import annotations

from typing import Any

from toydepth.fit.law.text import align, interval_text, significant

_SHOWS = 1e-3  # of an exponent: what three decimals tell
_ORDER = ("alpha_m", "alpha_ell", "alpha_D", "L0", "c_m", "c_ell", "c_D")


def depth_lines(numbers: dict[str, Any]) -> list[str]:
    """Returns the lines of `repeat_depth`'s numbers."""
    lines = [*_side_by_side(numbers), "", *_verdicts(numbers), "", *_path(numbers)]
    if "standard_errors" in numbers:
        lines += ["", *_errors(numbers)]
    return lines


def _side_by_side(numbers: dict[str, Any]) -> list[str]:
    published, exact = numbers["published"], numbers["exact"]
    repeated, double = numbers["repeated"], numbers["repeated_in_double_precision"]
    table = [["", "published", "repeated", "in double precision", "exact minimum", "std. error", "95 % profile"]]
    for name in _ORDER:
        error = published["errors_as_published"].get(name)
        value = published["values"][name]
        shown = f"{value:.3f} +- {error:.3f}" if error is not None else significant(value)
        known, spread = exact["values"][name], exact["standard_errors"].get(name)
        number = "not identified" if known is None else significant(known) if name.startswith("c_") else f"{known:.4f}"
        cells = [] if known is None else [significant(spread, spread), interval_text(exact["intervals"][name], spread)]
        table.append([name, shown, _digits(repeated, name), _digits(double, name), number, *cells])
    objectives = [one["objective"] for one in (published, repeated, double, exact)]
    table.append(["objective", *[f"{value:.7f}" for value in objectives]])
    lines = [
        "c in units of 100 layers and 1e6 tokens; objective: mean squared residual of ln L, x 100",
        "",
        *align(table),
    ]
    for reason in dict.fromkeys(exact["unidentified"].values()):
        names = [name for name, why in exact["unidentified"].items() if why == reason]
        lines.append(f"  not identified: {', '.join(names)}: {reason}; what the procedure gives is where it stopped")
    return lines


def _verdicts(numbers: dict[str, Any]) -> list[str]:
    published, exact = numbers["published"], numbers["exact"]
    repeated, double = numbers["repeated"], numbers["repeated_in_double_precision"]
    if published["of_this_table"]:
        above = 100 * (published["objective"] / exact["objective"] - 1)
        best = exact["values"]["alpha_ell"]
        instead = "" if best is None else f"; alpha_ell is {best:.3f} there, not {published['values']['alpha_ell']:.3f}"
        lines = [
            f"The published point is not the minimum: its objective is {above:.2f} % above it (delta chi2 "
            f"{published['delta_chi2']:.2g}, all 7 parameters){instead}."
        ]
    else:
        lines = [
            f"The published numbers are of another table ({published['rows']} rows of the digitised Chinchilla one): "
            "they are shown, not compared."
        ]
    one, other = repeated["values"]["alpha_ell"], double["values"]["alpha_ell"]
    ends = (
        f"end at alpha_ell {other:.4f}, not {one:.4f}: where a descent has not converged, rounding shows."
        if abs(one - other) > _SHOWS
        else "end at the same alpha_ell."
    )
    lines.append(
        "Repeated: exponents and L0 in single precision, ln c in double, as published. In double precision throughout "
        f"the same steps {ends}"
    )
    last = numbers["last_tenth"]
    lines.append(
        f"Over the last {last['steps']} steps the objective is {last['lowest']:.7f} ... {last['highest']:.7f}, "
        f"median {last['median']:.7f}; {last['recorded_last']:.7f} before the last step, "
        f"{repeated['objective']:.7f} after it."
    )
    return lines


def _path(numbers: dict[str, Any]) -> list[str]:
    table = [["step", "precision", "objective", *_ORDER[:4], "c_m", "c_ell", "c_D"]]
    for one in numbers["path"]:
        table.append(
            [str(one["step"]), one["precision"], f"{one['objective']:.7f}", *[_digits(one, name) for name in _ORDER]]
        )
    exact = numbers["exact"]
    cells = [significant(exact["values"][n]) if n.startswith("c_") else _fixed(exact["values"][n]) for n in _ORDER]
    table.append(["exact", "", f"{exact['objective']:.7f}", *cells])
    ends = [one["values"]["alpha_ell"] for one in numbers["path"]]
    steps = [one["step"] for one in numbers["path"]]
    moved = f"alpha_ell goes from {ends[-3]:.3f} at step {steps[-3]} to {ends[-1]:.3f} at step {steps[-1]}"
    told = f"more of them go on moving: {moved}" if abs(ends[-1] - ends[-3]) > _SHOWS else "more of them change little"
    return [f"Along the steps of Adam ({told}):", "", *align(table)]


def _errors(numbers: dict[str, Any]) -> list[str]:
    formulas, published = numbers["standard_errors"], numbers["published"]
    table = [["", "published", *[f"of {one['residuals']}, s^2 over {one['divisor']}" for one in formulas]]]
    for name, error in published["errors_as_published"].items():
        table.append([name, f"{error:.4f}", *[f"{one['errors'][name]:.4f}" for one in formulas]])
    table.append(["off by at most", "", *[f"{100 * one['largest_difference']:.2g} %" for one in formulas]])
    first = formulas[0]
    lines = ["Standard errors at the published point, s^2 (J^T J)^-1:", "", *align(table), ""]
    lines.append(
        f"The published ones are those of residuals of {first['residuals']} (s^2 = {first['variance']:.5g}, over "
        f"{first['divisor']})" + (", although residuals of ln L were made small." if first["residuals"] == "L" else ".")
    )
    errors, values = published["errors_as_published"], published["values"]
    spelt = []
    for name in ("c_m", "c_ell", "c_D"):
        error = values[name] * errors[f"ln {name}"]
        spelt.append(f"{name} = {significant(values[name])} +- {significant(error, error)}")
    lines.append(f"What is published as the error of c is that of ln c; as one of c (value x it): {', '.join(spelt)}.")
    return lines


def _digits(one: dict[str, Any], name: str) -> str:
    value = one["values"][name]
    return significant(value) if name.startswith("c_") else f"{value:.4f}"


def _fixed(value: float | None) -> str:
    return "?" if value is None else f"{value:.4f}"

"""Do the channels of a study go with its losses? Of each model, v_rel and n / N; of a family, its exponents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from toydepth.transport.association import LEAST_STEPS, Association, Correlation, associate

# delta is beta - 1: the same channel twice would be corrected for twice.
_EXPONENTS = ("D", "z", "delta")
_KINDS = ("raw", "partial", "given_step", "differences")
ALL_SIZES = "all sizes"


def associate_study(
    table: pd.DataFrame,
    exponents: pd.DataFrame,
    *,
    block: int | None = None,
    num_bootstrap: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Returns rank correlations over steps, with the loss, the learning rate being the control where it is known.

    Of each model: ln v_rel and ln(n / N), means over replicates and graph seeds. Of each family: D, z, delta,
    with the mean over its models of ln loss. Channels of a model, or of a family, are corrected together (Holm).

    Args:
        table: of `measure_study`, with the column loss, and learning_rate where it is known.
        exponents: of `exponents_by_step`.
        block, num_bootstrap, confidence, seed: of `associate`.

    Returns:
        A row a family, model, channel and kind (raw, partial, given_step, differences): rho, low, high, p_holm,
        problem; num_steps; num_capped, cascades behind the channel that reached the cap; trend, in what the channel's
        raw correlation is lost. Empty where there is no loss, or fewer than 12 steps with one. Exponents are taken at
        the steps that have all sizes of the family: another set of models would be another curve.
    """
    rows: list[dict[str, Any]] = []
    options: dict[str, Any] = {"block": block, "num_bootstrap": num_bootstrap, "confidence": confidence, "seed": seed}
    if "loss" in table:
        fields = table[(table["kind"] == "field") & table["problem"].isna()]
        for family, own in fields.groupby("family", sort=False):
            rows += _of_family(str(family), pd.DataFrame(own), exponents, options)
    columns = ["family", "model", "channel", "kind", "rho", "low", "high", "p_holm", "problem", "num_steps"]
    columns += ["num_capped", "trend"]
    return pd.DataFrame(rows, columns=columns)


def _of_family(
    family: str, own: pd.DataFrame, exponents: pd.DataFrame, options: dict[str, Any]
) -> list[dict[str, Any]]:
    own = own.assign(
        log_efficiency=np.log(own["efficiency"]),
        log_relative_duration=np.log(own["duration"] / own["num_nodes"]),
        log_loss=np.log(own["loss"].where(own["loss"] > 0)),
    )
    own["learning_rate"] = own.get("learning_rate", np.nan)
    numbers = ["log_efficiency", "log_relative_duration", "log_loss", "learning_rate"]
    by_model = pd.DataFrame(own.groupby(["model", "step"], sort=True)[numbers].mean())
    rows: list[dict[str, Any]] = []
    capped = {str(model): int(np.sum(some["capped"])) for model, some in own.groupby("model")}
    for model in own.sort_values("num_nodes", kind="stable")["model"].unique():
        steps = pd.DataFrame(by_model.loc[model])
        channels = {"ln v_rel": steps["log_efficiency"], "ln n/N": steps["log_relative_duration"]}
        rows += _rows(family, model, channels, steps, options, capped[model])
    fitted = exponents[(exponents["family"] == family) & (exponents["kind"] == "field")].set_index("step")
    fitted = fitted[fitted["num_sizes"] == fitted["num_sizes"].max()]
    if set(_EXPONENTS) <= set(fitted.columns):
        by_model = by_model[np.isin(by_model.index.get_level_values("step"), fitted.index)]
        steps = pd.DataFrame(by_model.groupby("step")[["log_loss", "learning_rate"]].mean())
        channels = {name: fitted[name].reindex(steps.index) for name in _EXPONENTS}
        rows += _rows(family, ALL_SIZES, channels, steps, options, sum(capped.values()))
    return rows


def _rows(
    family: str, model: str, channels: dict[str, Any], steps: pd.DataFrame, options: dict[str, Any], capped: int
) -> list[dict[str, Any]]:
    known = steps["log_loss"].notna().to_numpy()
    if known.sum() < LEAST_STEPS:
        return []
    rates = steps["learning_rate"].to_numpy(float)[known]
    # A rate that never changes explains nothing, and one that is not known at some step would cost that step.
    controls = {"learning_rate": rates} if np.isfinite(rates).all() and np.ptp(rates) > 0 else None
    given = {name: np.asarray(values, float)[known] for name, values in channels.items()}
    found = associate(given, steps["log_loss"].to_numpy(float)[known], controls, **options)
    return [row | {"num_capped": capped} for one in found for row in _told(family, model, one)]


def _told(family: str, model: str, one: Association) -> list[dict[str, Any]]:
    rows = []
    for kind in _KINDS:
        part: Correlation | None = getattr(one, kind)
        if part is None:
            continue
        low, high = part.interval or (np.nan, np.nan)
        row = {"family": family, "model": model, "channel": one.channel, "kind": kind, "rho": part.rho}
        row |= {"low": low, "high": high, "p_holm": part.p_holm, "problem": part.problem or None}
        rows.append(row | {"num_steps": one.num_steps, "trend": one.trend})
    return rows

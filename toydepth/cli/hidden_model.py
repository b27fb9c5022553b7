"""`toydepth hidden --model`: language models on a text, one after another, and what is said of each."""

from __future__ import annotations

import dataclasses
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toydepth.cli.hidden_options import ComputeOptions, SourceOptions, StatisticsOptions
from toydepth.cli.output import StatusLine
from toydepth.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from toydepth.hidden import ClusterRule, Clusters
    from toydepth.llm import Survey

AT_FIRST = "model at position 0"
_COUNTS = ("documents", "empty", "shortened", "tokens", "tokens_per_second", "seconds", "readout_seconds")


@dataclass(eq=False)
class Measured:
    """One model: its table by layer, what it was measured on, its clusters (None where tokens were too few, and why).

    folder: of its own files. suffix: of its figures' names, where there are several models.
    """

    survey: Survey
    table: pd.DataFrame
    about: dict[str, Any]
    clusters: Clusters | None
    explained: list[float]
    no_clusters: str
    folder: Path
    suffix: str

    def clusters_told(self) -> dict[str, Any]:
        """Returns what hidden.json holds of the clusters."""
        told: dict[str, Any] = {"model": self.survey.name}
        if self.clusters is None:
            return told | {"missing": self.no_clusters}
        rows = self.clusters.table.to_dict("records")
        for row in rows:
            row["typical_tokens"] = [
                {"token": token, "text": self.survey.words.get(token), "in_cluster": own, "in_sample": total}
                for token, own, total in row["typical_tokens"]
            ]
        told |= {"table": rows, "explained_variance": self.explained, "bic": self.clusters.bic}
        told |= {"mixture_components": self.clusters.mixture_components, "most": self.clusters.rule.most}
        return told | {"capped": self.clusters.capped, "sampled_tokens": len(self.clusters.points)}

    def write(self) -> list[Path]:
        """Writes histograms.parquet, and clusters.parquet (a row a sampled token); returns their paths."""
        from toydepth.runs.files import replacing

        # What an earlier measurement left must not stand beside this one.
        for old in [self.folder / "clusters.parquet", *self.folder.parent.glob(f"hidden_profiles{self.suffix}.*")]:
            old.unlink(missing_ok=True)
        tables = {"histograms.parquet": self.survey.found.histogram_table()}
        if self.clusters is not None:
            texts = [self.survey.words.get(token) for token in self.clusters.points["token"]]
            tables["clusters.parquet"] = self.clusters.points.assign(text=texts)
        for name, table in tables.items():
            with replacing(self.folder / name) as temporary:
                table.to_parquet(temporary)
        kept = [self.folder / "state.npz", *sorted((self.folder / "tokens").glob("*.parquet"))]
        return [*(self.folder / name for name in tables), *kept]

    def draw(self) -> list[Path]:
        """Draws its histograms and clusters; returns the files."""
        from toydepth.report.hidden_histograms_figure import write_hidden_histograms_figure
        from toydepth.report.hidden_profiles_figure import write_hidden_profiles_figure

        target = self.folder.parent
        depth = self.survey.found.bulk.depth
        histograms = self.survey.found.histogram_table()
        paths = write_hidden_histograms_figure(histograms, depth, target, f"hidden_histograms{self.suffix}").paths
        if self.clusters is not None:
            own = self.clusters
            tables = (own.table, own.points, own.profiles, self.explained)
            paths += write_hidden_profiles_figure(*tables, target, f"hidden_profiles{self.suffix}").paths
        return paths


def measure_models(
    source: SourceOptions,
    compute: ComputeOptions,
    statistics: StatisticsOptions,
    rule: ClusterRule,
    folder: Path,
) -> tuple[list[Measured], int | None]:
    """Returns what was found of each model, and the signal that stopped it, if one did; what it had is saved."""
    from toydepth.llm import SurveySettings, survey_model
    from toydepth.llm.identity import model_identity

    if statistics.components < 1:
        raise InputError(f"components must be 1 or more, got {statistics.components}. 2 is the default, a plane.")
    if statistics.sample < 2 * rule.least_tokens:
        least = 2 * rule.least_tokens
        raise InputError(f"sample must be {least} or more (twice least_tokens), got {statistics.sample}. Raise it.")
    if statistics.seed < 0:
        raise InputError(f"seed must be 0 or more, got {statistics.seed}. Any such number will do.")
    options: dict[str, Any] = {}
    for group in (source, compute, statistics):
        options |= {one.name: getattr(group, one.name) for one in dataclasses.fields(group)}
    settings = SurveySettings(**{one.name: options[one.name] for one in dataclasses.fields(SurveySettings)})
    found: list[Measured] = []
    labels: dict[str, str] = {}
    for name in dict.fromkeys(source.model):
        identity = model_identity(name, source.revision)
        if labels.setdefault(identity, name) != name:
            raise InputError(f"model must be given once, got {labels[identity]} and {name}, of the same files.")
    for name in dict.fromkeys(source.model):
        label = re.sub(r"[^\w.-]+", "-", Path(name).expanduser().name.removesuffix(".gguf"))
        label = f"{label}-{model_identity(name, source.revision)[:6]}"
        with StatusLine() as line:
            on_batch = _reading(settings.docs, line.tell)
            survey = survey_model(name, settings, folder / label, restart=compute.restart, on_batch=on_batch)
        if survey.signal:
            words = f"interrupted after {survey.found.documents} documents of {name}, which are saved"
            print(f"toydepth hidden: {words}. The same command goes on from there.", file=sys.stderr)
            return found, survey.signal
        suffix = f"_{label}" if len(source.model) > 1 else ""
        found.append(_describe(survey, settings, rule, statistics, suffix))
    return found, None


def _reading(docs: int, tell: Callable[[str], None]) -> Callable[[Any], None]:
    """What is told after each batch: how far, how fast, and how long yet at most."""
    began: list[tuple[int, float]] = []

    def after_batch(found: Any) -> None:
        if not began:
            began.append((found.documents, time.monotonic()))
        first, start = began[0]
        words = f"{found.documents} of {docs} documents, {found.tokens} tokens, {found.tokens_per_second:.0f} tokens/s"
        if found.documents > first:
            left = (time.monotonic() - start) / (found.documents - first) * (docs - found.documents)
            words += f", {left:.0f} s left at most"
        tell(words)

    return after_batch


def _describe(survey: Survey, settings: Any, rule: ClusterRule, statistics: StatisticsOptions, suffix: str) -> Measured:
    found = survey.found
    table = found.table()
    network = ["model" if position == "bulk" else AT_FIRST for position in table["position"]]
    labels = {"run": survey.name, "network": network, "teacher": None, "replicate": 0, "depth": found.bulk.depth}
    labels |= {"init": None, "temperature": None, "block": None, "weights": None}
    for place, (column, value) in enumerate(labels.items()):
        table.insert(place, column, value)
    about = {"model": survey.name, **survey.about, **{count: getattr(found, count) for count in _COUNTS}}
    about |= {"resumed_from": survey.resumed, "settings": dataclasses.asdict(settings)}
    clusters, explained, why = None, [], ""
    assert found.profiles is not None
    count = found.profiles.covariance.count
    if count < 2 * rule.least_tokens:
        why = f"tokens with an angle at every layer must be {2 * rule.least_tokens} or more, got {count}"
    else:
        explained = [float(share) for share in found.profiles.components(statistics.components).shares]
        clusters = found.profiles.clusters(rule, statistics.components, statistics.seed)
    return Measured(survey, table, about, clusters, explained, why, survey.folder, suffix)


def print_model(one: Measured) -> None:
    """Prints the table by layer, the bulk beside position 0, and the clusters."""
    from toydepth.fit.law.text import align

    about, table = one.about, one.table
    print(f"{about['model']}: {about['weights']}, computed in {about['dtype']} on {about['device']}")
    print(
        f"{about['documents']} documents ({about['empty']} empty, {about['shortened']} cut), {about['tokens']} tokens, "
        f"{about['tokens_per_second']:.0f} a second"
    )
    if one.survey.found.readout is not None:
        tokens = one.survey.found.readout.num_tokens
        print(f"readouts: {about['readout_seconds']:.0f} s more, for the first {tokens} tokens of the bulk")
    print()
    known = ("theta_states", "theta_updates", "norm", "progress", "cross_entropy", "cross_entropy_last_block")
    shown = [name for name in known if name in table]
    records: list[dict[str, Any]] = table.to_dict("records")  # pyright: ignore[reportAssignmentType]
    first = {row["layer"]: row["norm"] for row in records if row["position"] == "first"}
    rows = [["layer", *shown, "norm at position 0", "not finite", "zero", "zero updates"]]
    for row in records:
        if row["position"] == "bulk":
            cells = ["-" if row[name] != row[name] else f"{row[name]:.4g}" for name in shown]
            counts = [f"{row[name]:.0f}" for name in ("num_not_finite", "num_zero", "num_zero_updates")]
            rows.append([f"{row['layer']:.0f}", *cells, f"{first[row['layer']]:.4g}", *counts])
    print("\n".join(align(rows)))
    print(
        "theta in rad, pi/2 = 1.571; theta_states of the step that leaves a layer, theta_updates of the two around it;"
        "\ncross-entropy in nats a token\n"
    )
    _print_clusters(one)


def _print_clusters(one: Measured) -> None:
    from toydepth.fit.law.text import align

    if one.clusters is None:
        print(f"no clusters: {one.no_clusters}\n")
        return
    own, confidence = one.clusters, 100 * one.clusters.rule.confidence
    rows = [["cluster", f"share of tokens, {confidence:g} %", "at position 0", "of position 0", "median norm"]]
    rows[0] += ["norm tells it", "valley", "typical tokens"]
    for row in own.table.to_dict("records"):
        share, low, high = (100 * row[name] for name in ("share", "share_low", "share_high"))
        words = [
            f"{one.survey.words.get(token, token)!r} {count}/{total}" for token, count, total in row["typical_tokens"]
        ]
        cells = ["bulk" if row["cluster"] == 0 else str(row["cluster"]), f"{share:.2f} [{low:.2f}, {high:.2f}]"]
        cells += [_percent(row["first_share"]), _percent(row["share_of_first"]), f"{row['median_norm']:.4g}"]
        cells += [_or_dash(row["norm_rank"]), _or_dash(row["valley"]), " ".join(words[:4])]
        rows.append(cells)
    print("\n".join(align(rows)))
    share = " and ".join(f"{100 * part:.0f}" for part in one.explained)
    told = f"in the space of {len(one.explained)} components ({share} % of the variance), {len(own.points)} tokens"
    told += f"; {own.mixture_components} Gaussians"
    told += f", at most {own.rule.most}: raise --most, a small cluster may hide" if own.capped else ""
    print(f"{told}; norm: the largest over layers; a token's count in the cluster and in the sample\n")


def _percent(value: float) -> str:
    return "-" if value != value else f"{100 * value:.0f} %"


def _or_dash(value: float) -> str:
    return "-" if value != value else f"{value:.2f}"

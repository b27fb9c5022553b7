"""The options of `toydepth hidden`, in groups as its help shows them; thresholds are `RegimeRule` and `ClusterRule`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SourceOptions:
    """What is measured: runs, or language models on a text.

    Args:
        runs: Folders of finished runs, or that hold such: their teachers and students.
        model: Or language models (extra `llm`): safetensors folders, .gguf files, or names on the hub.
        revision: Of models on the hub: a branch, a tag such as step3000, a commit.
        text: Their text: txt, jsonl or parquet files, or fineweb.
        field: Of jsonl and parquet, the text.
        docs: Documents of the text to read at most. With more than before, a measurement goes on.
        max_length: Tokens of a document that are read; the rest is counted.
    """

    runs: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    revision: str | None = None
    text: tuple[str, ...] = ()
    field: str = "text"
    docs: int = 1000
    max_length: int = 512


@dataclass(frozen=True)
class ComputeOptions:
    """How language models are run.

    Args:
        batch_size: Documents at a time; changes no number.
        dtype: That the model computes in.
        device: auto, cpu, cuda, mps, or split over several.
        restart: Begin anew, though the folder holds a measurement to go on from.
    """

    batch_size: int = 8
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    device: str = "auto"
    restart: bool = False


@dataclass(frozen=True)
class StatisticsOptions:
    """What is kept.

    Args:
        skip_first: Positions from here on are the bulk; position 0 is reported apart.
        readouts: Cross-entropy read out of every layer: lens, last_block, or both.
        readout_tokens: Tokens that are read out, the first ones: it costs several times the model itself. 0: none.
        allow_non_finite: Count states with NaN or inf and go on.
        tokens: Write every token's angles, norms and progress, in parquet parts.
        sample: Tokens whose profiles are kept to look for clusters.
        components: Principal components in which clusters are looked for.
        weights: Of a run's students: their moving average, or the raw ones.
        examples: Fresh inputs of a run's networks, the same for every one.
        seed: Of these inputs, of the sample, of the search for clusters.
    """

    skip_first: int = 1
    readouts: tuple[Literal["lens", "last_block"], ...] = ("lens", "last_block")
    readout_tokens: int = 2000
    allow_non_finite: bool = False
    tokens: bool = False
    sample: int = 20_000
    components: int = 2
    weights: Literal["average", "raw"] = "average"
    examples: int = 2048
    seed: int = 0


@dataclass(frozen=True)
class OutputOptions:
    """What is written.

    Args:
        folder: For tables, figures, and what a measurement goes on from.
        figures: Draw, or not.
        json: Print one object instead of text.
    """

    folder: str = "hidden"
    figures: Literal["yes", "no"] = "yes"
    json: bool = False

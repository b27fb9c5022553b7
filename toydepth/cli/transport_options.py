"""The options of `toydepth transport`, in groups as its help shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class FieldOptions:
    """Where the fields come from: one of runs, pico, checkpoints, fields.

    Args:
        runs: Folders of runs that wrote gradient snapshots (gradients.points=12), or that hold such.
        pico: Runs of Pico-LM, a size each, with learning dynamics.
        checkpoints: Models of one size each, with checkpoints by step; fields are differences of neighbours.
        fields: Files of vectors (npy, npz), a size and step each.
        sizes: Of runs: what a family's models differ in: width, depth, or both.
        split: Of Pico-LM: gradients on which data.
        rows: Of checkpoints, tensors that differ in the length of their first axis alone, as padded vocabularies do:
            leave them out, or take the rows in common.
        include: Tensors that count, as patterns of their names (attention.*, w1).
        exclude: Tensors that do not.
        steps: These steps alone; all where left out.
        allow_unfinished: Read runs that are still training, or were interrupted.
    """

    runs: tuple[str, ...] = ()
    pico: tuple[str, ...] = ()
    checkpoints: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    sizes: Literal["width", "depth", "both"] = "width"
    split: Literal["val", "train"] = "val"
    rows: Literal["skip", "common"] = "skip"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()
    allow_unfinished: bool = False


@dataclass(frozen=True)
class ProbeOptions:
    """The probe; what the sources leave open is marked ours, and recorded with each result.

    Args:
        m_ba: Edges a new node of the graph (ours: 2).
        percentile: Of |u|: the threshold.
        cap: Relaxation steps allowed; a cascade that reaches it is flagged.
        sign: Signed values move (ours), or absolute ones.
        order: How parameters come onto nodes: permuted (ours), or as they are.
        order_seed: Of the permutation, and of samples of large fields.
        num_seeds: Graphs of each size: replicates.
        max_nodes: Larger fields are sampled down to it.
    """

    m_ba: int = 2
    percentile: float = 90.0
    cap: int = 500
    sign: Literal["signed", "absolute"] = "signed"
    order: Literal["permuted", "as_is"] = "permuted"
    order_seed: int = 0
    num_seeds: int = 4
    max_nodes: int | None = None


@dataclass(frozen=True)
class QuestionOptions:
    """What else to ask.

    Args:
        curve: Table (csv, jsonl, parquet) of step, loss and, where known, learning_rate; and model, where models
            differ. Runs bring their own test losses, Pico-LM its training losses.
        block: Steps of a block of the bootstrap; found from the curves where left out.
        num_bootstrap: Resamples.
        sensitivity: How D, z, delta of one step move with each setting.
        sensitivity_step: At which step; the last where left out.
        tensors: Patterns of tensors of which each alone is a variant (*v_proj*); of runs w1 and w2 where left out.
        confidence: Of the intervals.
        seed: Of the bootstrap.
    """

    curve: str | None = None
    block: int | None = None
    num_bootstrap: int = 1000
    sensitivity: bool = False
    sensitivity_step: int | None = None
    tensors: tuple[str, ...] = ()
    confidence: float = 0.95
    seed: int = 0


@dataclass(frozen=True)
class OutputOptions:
    """What is written.

    Args:
        folder: For tables and figures.
        figures: Draw, or not.
        json: Print one object instead of text.
    """

    folder: str = "transport"
    figures: Literal["yes", "no"] = "yes"
    json: bool = False

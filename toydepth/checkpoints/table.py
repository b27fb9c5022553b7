"""Fields of several sizes at several steps, read one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toydepth.checkpoints.fields import Field
from toydepth.errors import InputError


@dataclass(frozen=True, eq=False)
class FieldTable:
    """What the probe goes through: step by step, and at each step all sizes.

    Attributes:
        size_labels: of the models, as given.
        steps: ascending; each has a field of every size. (None,) where the files tell no step.
        left_out: a sentence each: steps that not all sizes have, and what else is not read.
        read: step, size label -> its field; called when it is wanted, so that one field is in memory at a time.
    """

    size_labels: tuple[str, ...]
    steps: tuple[int | None, ...]
    left_out: tuple[str, ...]
    read: Callable[[int | None, str], Field]

    def fields(self, step: int | None) -> Iterator[Field]:
        """Yields the field of each size at a step; drop one before the next is asked for.

        Raises:
            InputError: for a step that is not in `steps`.
        """
        if step not in self.steps:
            known = ", ".join(map(str, self.steps[:8]))
            raise InputError(f"step must be one that all sizes have, got {step}. There are {known}.")
        return (self.read(step, label) for label in self.size_labels)

    def __iter__(self) -> Iterator[tuple[int | None, Iterator[Field]]]:
        return ((step, self.fields(step)) for step in self.steps)


def common_steps(
    found: Mapping[str, Sequence[int]], wanted: Sequence[int] | None = None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Returns the steps that all sizes have, ascending, and a sentence for each size that lacks some of the others'.

    Args:
        found: size label -> its steps.
        wanted: these alone; None takes all.

    Raises:
        InputError: for a wanted step that some size lacks, and where no step is common.

    Example:
        >>> common_steps({"small": [0, 10, 20], "large": [0, 20]})
        ((0, 20), ('large has no step 10',))
    """
    everywhere = set.intersection(*(set(steps) for steps in found.values())) if found else set()
    for step in wanted or ():
        for label, steps in found.items():
            if step not in steps:
                raise InputError(
                    f"steps must be ones that all sizes have, got {step}, which {label} lacks. Leave it out."
                )
    anywhere = {step for steps in found.values() for step in steps} if wanted is None else set(wanted)
    left_out = []
    for label, steps in found.items():
        lacking = sorted(anywhere - set(steps))
        if lacking:
            shown = ", ".join(map(str, lacking[:6])) + (f", ... ({len(lacking)} steps)" if len(lacking) > 6 else "")
            left_out.append(f"{label} has no step {shown}")
    common = tuple(sorted(everywhere if wanted is None else set(wanted)))
    if not common:
        got = "; ".join(left_out) or "no steps"
        raise InputError(f"sizes must have steps in common, got none ({got}). Check the folders.")
    return common, tuple(left_out)


def size_labels(folders: Sequence[str | Path]) -> dict[str, Path]:
    """Returns label -> folder: the shortest ends of the paths that tell the folders apart.

    A download of the hub's cache, models--organisation--name, is labelled by its name.

    Raises:
        InputError: for no folder, or one given twice.

    Example:
        >>> list(size_labels(["runs/a/final", "runs/b/final"])), list(size_labels(["x/models--org--tiny"]))
        (['a/final', 'b/final'], ['tiny'])
    """
    paths = [Path(folder).expanduser() for folder in folders]
    whole = [path.resolve() for path in paths]
    if not paths or len(set(whole)) < len(whole):
        got = "none" if not paths else f"{next(str(path) for path in paths if whole.count(path.resolve()) > 1)} twice"
        raise InputError(f"folders must be one or more, each once, got {got}. Give one a size.")
    deepest = max(len(path.parts) for path in whole)
    for shorten in (_short, str):
        for depth in range(1, deepest + 1):
            labels = ["/".join(shorten(part) for part in path.parts[-depth:]) for path in whole]
            if len(set(labels)) == len(labels):
                return dict(zip(labels, paths, strict=True))
    raise AssertionError("whole paths differ")


def _short(part: str) -> str:
    return part.split("--")[-1] if part.startswith("models--") else part

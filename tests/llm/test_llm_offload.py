"""Models larger than one device: weights that wait in memory or on a disk change no number."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra llm is not installed")
pytest.importorskip("transformers", reason="the extra llm is not installed")
accelerate = pytest.importorskip("accelerate", reason="the extra llm is not installed")

from toydepth.llm import load_model, measure_model  # noqa: E402
from toydepth.llm.adapters import find_parts  # noqa: E402
from toydepth.llm.capture import capture  # noqa: E402

CPU = torch.device("cpu")
IDS = np.random.default_rng(0).integers(3, 50, size=(2, 9))
MASK = np.arange(9) < np.array([[9], [5]])


def leaves_in_memory(model, _folder):
    """A hook at each module that holds weights, none at the blocks."""
    return accelerate.cpu_offload(model, execution_device=CPU)


def leaves_on_disk(model, folder):
    return accelerate.disk_offload(model, folder, execution_device=CPU)


def blocks_on_disk(model, folder):
    """Embedding and the first block stay; the others, the final norm and the head are on a disk."""
    parts = find_parts(model)
    names = {module: name for name, module in model.named_modules()}
    places = {name: "cpu" for module, name in names.items() if name and not list(module.children())}
    for block in parts.blocks:
        places = {name: place for name, place in places.items() if not name.startswith(names[block] + ".")}
    places |= {names[block]: "disk" if number else "cpu" for number, block in enumerate(parts.blocks)}
    places |= {names[parts.norm]: "disk", names[parts.head]: "disk"}
    return accelerate.dispatch_model(model, places, main_device="cpu", offload_dir=folder, force_hooks=True)


def away(model):
    """The names of weights that are not in the model between two passes."""
    return [name for name, weight in model.named_parameters() if weight.device.type == "meta"]


def same(found, expected):
    assert list(found.columns) == list(expected.columns)
    for name in found.columns.drop("position"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("offload", [leaves_in_memory, leaves_on_disk, blocks_on_disk])
@pytest.mark.parametrize("kind", ["llama", "gpt_neox"])
def test_offloaded_weights_change_no_number(tiny, tokenizer, documents, tmp_path, kind, offload):
    plain, spread = tiny(kind), offload(tiny(kind), tmp_path)
    parts = find_parts(spread)
    assert {name for name, _ in parts.head.named_parameters()} == {"weight"} and parts.head.weight.device.type == "meta"
    assert len(away(spread)) > 15
    states = [capture(found, IDS, MASK, keep=MASK).states for found in (parts, find_parts(plain))]
    for one, other in zip(*states, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)
    options = {"batch_size": 3, "padding": "left", "readouts": ("lens", "last_block")}
    tables = [measure_model(model, tokenizer, documents, **options).table() for model in (spread, plain)]
    same(*tables)
    assert len(away(spread)) > 15


def test_a_model_that_is_split(folder, monkeypatch):
    """On a machine whose memory holds a part of the weights, the rest is read from the folder at each pass."""
    whole = load_model(str(folder), device="cpu")
    split = load_model(str(folder), device="split")
    assert split.device == "cpu" or torch.cuda.is_available()
    monkeypatch.setattr("transformers.integrations.accelerate.accelerate_max_memory", lambda _given: {"cpu": 60_000})
    small = load_model(str(folder), device="split")
    kept = sum(weight.nbytes for weight in small.model.parameters() if weight.device.type != "meta")
    assert small.device == "several" and away(small.model) and 0 < kept < 60_000
    options = {"documents": ["a b c", "c a", "b"], "readouts": ("lens", "last_block")}
    tables = [measure_model(each.model, each.tokenizer, **options).table() for each in (whole, split, small)]
    for table in tables[1:]:
        same(table, tables[0])

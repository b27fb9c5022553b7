"""What is refused with or without the extra: paths that are not there, and the extra itself."""

import pytest

from toydepth.errors import InputError
from toydepth.llm import load_model
from toydepth.llm.models import require_llm


def test_paths_that_are_not_there(tmp_path):
    for name in (str(tmp_path / "none"), "./none", "~/none/x", "a/b/c", ""):
        with pytest.raises(InputError, match=r"model must be a folder, a .gguf file or a name on the hub"):
            load_model(name)
    with pytest.raises(InputError, match=r"model must be a file that exists, got .*none.gguf"):
        load_model(str(tmp_path / "none.gguf"))
    with pytest.raises(InputError, match=r"folder with config.json"):
        load_model(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match=r"folder with \*.safetensors"):
        load_model(str(tmp_path))


def test_without_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "torch" else object())
    with pytest.raises(InputError, match=r"extra llm must be installed.*got no torch\. .*toydepth\[llm\]"):
        require_llm()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "gguf" else object())
    with pytest.raises(InputError, match="got no gguf"):
        require_llm("gguf")

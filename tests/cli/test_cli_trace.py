"""`toydepth trace` and `toydepth utility`: what cannot be used is told in one line, before any model is loaded."""

import importlib.util
import json
import string

import pandas as pd
import pytest

from toydepth.cli import main

FACT = {"prompt": "The capital of France is", "subject": "France", "answer": "Paris"}
MISSING = [name for name in ("torch", "transformers", "tokenizers") if importlib.util.find_spec(name) is None]
needs_llm = pytest.mark.skipif(bool(MISSING), reason=f"the extra llm is not installed: {MISSING}")


def call(capsys, *arguments):
    capsys.readouterr()
    code = main([*map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "facts must be a file that exists, got"),
        ("", "facts must be a file with a fact a line, got none"),
        ('{"prompt": ', "line 1, must be JSON"),
        ("[1]", "line 1, must be an object with prompt, subject, answer, got list"),
        (json.dumps({"prompt": "x", "subject": "x"}), "line 1, must be an object with prompt, subject, answer, got"),
        (json.dumps(FACT) + "\n\n" + json.dumps(FACT | {"subject": "Spain"}), "line 3: subject must be in its prompt"),
        (json.dumps(FACT | {"answer": None}), "line 1: answer must be text, got None"),
    ],
)
def test_facts_that_cannot_be_used(capsys, tmp_path, content, words):
    file = tmp_path / "facts.jsonl"
    if content is not None:
        file.write_text(content)
    code, out, err = call(capsys, "trace", "--model", "x", "--facts", file, "--folder", tmp_path / "out")
    assert (code, out) == (2, "") and err.count("\n") == 1 and words in err
    assert err.startswith("toydepth trace: ") and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("trace", "--model", "x"), "facts"),
        (("trace", "--model", "x", "--facts", "x", "--folder", ""), "folder must be the name of a file or folder"),
        (("utility", "--model", "x"), "text must be files (txt, jsonl, parquet) or fineweb, got none"),
        (("utility", "--model", "x", "--text", "none.txt"), "text must be a file that exists, got none.txt"),
        (("utility", "--model", "x", "--text", "x.txt", "--docs", "0"), "docs must be 1 or more, got 0"),
        (("utility", "--model", "x", "--text", "x.txt", "--folder", ""), "folder must be the name of a file"),
        (("utility", "--model", "x", "--text", "x.txt", "--interventions", "drop"), "drop"),
    ],
)
def test_one_line_for_what_cannot_be_used(capsys, arguments, words):
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "") and err.count("\n") == 1 and words in err


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a tiny random model, and a tokenizer that makes a token of a letter."""
    import tokenizers
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("model")
    letters = {letter: number for number, letter in enumerate(["?", *string.ascii_letters, " ", "."])}
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel(letters, unk_token="?"))
    core.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(" ?."), "isolated")
    core.add_tokens([f" {letter}" for letter in string.ascii_letters])
    transformers.PreTrainedTokenizerFast(tokenizer_object=core, unk_token="?").save_pretrained(folder)
    sizes = {"num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2}
    sizes |= {"intermediate_size": 48, "max_position_embeddings": 128, "vocab_size": core.get_vocab_size()}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        own = transformers.AutoModelForCausalLM.from_config(transformers.LlamaConfig(**sizes))
    own.save_pretrained(folder)
    return folder


@needs_llm
def test_a_trace_is_written_and_printed(capsys, tmp_path, model):
    file = tmp_path / "facts.jsonl"
    file.write_text("\n".join(json.dumps(FACT | {"answer": answer}) for answer in ("Paris", "Rome")))
    arguments = ("trace", "--model", model, "--facts", file, "--folder", tmp_path / "out", "--samples", 2)
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "") and "facts must hold one that the model knows, got 0 of 2" in err
    code, out, err = call(capsys, *arguments, "--include-unknown", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["facts"], told["unknown"], told["used"], told["depth"]) == (2, 2, 2, 3)
    assert told["each"][1]["answer_token"] == " R"
    table = pd.read_parquet(tmp_path / "out" / "trace.parquet")
    assert list(table) == ["role", "layer", "relative_depth", "effect", "effect_low", "effect_high", "facts"]
    assert table["effect"].tolist() == pytest.approx([row["effect"] for row in told["layers"]])
    # 4 layers, 2 facts.
    places = pd.read_parquet(tmp_path / "out" / "trace_positions.parquet")
    assert (
        len(places) % 8 == 0 and (places.groupby("fact")["token"].agg("".join).str[:24].str.contains("capital")).all()
    )
    assert json.loads((tmp_path / "out" / "trace.json").read_text())["layers"] == told["layers"]
    assert (tmp_path / "out" / "trace.png").stat().st_size > 5_000
    code, out, _ = call(capsys, *arguments, "--include-unknown")
    assert code == 0 and "2 facts, 2 of them not known" in out and "last subject" in out and "trace.png" in out


@needs_llm
def test_a_utility_is_written_and_printed(capsys, tmp_path, model):
    file = tmp_path / "text.jsonl"
    file.write_text("\n".join(json.dumps({"body": text}) for text in ("what does depth buy", "a layer", "and more")))
    arguments = ("utility", "--model", model, "--text", file, "--field", "body", "--folder", tmp_path / "out")
    arguments += ("--docs", 2, "--max-length", 8)
    code, out, err = call(capsys, *arguments, "--json")
    told = json.loads(out)
    assert (code, err) == (0, "") and (told["documents"], told["depth"], told["shortened"]) == (2, 3, 1)
    table = pd.read_parquet(tmp_path / "out" / "utility.parquet")
    assert list(table) == [
        *("intervention", "layer", "relative_depth", "cross_entropy", "change", "change_error", "tokens", "documents")
    ]
    assert len(table) == 8 and (table["documents"] == 2).all()
    assert (table["cross_entropy"] - table["change"]).tolist() == pytest.approx([told["cross_entropy"]] * 8)
    assert json.loads((tmp_path / "out" / "utility.json").read_text())["layers"] == told["layers"]
    assert (tmp_path / "out" / "utility.png").stat().st_size > 5_000
    code, out, _ = call(capsys, *arguments, "--interventions", "skip", "repeat")
    assert code == 0 and "intact" in out and "repeat" in out and "swap  " not in out

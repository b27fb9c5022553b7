"""`toydepth hidden --model`: tables, files and figures of tiny models, and what is refused."""

import json
import os
import signal

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch", reason="the extra llm is not installed")
transformers = pytest.importorskip("transformers", reason="the extra llm is not installed")

from toydepth.cli import main  # noqa: E402

LETTERS = "abcdefghijklmnopqrstuvwxyz ,."


@pytest.fixture(scope="module")
def saved(tiny, tmp_path_factory):
    """Folders of a tiny llama and a tiny gpt_neox, with a tokenizer of letters."""
    import tokenizers

    folders = []
    for kind in ("llama", "gpt_neox"):
        path = tmp_path_factory.mktemp("models") / kind
        tiny(kind, max_position_embeddings=64).save_pretrained(path)
        vocabulary = {"[UNK]": 0} | {letter: 3 + place for place, letter in enumerate(LETTERS)}
        model = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
        model.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
        transformers.PreTrainedTokenizerFast(tokenizer_object=model, unk_token="[UNK]").save_pretrained(path)
        folders.append(str(path))
    return folders


@pytest.fixture
def text(tmp_path):
    generator = np.random.default_rng(0)
    path = tmp_path / "text.jsonl"
    lines = ["".join(generator.choice(list(LETTERS), size=size)) for size in generator.integers(1, 60, size=30)]
    path.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    return path


@pytest.fixture
def call(capsys, tmp_path, text):
    def run(*words, folder="out"):
        code = main(["hidden", "--text", str(text), "--max-length", "64", "--folder", str(tmp_path / folder), *words])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_the_table_and_its_files(call, saved, tmp_path):
    code, out, err = call("--model", saved[0], "--json", "--tokens")
    told = json.loads(out)
    assert (code, err) == (0, "")
    (about,) = told["models"]
    assert (about["documents"], about["weights"], about["dtype"], about["device"]) == (30, "float32", "float32", "cpu")
    layers = [row for row in told["layers"] if row["position"] == "bulk"]
    assert [row["layer"] for row in layers] == [0, 1, 2, 3]
    needed = {"theta_states", "theta_updates", "norm", "progress", "cross_entropy", "cross_entropy_last_block"}
    needed |= {"tokens", "num_zero", "num_not_finite", "network", "depth"}
    assert needed <= set(layers[0]) and layers[0]["network"] == "model"
    assert layers[3]["theta_states"] is None and layers[0]["cross_entropy"] > 0
    (regime,), (clusters,) = told["regimes"], told["clusters"]
    assert regime["verdict"] in ("ensemble averaging", "mixed") and 0 < regime["updates"] < 2
    assert sum(row["tokens"] for row in clusters["table"]) == clusters["sampled_tokens"] == about["tokens"]
    typical = clusters["table"][0]["typical_tokens"][0]
    assert typical["text"] in LETTERS and 0 < typical["in_cluster"] <= typical["in_sample"]
    assert told["rules"]["regime"]["orthogonal"] == 0.8 and told["rules"]["clusters"]["valley"] == 0.5
    names = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    label = next(name for name in names if name.endswith("state.npz")).split("/")[0]
    figures = {
        f"hidden_{name}.{end}" for name in ("states", "readouts", "histograms", "profiles") for end in ("png", "svg")
    }
    tables = {"histograms.parquet", "clusters.parquet", "state.npz", "tokens/part-00000.parquet"}
    assert names == figures | {"hidden.json", "hidden.parquet"} | {f"{label}/{name}" for name in tables}
    own = json.loads((tmp_path / "out" / "hidden.json").read_text())
    assert own == {name: value for name, value in told.items() if name != "written"}
    assert len(pd.read_parquet(tmp_path / "out" / label / "tokens")) == about["tokens"]
    points = pd.read_parquet(tmp_path / "out" / label / "clusters.parquet")
    assert set(points["text"]) <= set(LETTERS)


def test_several_models_stand_beside_each_other(call, saved, tmp_path):
    code, out, _ = call("--model", *saved, "--readouts", "lens")
    assert code == 0 and out.count("share of tokens, 95 %") == 2 and "cross_entropy_last_block" not in out
    table = pd.read_parquet(tmp_path / "out" / "hidden.parquet")
    assert table["run"].unique().tolist() == saved and len(table) == 2 * 2 * 4
    assert len(list((tmp_path / "out").glob("hidden_profiles_*.png"))) == 2
    alone = call("--model", saved[1], "--json", folder="alone")[1]
    norms = [row["norm"] for row in json.loads(alone)["layers"]]
    np.testing.assert_allclose(table[table["run"] == saved[1]]["norm"], norms, rtol=1e-12)


def test_interrupted_and_given_again(call, saved, tmp_path, monkeypatch):
    from toydepth.llm import measure

    add, batches = measure._add, []

    def add_and_interrupt(*arguments):
        add(*arguments)
        batches.append(1)
        if len(batches) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(measure, "_add", add_and_interrupt)
    code, out, err = call("--model", saved[0])
    assert (code, out) == (130, "") and err.count("\n") == 1
    assert f"interrupted after 16 documents of {saved[0]}, which are saved. The same command goes on" in err
    code, out, _ = call("--model", saved[0], "--json")
    again = json.loads(out)
    assert code == 0 and again["models"][0]["resumed_from"] == 16
    whole = json.loads(call("--model", saved[0], "--json", folder="whole")[1])
    assert again["layers"] == whole["layers"] and again["clusters"] == whole["clusters"]


def test_thresholds_are_options_and_recorded(call, saved, tmp_path):
    code, out, _ = call("--model", saved[0], "--json", "--orthogonal", "1", "--even", "1e-9", "--least-tokens", "3")
    told = json.loads(out)
    assert code == 0 and told["regimes"][0]["verdict"] == "mixed"
    assert told["rules"]["regime"]["even"] == 1e-9 and told["rules"]["clusters"]["least_tokens"] == 3


def test_too_few_tokens_for_clusters_is_said(call, saved, tmp_path, text):
    text.write_text('{"text": "abc"}\n')
    code, out, _ = call("--model", saved[0])
    assert code == 0 and "no clusters: tokens with an angle at every layer must be 20 or more, got 3" in out
    told = json.loads((tmp_path / "out" / "hidden.json").read_text())
    assert told["clusters"][0]["missing"].startswith("tokens with an angle")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--docs", "0"), "docs must be 1 or more, got 0"),
        (("--batch-size", "0"), "batch_size must be 1 or more"),
        (("--max-length", "65"), "max_length must be at most 64, the model's positions, got 65"),
        (("--skip-first", "0"), "skip_first must be 1 or more"),
        (("--field", "body"), "must have a field body, got text"),
        (("--examples", "64"), "--examples must come with --runs"),
        (("--aligned", "0.9"), "aligned must be below orthogonal"),
        (("--valley", "2"), "valley must be in (0, 1), got 2"),
        (("--components", "0"), "components must be 1 or more, got 0"),
        (("--device", "nowhere"), "device must be one that torch finds"),
        (("--readout-tokens", "-1"), "readout_tokens must be 0 or more"),
        (("--sample", "0"), "sample must be 20 or more (twice least_tokens), got 0"),
        (("--seed", "-1"), "seed must be 0 or more"),
    ],
)
def test_one_line_for_what_cannot_be_used(call, saved, words, told):
    code, out, err = call("--model", saved[0], *words)
    assert (code, out) == (2, "") and err.count("\n") == 1 and told in err

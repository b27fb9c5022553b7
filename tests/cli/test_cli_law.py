"""`toydepth law` from the words a person types to what is printed and written."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.law_coverage import CASES, TRUTH, simulate
from toydepth.cli import main

COLUMNS = ("--width", "d_model", "--depth", "n_layers", "--data", "tokens")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def frame():
    return simulate(CASES[1], 0).rename(columns={"m": "d_model", "ell": "n_layers", "D": "tokens"})


@pytest.fixture
def table(frame, tmp_path):
    frame.to_csv(tmp_path / "table.csv", index=False)
    return "table.csv"


def call(capsys, *arguments):
    code = main(["law", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_law_is_printed_and_written(capsys, table, tmp_path):
    code, out, err = call(capsys, table, *COLUMNS, "--exclude-highest", 5)
    assert code == 0 and not err
    assert "alpha_ell" in out and "left out: 5 rows: among the 5 highest losses" in out
    folder = tmp_path / "laws" / "table"
    told = json.loads((folder / "fit.json").read_text())
    assert told["parameters"]["alpha_ell"]["value"] == pytest.approx(1.2, abs=0.1)
    names = {path.name for path in folder.iterdir()}
    assert {"law_residuals.png", "law_decomposition.svg", "law_profiles.png"} <= names


def test_json_is_the_table_of_parameters(capsys, table):
    code, out, _ = call(capsys, table, *COLUMNS, "--json", "--figures", "no", "--intervals", "covariance")
    told = json.loads(out)
    assert code == 0 and set(told["parameters"]) == set(TRUTH)
    for one in told["parameters"].values():
        assert {"value", "standard_error", "low", "high", "identified", "space"} <= set(one)
    assert told["objective"]["sum"] > 0 and told["rows_used"] == 180


@pytest.mark.parametrize("suffix", ["tsv", "jsonl", "parquet"])
def test_other_kinds_of_table_give_the_same(capsys, frame, tmp_path, suffix):
    frame.to_csv("a.csv", index=False)
    path = tmp_path / f"b.{suffix}"
    {
        "tsv": lambda: frame.to_csv(path, sep="\t", index=False),
        "jsonl": lambda: frame.to_json(path, orient="records", lines=True, double_precision=15),
        "parquet": lambda: frame.to_parquet(path),
    }[suffix]()
    options = (*COLUMNS, "--json", "--figures", "no", "--intervals", "covariance")
    values = []
    for name in ("a.csv", path.name):
        told = json.loads(call(capsys, name, *options)[1])
        values.append([one["value"] for one in told["parameters"].values()])
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_every_question_is_answered(capsys, table, tmp_path):
    point = "m=4096 ell=32 D=1e12"
    asked = ("--compare", "--follow", "--predict", point, "--plan", "alpha_ell", "--figures", "no")
    code, out, _ = call(capsys, table, *COLUMNS, *asked, "--intervals", "covariance")
    assert code == 0
    for words in ("within decomposed", "best shape", "predicted losses", "would shrink the 95 % interval of alpha_ell"):
        assert words in out
    told = json.loads((tmp_path / "laws" / "table" / "fit.json").read_text())
    assert {"comparison", "consequences", "predictions", "plan"} <= set(told)


def test_simulate_then_fit_gives_the_law_back(capsys, table):
    call(capsys, table, *COLUMNS, "--figures", "no")
    pd.read_csv(table).drop(columns="loss").to_csv("design.csv", index=False)
    code, out, _ = call(capsys, "--simulate", "laws/table/fit.json", "--design", "design.csv", "--output", "made.csv")
    assert code == 0 and out == "made.csv: 180 rows\n"
    first = json.loads(Path("laws/table/fit.json").read_text())["parameters"]
    again = json.loads(call(capsys, "made.csv", *COLUMNS, "--json", "--figures", "no")[1])["parameters"]
    for name, one in again.items():
        assert one["value"] == pytest.approx(first[name]["value"], rel=1e-5), name


def test_derived_size_and_training_time(capsys, frame):
    size = 12 * frame.d_model**2 * frame.n_layers
    frame.assign(loss=400 / size**0.3 + 900 / frame.tokens**0.35 + 1.6).to_csv("size.csv", index=False)
    options = ("--law", "chinchilla", *COLUMNS, "--parameters", "derived", "--json", "--figures", "no")
    told = json.loads(call(capsys, "size.csv", *options)[1])["parameters"]
    assert told["alpha_N"]["value"] == pytest.approx(0.3, rel=1e-4) and told["c_N"]["value"] == pytest.approx(
        400, rel=1e-3
    )
    steps = np.tile(np.arange(1, 41) * 25, 2)
    rates = np.where(steps <= 500, 1e-3, 1e-3 * (1000 - steps) / 500)
    runs = np.repeat(["a", "b"], 40)
    every = np.interp(np.arange(1, 1001), steps[:40], rates[:40])
    tau = np.cumsum(every)[steps - 1]
    made = pd.DataFrame({"step": steps, "lr": rates, "run": runs, "loss": 2 / tau**0.33 + 1.5})
    made.to_csv("time.csv", index=False)
    options = ("--tau-rates", "lr", "--step", "step", "--run", "run", "--query", "step < 1000")
    told = json.loads(call(capsys, "time.csv", *options, "--json", "--figures", "no")[1])["parameters"]
    assert told["alpha_tau"]["value"] == pytest.approx(0.33, rel=1e-3)


def test_training_time_of_a_schedule(capsys):
    steps = np.arange(50, 1001, 50)
    rates = 1e-3 * np.where(np.arange(1, 1001) <= 100, np.arange(1, 1001) / 100, 1.0)
    tau = np.cumsum(rates)[steps - 1]
    pd.DataFrame({"step": steps, "loss": 2 / tau**0.33 + 1.5}).to_csv("time.csv", index=False)
    options = ("--tau-schedule", "constant", "--step", "step", "--peak", "1e-3", "--total-steps", 1000)
    told = json.loads(call(capsys, "time.csv", *options, "--warmup-steps", 100, "--json", "--figures", "no")[1])
    assert told["parameters"]["alpha_tau"]["value"] == pytest.approx(0.33, rel=1e-6)
    assert told["parameters"]["c_tau"]["value"] == pytest.approx(2, rel=1e-5)


def test_what_a_fit_was_made_by_stands_in_its_file(capsys, table):
    call(capsys, table, *COLUMNS, "--exclude-highest", 5, "--figures", "no")
    made = json.loads(Path("laws/table/fit.json").read_text())["made_by"]
    assert made["table"] == table and len(made["sha256"]) == 64
    assert made["options"] == {"width": "d_model", "depth": "n_layers", "data": "tokens", "exclude_highest": 5}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "table must be a file"),
        (("none.csv", *COLUMNS), "none.csv"),
        (("table.csv",), "table.csv must have a column for one term or more"),
        (("table.csv", "--width", "d_modl"), "Did you mean 'd_model'?"),
        (("table.csv", *COLUMNS, "--loss", "losses"), "Did you mean 'loss'?"),
        (("table.csv", *COLUMNS, "--fix", "alpha_ell"), "fix must be <name>=<number"),
        (("table.csv", *COLUMNS, "--fix", "alpha_el=1"), "Did you mean 'alpha_ell'?"),
        (("table.csv", *COLUMNS, "--exclude-highest", "180"), "exclude_highest must be"),
        (("table.csv", *COLUMNS, "--query", "d_model >"), "query"),
        (("table.csv", *COLUMNS, "--offset", "2"), "n_layers"),
        (("table.csv", "--width", "d_model", "--offset", "1"), "offset must be 0 for a law without depth"),
        (("table.csv", "--data", "tokens", "--parameters", "derived"), "parameters must be a column, got derived"),
        (("table.csv", "--tau-rates", "loss"), "step must be the column of the step"),
        (("table.csv", *COLUMNS, "--reference", "depth"), "depth-paper"),
        (("table.csv", *COLUMNS, "--predict", "m=1"), "predict must be with ell, D"),
        (("table.csv", *COLUMNS, "--plan", "alpha_x"), "alpha_x"),
        (("table.csv", *COLUMNS, "--follow", "--cost", "6*N*Q"), "Q"),
        (("table.csv", *COLUMNS, "--cost", "N*D"), "--cost must come with --follow"),
        (("table.csv", *COLUMNS, "--peak", "1"), "--peak must come with --tau-schedule"),
        (("table.csv", "--reference", "depth-paper", "--query", "x > 1"), "--query must be left out with --reference"),
        (("--simulate", "none.json"), "design must be a table of the points"),
        (("--simulate", "none.json", "--design", "table.csv"), "none.json"),
        (("table.csv", *COLUMNS, "--exclude-highst", "4"), "exclude-highst"),
        (("table.csv", *COLUMNS, "--folder", ""), "folder must be the name of a file or folder"),
    ],
)  # fmt: skip
def test_one_line_for_what_cannot_be_used(capsys, frame, arguments, words):
    frame.assign(n_layers=frame.n_layers.clip(upper=64)).to_csv("table.csv", index=False)
    code, out, err = call(capsys, *arguments)
    if "--offset" in arguments and words == "n_layers":  # rows at the offset are counted, not refused
        assert code == 0 and "n_layers is not greater than the offset 2" in out
        return
    asked = {"--predict", "--plan", "--cost"} & set(arguments)
    assert code == 2 and err.count("\n") == 1, (out, err)
    assert not out or (asked and "alpha_ell" in out)  # the fit itself is said before it is asked
    assert words in err and err.startswith("toydepth law: ")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.assign(loss=t.loss.where(t.index != 3)), "loss is missing (NaN)"),
        (lambda t: t.assign(loss=t.loss.where(t.index != 3, np.inf)), "loss is infinite"),
        (lambda t: t.assign(tokens=t.tokens.where(t.index != 3, -1)), "tokens is zero or negative"),
        (lambda t: t.assign(d_model=t.d_model.astype(object).where(t.index != 3, "big")), "is not a number ('big')"),
        (lambda t: t.assign(d_model=t.d_model.astype(object).where(t.index != 3, "9,288")), "give --thousands ,"),
    ],
)  # fmt: skip
def test_bad_rows_are_counted(capsys, frame, change, words):
    change(frame).to_csv("bad.csv", index=False)
    code, out, _ = call(capsys, "bad.csv", *COLUMNS, "--figures", "no")
    assert code == 0
    assert re.search(f"left out: 1 row: .*{re.escape(words)}", out)
    assert "rows: 179 used of 180" in out


def test_empty_and_tiny_tables(capsys, frame):
    Path("empty.csv").write_text("")
    frame.head(3).to_csv("tiny.csv", index=False)
    assert "empty" in call(capsys, "empty.csv", *COLUMNS)[2]
    assert "8 rows or more for 7 parameters, got 3" in call(capsys, "tiny.csv", *COLUMNS)[2]


def test_a_constant_column_is_not_identified(capsys, frame):
    frame.assign(n_layers=24).to_csv("flat.csv", index=False)
    code, out, _ = call(capsys, "flat.csv", *COLUMNS, "--figures", "no")
    assert code == 0 and "n_layers is 24 in every row" in out
    told = json.loads(call(capsys, "flat.csv", *COLUMNS, "--figures", "no", "--json")[1])["parameters"]["c_ell"]
    assert told["value"] is None and told["low"] is None and told["identified"] is False

"""The table of exponents at the terminal and in plain text."""

import io
import math
import re
from dataclasses import replace

import pandas as pd
import pytest
from rich.console import Console

from toydepth.errors import InputError
from toydepth.fit import FitTable, fit_curves
from toydepth.report import exponent_table, print_table

FEW = (0, 10, 100, 1000, 5000, 10000, 20000)


def printed(table, weights="average", width=80, **console):
    file = io.StringIO()
    print_table(table, Console(file=file, width=width, **console), weights)
    return file.getvalue()


def fit(curves, **options):
    return fit_curves(curves, all_steps=True, num_bootstrap=50, **options)


def on_terminal(table, width):
    return printed(table, width=width, force_terminal=True, color_system=None)


def realistic(make_curves, long_name="temperature"):
    """Fits of every teacher, with all that makes cells wide or high; no two rows share a number of alpha."""
    kl = {"loss": "kl", "teacher": "independent", "steps": FEW}
    parts = [
        make_curves("tied", alpha=(0.4, 2.8), steps=FEW),
        make_curves("independent", teacher="independent", alpha=(-0.5, -0.3), noise=0.0, steps=FEW),
        make_curves(long_name, temperature=0.0136, alpha=(0.5, 1.2), **kl),
        make_curves(long_name, temperature=1.0, block="rk2", alpha=(0.7, 2.3), average=None, **kl),
        make_curves("correlated", teacher="correlated", rho=0.5, depths=(3, 6, 12, 128), replicates=4, steps=FEW),
    ]
    table = fit(pd.concat(parts, ignore_index=True))
    caveats = [("first",), (), ("second", "first", "third of the caveats"), ("third of the caveats",), ("second",)]
    trajectories = []
    for trajectory in table.trajectories:
        last = replace(trajectory[-1], caveats=caveats[len(trajectories) % 5])
        if last.experiment == "correlated":
            last = replace(last, alpha=math.nan, low=None, high=None, verdict="unknown")
        trajectories.append([*trajectory[:-1], last])
    chosen = [rows for rows in trajectories if rows[-1].weights == "average" or rows[-1].block == "rk2"]
    return FitTable([rows[-1] for rows in chosen], [], chosen)


def blocks(text):
    """Splits a printed table into its heading, its rows, each a list of lines, and what stands below."""
    heading, rest = re.split("─+\n", text, maxsplit=1)
    body, _, below = rest.partition("\n\n(1)")
    rows = []
    for line in body.splitlines():
        if re.search(r"\d to \d", line):
            rows.append([])
        rows[-1].append(line)
    return heading.splitlines(), rows, f"(1){below}"


def check_contents(table, text):
    heading, printed_rows, below = blocks(text)
    names = ("experiment", "teacher", "init", "weights", "alpha early", "alpha at end", "depths", "verdict")
    for name in (*names, "repli-", "cates", "per", "doub", "ling"):
        assert name in "\n".join(heading)
    caveats = list(dict.fromkeys(caveat for row in table.last for caveat in row.caveats))
    assert [f"({i}) {caveat}" for i, caveat in enumerate(caveats, 1)] == [line.strip() for line in below.splitlines()]
    notes = heading[-1].index("notes")
    assert len(printed_rows) == len(table.last)
    for row, early, lines in zip(table.last, table.early(), printed_rows, strict=True):
        block = "\n".join(lines)
        for one in (row, early):
            words = ("identified", f"@ {one.step}") if math.isnan(one.alpha) else (f"{one.alpha:.2f} @ {one.step}",)
            assert all(word in block for word in words)
            assert one.low is None or f"[{one.low:.2f}, {one.high:.2f}]" in block
        expected = [row.teacher, row.init, row.weights, *row.verdict.split(), str(row.replicates)]
        expected += [f"{row.drift.change_per_doubling:+.2f}".replace("-0.00", "+0.00"), f"({len(row.depths)})"]
        assert not [word for word in expected if word not in block.split()]
        assert f"{row.depths[0]:g} to {row.depths[-1]:g}" in block
        assert row.weights == "raw" or "0.998" in block.split()
        assert row.loss == "mse" or f"T {row.temperature:g}" in block
        assert row.block == "euler" or "rk2 block" in block
        assert row.teacher != "correlated" or "rho 0.5" in block
        numbers = re.findall(r"\d+", " ".join(line[notes:] for line in lines))
        assert numbers == [str(caveats.index(caveat) + 1) for caveat in row.caveats]
        names = [line.split()[0] for line in lines if line[:1].strip()]
        assert names[0] == row.experiment if len(row.experiment) <= 12 else "".join(names).startswith(row.experiment)


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.parametrize("name", ["temperature", "experiment_1", "paper_shallow_independent_long", 30 * "x"])
def test_at_every_width_all_is_there_and_nothing_is_cut(make_curves, width, name):
    table = realistic(make_curves, name)
    text = on_terminal(table, width)
    check_contents(table, text)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_a_terminal_too_narrow_gets_a_wider_table(make_curves):
    table = realistic(make_curves)
    text = on_terminal(table, 40)
    check_contents(table, text)
    assert 40 < max(map(len, text.splitlines())) < 60


@pytest.mark.parametrize("name", ["tied", "independent"])
def test_100_columns_keep_a_column_for_every_field(make_curves, name):
    table = fit(make_curves(name, teacher=name, steps=FEW))
    text = on_terminal(table, 100)
    assert re.search(rf"^{name} +{name} +zero +average +\d", text, re.MULTILINE)


def test_long_names_break_between_words(make_curves):
    lines = on_terminal(realistic(make_curves, "paper_shallow_independent_long"), 80).splitlines()
    words = [line.split()[0] for line in lines if line.startswith(("paper", "shallow", "independent_", "long"))]
    assert "".join(words) == 2 * "paper_shallow_independent_long"
    assert all(word.endswith(("_", "long")) for word in words)


def test_names_are_no_markup(make_curves):
    assert "run[bold]" in printed(fit(make_curves("run[bold]", steps=FEW)))


def test_the_table_holds_the_numbers_of_the_fit(three_groups):
    table = fit(three_groups)
    text = printed(table)
    early = dict(zip(map(id, table.last), table.early(), strict=True))
    for row in table.last:
        if row.weights == "average":
            for one in (row, early[id(row)]):
                assert f"{one.alpha:.2f} @ {one.step}" in text
                assert f"[{one.low:.2f}, {one.high:.2f}]" in text
            assert f"{row.drift.change_per_doubling:+.2f}" in text
    for word in ("experiment", "teacher", "init", "weights", "alpha early", "alpha at end", "verdict", "tied_euler"):
        assert word in text
    assert "independent" in text and "3 to 16" in text and "0.998" in text


@pytest.mark.parametrize("experiment", ["tied", "independent_zero_a_rather_long_name_for_a_run"])
def test_100_columns_break_no_number(make_curves, experiment):
    parts = [
        make_curves(experiment, teacher="independent", loss="kl", temperature=T, block="rk2", alpha=(-0.5, -0.3))
        for T in (0.0136, 1.0)
    ]
    table = fit(pd.concat(parts, ignore_index=True))
    text = printed(table, width=100, force_terminal=True, color_system=None)
    assert max(map(len, text.splitlines())) <= 100
    assert "…" not in text
    for row in table.last:
        if row.weights == "average":
            assert f"{row.alpha:.2f} @ {row.step}" in text and f"[{row.low:.2f}, {row.high:.2f}]" in text
    assert "T 0.0136" in text and "rk2 block" in text and "independent" in text


def test_a_file_gets_plain_text_of_100_columns(three_groups):
    file = io.StringIO()
    console = Console(file=file, width=60)
    print_table(fit(three_groups), console)
    assert "\x1b" not in file.getvalue() and console.width == 60
    assert max(map(len, file.getvalue().splitlines())) > 80


def test_raw_rows_where_there_is_no_average(make_curves):
    curves = pd.concat(
        [make_curves("a", steps=FEW), make_curves("b", init="euler", average=None, steps=FEW)], ignore_index=True
    )
    text = printed(fit(curves))
    assert [line.split()[3] for line in text.splitlines() if line.startswith(("a ", "b "))] == ["average", "raw"]
    text = printed(fit(curves), weights="raw")
    assert [line.split()[3] for line in text.splitlines() if line.startswith(("a ", "b "))] == ["raw", "raw"]


def test_block_and_temperature_only_where_they_matter(make_curves):
    assert "T 1" not in printed(fit(make_curves(loss="kl", temperature=1.0, steps=FEW)))
    assert "euler" not in printed(fit(make_curves(steps=FEW)))
    assert "T 0.5" in printed(fit(make_curves(loss="kl", temperature=0.5, steps=FEW)))
    assert "rho 0.3" in printed(fit(make_curves(teacher="correlated", rho=0.3, steps=FEW)))


def test_caveats_are_numbered_once_and_referred_to(make_curves, diverge):
    parts = [diverge(make_curves(name, init=name, steps=FEW), 12, 1, 100) for name in ("zero", "euler")]
    text = printed(fit(pd.concat(parts, ignore_index=True)))
    assert text.count("1 point left out: 1 missing or diverged") == 1
    assert re.search(r"^\(1\) 1 point left out", text, re.MULTILINE)
    head, *rows = [line for line in text.splitlines() if line.startswith(("experiment", "zero ", "euler "))]
    assert "notes" in head and all(row.rstrip().endswith(" 1") for row in rows) and len(rows) == 2


def test_no_caveats_no_column_of_notes(make_curves):
    curves = make_curves(steps=FEW, noise=0.0)
    table = fit(curves, weights=("average",))
    assert not any(row.caveats for row in table.last)
    assert "notes" not in printed(table)


def test_what_was_refused_is_said(make_curves):
    curves = pd.concat(
        [make_curves("good", steps=FEW), make_curves("bad", init="euler", depths=(3, 6), steps=FEW)], ignore_index=True
    )
    text = " ".join(printed(fit(curves, weights=("average",))).split())
    assert "Not fitted:" in text and "got depths 3, 6 for experiment=bad" in text


def test_refused_steps_are_counted_together(make_curves):
    curves = make_curves(steps=FEW, replicates=1)
    curves.loc[curves["step"].le(100) & curves["depth"].gt(4), "test_loss_average"] = float("nan")
    text = " ".join(printed(fit(curves, weights=("average",))).split())
    assert "3 steps (0 to 100), the last: depths must be at least 3 distinct depths" in text
    assert text.count("depths must be") == 1


def test_a_single_step_has_no_early_exponent(make_curves):
    table = fit(make_curves(steps=(100,)), weights=("average",))
    text = printed(table)
    assert text.count("@ 100") == 1 and "unknown" in text and "?" in text


def test_nothing_fitted_prints_the_reasons():
    refusal = {"group": "g", "weights": "raw", "step": None, "reason": "too few depths"}
    text = printed(FitTable([], [refusal], []))
    assert "No depth exponent could be fitted." in text and "g: too few depths" in text


def test_other_weights_are_refused(make_curves):
    with pytest.raises(InputError) as error:
        exponent_table(fit(make_curves(steps=FEW)), weights="averge")
    message = "weights must be 'average' or 'raw', got 'averge'. Give one of them. Did you mean 'average'?"
    assert str(error.value) == message

"""The benchmarks: operations by hand, rows and ratios, and workers that answer or say that they cannot."""

import pytest

from benchmarks.cases import CASES
from benchmarks.table import add_ratios, make_row
from benchmarks.workers import Worker
from toydepth.bank.flops import sets_of_students, step_flops
from toydepth.errors import RunError


def test_operations_of_a_step_by_hand():
    mlp = 2 * (32 * 128 + 128 * 32) * 1024  # two matrix products, a multiply-add counts 2
    depths = 6 + 12 + 16 + 24 + 32 + 48
    one = 128 * mlp + 3 * depths * mlp
    assert step_flops(CASES["paper_mse_one"].config()) == one
    assert step_flops(CASES["paper_mse"].config()) == 3 * one
    head = 2 * 32 * 128 * 1024
    kl = CASES["paper_kl"].config()
    assert len(kl.target.temperatures) == 16 and (min(kl.target.temperatures), max(kl.target.temperatures)) == (0.01, 1)
    assert step_flops(kl) == 128 * mlp + head + 16 * 3 * (depths * mlp + 6 * head)
    assert [sets_of_students(CASES[name].config()) for name in CASES] == [3, 1, 16, 4]


def test_rows_and_ratios_are_per_set_of_students():
    peak = 1e12
    told = {"device": "here", "peak_memory_bytes": 5}
    bank = make_row("bank paper_mse", "bank", "paper_mse", [0.3, 0.1, 0.2], told, peak)
    torch = make_row("torch paper_mse_one", "torch", "paper_mse_one", [0.4], told, peak)
    add_ratios([bank, torch])
    assert bank["seconds_median"] == 0.2 and bank["repetitions"] == 3
    assert bank["seconds_per_set"] == pytest.approx(0.2 / 3) and torch["seconds_per_set"] == 0.4
    assert bank["ratio_to_baseline"] == pytest.approx(6.0)
    flops = step_flops(CASES["paper_mse_one"].config())
    assert bank["gflops"] == pytest.approx(3 * flops / 0.2 / 1e9) and torch["gflops"] == pytest.approx(
        flops / 0.4 / 1e9
    )
    assert bank["fraction_of_peak"] == pytest.approx(bank["gflops"] / 1e3) and bank["peak_memory_bytes"] == 5


def test_a_worker_repeats_and_tells_its_memory():
    worker = Worker("peak", "")
    worker.repeat()
    worker.repeat()
    told = worker.close()
    assert len(worker.seconds) == 2 and min(worker.seconds) > 0
    assert told["peak_memory_bytes"] > 2**20 and told["setup_seconds"] > 0 and told["device"]


def test_a_worker_that_cannot_set_up_is_named(capfd):
    with pytest.raises(RunError, match="the row bank nothing ended early"):
        Worker("bank", "nothing")
    assert "KeyError: 'nothing'" in capfd.readouterr().err

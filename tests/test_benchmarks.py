"""The benchmarks: operations by hand, rows and ratios, and workers that answer or say that they cannot."""

import json
import subprocess
import sys

import pytest
from rich.console import Console

from benchmarks.cases import CASES
from benchmarks.hardware import sheet_flops
from benchmarks.operations import kind_of
from benchmarks.table import add_ratios, make_row, print_rows
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
    told = {"device": "2 x cpu", "device_count": 2, "peak_memory_bytes": 5}
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


def test_utilisation_is_of_the_data_sheet_where_there_is_one(capsys):
    seconds = step_flops(CASES["paper_mse"].config()) / 13.4e12
    told = {"device": "2 x NVIDIA H200", "device_count": 2}
    row = make_row("bank paper_mse", "bank", "paper_mse", [seconds], told, 20e12)
    # Two chips of 67 TFLOP/s each did 13.4.
    assert row["model_flop_utilisation"] == pytest.approx(0.1) and row["fraction_of_peak"] == pytest.approx(0.67)
    print_rows([row], Console(width=200))
    assert "% MFU" in capsys.readouterr().out
    plain = make_row("plain laptop", "plain", "laptop", [1.0], {"device": "1 x cpu", "device_count": 1}, 1e12)
    assert "model_flop_utilisation" not in plain
    print_rows([plain], Console(width=200))
    told = capsys.readouterr().out
    assert "% MFU" not in told and "1000" in told.splitlines()[1]


@pytest.mark.parametrize(
    ("kind", "teraflops"),
    [
        ("NVIDIA A100-SXM4-80GB", 19.5),
        ("Tesla V100-SXM2-16GB", 15.7),
        ("NVIDIA L40S", 91.6),
        ("NVIDIA L4", 30.3),
        ("NVIDIA GeForce RTX 4090", 82.6),
        ("TPU v5 lite", 197.0),
        ("TPU v4", 275.0),
        ("NVIDIA X1000", None),
        ("cpu", None),
    ],
)
def test_data_sheets(kind, teraflops):
    assert sheet_flops(f"1 x {kind}") == (None if teraflops is None else pytest.approx(teraflops * 1e12))


def test_every_operation_has_a_kind():
    names = {
        "ynn_fusion.35": "matrix products",
        "dot.40": "matrix products",
        "bitcast_dynamic-update-slice_fusion.4": "slices and updates of stacks",
        "wrapped_copy.9": "copies and transposes",
        "maximum_multiply_fusion.1": "elementwise work and sums",
        "psum.18": "waiting for other devices",
        "ffi_call.7": "native layers",
        "while.732": None,
        "call": None,
    }
    assert {name: kind_of(name) for name in names} == names


# In a process of its own: the profiler watches all that a process does, and an abort would take other tests along.
PROFILE = """
import json
import sys
from benchmarks.cases import CASES, Case
from benchmarks.operations import profile_step

overrides = (*CASES["laptop"].overrides, "student.depths=2", "replicates=1", f"device.kernel={sys.argv[1]}")
CASES["laptop"] = Case("", overrides, 3)
print(json.dumps(profile_step("laptop")))
"""


@pytest.mark.parametrize(("kernel", "products"), [("xla", "matrix products"), ("native", "native layers")])
def test_the_operations_of_a_step(repository, native, kernel, products):
    command = [sys.executable, "-c", PROFILE, kernel]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    seconds, found = json.loads(done.stdout.splitlines()[-1])
    assert seconds > 0 and found[products] > 0 and found["elementwise work and sums"] > 0


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

"""Bad input: exit code 2, one line that names the key, and nothing left behind."""

import os
import subprocess
import sys

import pytest

from toydepth.config import StudentConfig, TrainConfig, from_dict, to_dict

CASES = {
    "student.depths=-1": "student.depths must be a whole number, at least 0, got -1",
    "student.depths=0": "student.depths must be 1 or more without a learned head, got 0",
    "student.depths=[]": "student.depths must be a list of at least one value",
    "student.depths=[3,3]": "Remove the repeated 3",
    "student.depths=1.5": "student.depths must be a whole number",
    "student.depths=true": "student.depths must be a whole number",
    "student.init=eulr": "Did you mean 'euler'?",
    "student.head=teacher": "student.head must be none with loss.name=mse",
    "target.temperatures=[0]": "target.temperatures must be a finite number, greater than 0, got 0",
    "target.temperatures=-1": "target.temperatures must be",
    "target.temperatures=nan": "target.temperatures must be",
    "target.temperatures=[0.1,1]": "target.temperatures must be a single value with loss.name=mse",
    "steps=0": "steps must be a whole number, at least 1, got 0",
    "steps=abc": "steps",
    "steps=3000000000": "steps must be less than 2^31",
    "width=99999999999999999999": "width must be less than 2^31",
    "student.depths=[99999999999999999999]": "student.depths must be less than 2^31",
    "learning_rate=1e300": "learning_rate must be a rate that float32 holds at depth",
    "learning_rate=1e-320": "learning_rate must be a rate that float32 holds at depth",
    "learning_rate=0": "learning_rate must be a finite number, greater than 0",
    "learning_rate=nan": "learning_rate must be a finite number",
    "teacher.rho=0.5": "teacher.rho must be left out for a teacher of kind tied",
    "average.decays=1": "average.decays must be less than 1",
    "stepz=3": "stepz is not a key or group of the config. Did you mean 'steps'?",
    "+stepz=3": "stepz is not a key or group of the config. Did you mean 'steps'?",
    "student.dephts=3": "Did you mean 'student.depths'?",
    "optimizr=adam": "Did you mean 'optimizer'?",
    "optimizer=adamm": "optimizer must be one of adam | muon, got adamm. Did you mean 'adam'?",
    "+experiment=tyed": "Did you mean 'tied'?",
    "optimizer.name=adamm": "Did you mean 'adam'?",
    "+optimizer.options.bb=1": "optimizer.options must be arguments of adam, got bb",
    "device.count=99": "device.count must be",
    "gradients.stream=tset": "gradients.stream must be one of train | test, got tset. Did you mean 'test'?",
    "gradients.point=12": "Did you mean 'gradients.points'?",
    "gradients=12": "gradients must be values with their names, {name: value}, got 12.",
    "tracker.name=wandbb": "Did you mean 'wandb'?",
    "teacher": "arguments must be key=value or group=option",
}


@pytest.mark.parametrize("override", CASES)
def test_one_line_and_exit_code_2(train, tmp_path, override):
    code, out, err = train(override)
    assert code == 2 and not out
    assert len(err.strip().splitlines()) == 1, err
    assert err.startswith("toydepth train: ") and CASES[override] in err
    assert not (tmp_path / "run" / "curves.parquet").exists()


def test_several_keys_that_do_not_fit_together(train):
    for overrides, message in {
        ("teacher=independent", "student.init=euler"): "student.init must be zero for a teacher of kind independent",
        ("teacher=correlated", "teacher.rho=2"): "teacher.rho must be a finite number, at least 0 and at most 1",
        ("loss=kl", "student.head=none"): "student.head must be teacher or learned with loss.name=kl",
    }.items():
        code, _, err = train(*overrides)
        assert code == 2 and message in err and len(err.strip().splitlines()) == 1, err


def test_a_single_value_is_a_list_of_one():
    student = StudentConfig(depths=12, init="zero")
    assert (student.depths, student.init) == ((12,), ("zero",))


def test_a_config_survives_the_record():
    config = TrainConfig(student=StudentConfig(depths=[3, 6]), seed=4)
    assert from_dict(to_dict(config)) == config


def test_a_student_deeper_than_the_teacher_warns_and_runs(train, record, tmp_path):
    code, _, _ = train("student.depths=[1,5]", "steps=1")
    assert code == 0
    assert record(tmp_path / "run")["warnings"] == ["student.depths 5: deeper than the teacher (teacher.depth 4)"]


def test_a_batch_that_the_devices_do_not_divide(repository, tmp_path):
    # Devices are counted when jax starts, so this needs a process of its own.
    env = os.environ | {"PYTHONPATH": str(repository), "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    words = ["device.platform=cpu", "device.count=2", "batch_size=255", "tracker=none", f"hydra.run.dir={tmp_path}/run"]
    command = [sys.executable, "-m", "toydepth.train", *words]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "batch_size must be divisible by the 2 devices that share it, got 255" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("key", ["seed", "teacher.seed"])
def test_a_seed_that_would_repeat_another_is_refused(train, key):
    code, _, err = train(f"{key}={2**32}")
    assert code == 2 and f"{key} must be less than 2^32" in err


def test_optimizer_options_are_given_as_a_dict(train, record, tmp_path):
    assert train("optimizer.options={b2: 0.99}", "steps=1", "student.depths=1")[0] == 0
    assert record(tmp_path / "run")["config"]["optimizer"]["options"] == {"b2": 0.99}

"""What hydra and OmegaConf refuse is said in one line, as the checks would say it; jax is never reached."""

import pytest

import toydepth.job
from toydepth.train import main

# What is typed: the whole line, or how it begins.
SAID = {
    "student=eulr": "student must be one of euler | rk2, got eulr. Did you mean 'euler'?",
    "loss=xyz": "loss must be one of kl | mse, got xyz.",
    "scale=labtop": "scale must be one of laptop | paper, got labtop. Did you mean 'laptop'?",
    "+experiment=tid": "experiment must be one of correlated | independent | ",
    "experiment=tied": "experiment must be added with a plus, got experiment=tied. Write +experiment=tied.",
    "step=3": "step is not a key or group of the config. Did you mean 'steps'?",
    "+step=3": "step is not a key or group of the config. Did you mean 'steps'?",
    "++step=3": "step is not a key or group of the config. Did you mean 'steps'?",
    "qqq=3": "qqq is not a key or group of the config.",
    "student.dephts=3": "student.dephts is not a key or group of the config. Did you mean 'student.depths'?",
    "+student.dephts=3": "student.dephts is not a key or group of the config. Did you mean 'student.depths'?",
    "++foo.bar=1": "foo.bar is not a key or group of the config.",
    "hydra.rnu.dir=x": "hydra.rnu is not a key or group of the config.",
    "steps=3.5": "steps must be a whole number, got 3.5.",
    "steps=many": "steps must be a whole number, got many.",
    "steps=": "steps must be a whole number, got nothing.",
    "steps=null": "steps must be given a value, got null.",
    "steps=???": "steps must be given a value, got ???.",
    "steps=${nope}": "steps must be a value, or ${key} with a key of the config, got ${nope}.",
    "width=true": "width must be a whole number, got true.",
    "learning_rate=fast": "learning_rate must be a number, got fast.",
    "teacher.rho=x": "teacher.rho must be a number, got x.",
    "device.count=two": "device.count must be a whole number, got two.",
    "resume=maybe": "resume must be true or false, got maybe.",
    "optimizer.name=[adam]": "optimizer.name must be a single word, got [adam].",
    "optimizer.options=[1]": "optimizer.options must be values with their names, {name: value}, got [1].",
    "student.depths={a: 1}": "student.depths must be a value or a list of values, got {a: 1}.",
    "student.depths=1,2": "student.depths must be one value, or a list in brackets, got 1,2. To run one job for each,",
    "student.depths=range(1,3)": "student.depths must be one value, or a list in brackets, got range(1,3).",
    "student.depths=[3,4": "arguments must be key=value or group=option, got student.depths=[3,4. Quote lists",
    "steps==3": "arguments must be key=value or group=option, got steps==3. ",
    "steps": "arguments must be key=value or group=option, got steps. ",
    "a b=3": "arguments must be key=value or group=option, got a b=3. ",
    "=3": "arguments must be key=value or group=option, got =3. ",
    "student=null": "arguments must be key=value or group=option, got student=null. ",
    "--stepz": "unrecognized arguments: --stepz. See --help",
    "--config-name=foo": "Cannot find primary config 'foo'.",
}


@pytest.fixture
def refused(monkeypatch, tmp_path, capsys):
    """refused("steps=0", ...): the one line on stderr of a command that must end with 2 before any job runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(toydepth.job, "run_job", lambda *_: pytest.fail("a job was run"))

    def call(*arguments):
        code = main(list(arguments))
        out, err = capsys.readouterr()
        lines = err.splitlines()
        assert (code, out, len(lines)) == (2, "[]\n" if "--json" in arguments else "", 1), err
        # Hydra writes down the sweep that was asked for.
        assert {path.name for path in tmp_path.rglob("*") if path.is_file()} <= {"multirun.yaml"}
        return lines[0].removeprefix("toydepth train: ")

    return call


@pytest.mark.parametrize("argument", SAID)
def test_one_line(refused, argument):
    assert refused("tracker=none", "width=4", argument).startswith(SAID[argument])


def test_a_folder_that_cannot_be_made(refused, tmp_path):
    assert refused("hydra.run.dir=/proc/nope").startswith(
        "hydra.run.dir must be a folder that can be made, got /proc/nope"
    )


def test_with_json_the_line_is_the_same_and_stdout_an_empty_list(refused, tmp_path):
    assert refused("step=3", "--json") == refused("--json", "step=3") == refused("step=3")
    assert refused("steps=0", "--json", f"hydra.run.dir={tmp_path}").startswith("steps must be a whole number")
    assert refused("--unknown", "--json").startswith("unrecognized arguments: --unknown")


@pytest.mark.parametrize("order", [("-m", "step=1,2"), ("step=1,2", "-m"), ("width=4", "--multirun", "step=1,2")])
def test_a_sweep_over_what_is_no_key_is_refused_whole(refused, order):
    assert refused(*order) == "step is not a key or group of the config. Did you mean 'steps'?"


def test_a_fault_of_ours_is_not_called_bad_input(monkeypatch, tmp_path):
    monkeypatch.setattr(toydepth.job, "run_job", lambda *_: {}["nothing"])
    with pytest.raises(KeyError):
        main([f"hydra.run.dir={tmp_path}", "steps=1"])

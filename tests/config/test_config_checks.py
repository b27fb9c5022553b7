"""Every value that cannot be used is refused in one line: `<key> must be <condition>, got <value>.` and advice."""

import math

import pytest

from toydepth import config as c
from toydepth.config import (
    StudentConfig,
    TargetConfig,
    TeacherConfig,
    TrainConfig,
    config_hash,
    from_dict,
    recipe_hash,
    to_dict,
)
from toydepth.errors import InputError

KL = c.LossConfig(name="kl")

# (the key, the condition, the value as shown, a word of the advice, how to make it)
REFUSED = [
    ("student.depths", "a whole number, at least 0", "-1", "blocks", lambda: StudentConfig(depths=-1)),
    ("student.depths", "a whole number, at least 0", "1.5", "", lambda: StudentConfig(depths=[3, 1.5])),
    ("student.depths", "a whole number, at least 0", "true", "", lambda: StudentConfig(depths=True)),
    ("student.depths", "a whole number, at least 0", "nan", "", lambda: StudentConfig(depths=math.nan)),
    ("student.depths", "a whole number, at least 0", "three", "", lambda: StudentConfig(depths="three")),
    ("student.depths", "1 or more without a learned head", "0", "learned", lambda: StudentConfig(depths=[0, 3])),
    ("student.depths", "1 or more", "0", "learned", lambda: StudentConfig(depths=0, head="teacher")),
    ("student.depths", "a list of at least one value", "[]", "[3,4,6]", lambda: StudentConfig(depths=[])),
    ("student.depths", "a list of distinct values", "[3, 4, 3]", "3", lambda: StudentConfig(depths=[3, 4, 3])),
    ("student.depths", "a value or a list of values", "null", "[...]", lambda: StudentConfig(depths=None)),
    ("student.init", "one of zero | euler", "eulr", "Did you mean 'euler'?", lambda: StudentConfig(init="eulr")),
    ("student.init", "a list of distinct values", "[zero, zero]", "", lambda: StudentConfig(init=["zero", "zero"])),
    ("student.init", "a list of at least one value", "[]", "", lambda: StudentConfig(init=[])),
    ("student.block", "one of euler | rk2", "rk4", "Did you mean 'rk2'?", lambda: StudentConfig(block="rk4")),
    ("student.head", "one of none", "learnt", "Did you mean 'learned'?", lambda: StudentConfig(head="learnt")),
    ("student.temperature", "one of auto | target", "hot", "", lambda: StudentConfig(temperature="hot")),
    ("student.temperature", "a finite number, greater than 0", "0", "", lambda: StudentConfig(temperature=0)),
    ("student.temperature", "a finite number, greater than 0", "null", "", lambda: StudentConfig(temperature=None)),
    ("target.temperatures", "a finite number, greater than 0", "0", "", lambda: TargetConfig(temperatures=0)),
    ("target.temperatures", "a finite number, greater than 0", "-1", "", lambda: TargetConfig(temperatures=[1, -1])),
    ("target.temperatures", "a finite number", "nan", "", lambda: TargetConfig(temperatures=math.nan)),
    ("target.temperatures", "a finite number", "inf", "", lambda: TargetConfig(temperatures=[math.inf])),
    ("target.temperatures", "a finite number", "true", "", lambda: TargetConfig(temperatures=True)),
    ("target.temperatures", "a list of distinct values", "[1, 1]", "", lambda: TargetConfig(temperatures=[1, 1.0])),
    ("target.temperatures", "a list of at least one", "[]", "", lambda: TargetConfig(temperatures=())),
    ("teacher.kind", "one of tied", "teid", "Did you mean 'tied'?", lambda: TeacherConfig(kind="teid")),
    ("teacher.depth", "a whole number, at least 0", "-1", "", lambda: TeacherConfig(depth=-1)),
    ("teacher.head_init", "one of normal", "norm", "Did you mean 'normal'?", lambda: TeacherConfig(head_init="norm")),
    ("teacher.seed", "a whole number, at least 0", "-1", "", lambda: TeacherConfig(seed=-1)),
    ("teacher.rho", "at least 0 and at most 1", "1.1", "", lambda: TeacherConfig(kind="correlated", rho=1.1)),
    ("teacher.rho", "at least 0 and at most 1", "-0.1", "", lambda: TeacherConfig(kind="correlated", rho=-0.1)),
    ("teacher.rho", "a finite number", "nan", "", lambda: TeacherConfig(kind="correlated", rho=math.nan)),
    ("teacher.rho", "set", "null", "rho=0.5", lambda: TrainConfig(teacher=TeacherConfig(kind="correlated"))),
    ("teacher.rho", "left out", "0.5", "correlated", lambda: TrainConfig(teacher=TeacherConfig(rho=0.5))),
    ("teacher.rho", "left out", "0", "", lambda: TrainConfig(teacher=TeacherConfig(kind="independent", rho=0.0))),
    *[
        (
            "student.init",
            f"zero for a teacher of kind {kind}",
            "euler",
            "teacher=tied",
            lambda kind=kind, rho=rho: TrainConfig(
                teacher=TeacherConfig(kind=kind, rho=rho), student=StudentConfig(init=["zero", "euler"])
            ),
        )
        for kind, rho in (("independent", None), ("correlated", 0.5), ("correlated", 1.0))
    ],
    (
        *("student.depths", "1 or more with student.init=euler", "0", "Remove"),
        lambda: TrainConfig(loss=KL, student=StudentConfig(depths=[0, 1], init="euler", head="learned")),
    ),
    (
        "student.head",
        "none with loss.name=mse",
        "teacher",
        "",
        lambda: TrainConfig(student=StudentConfig(head="teacher")),
    ),
    (
        "student.head",
        "none with loss.name=mse",
        "learned",
        "",
        lambda: TrainConfig(student=StudentConfig(head="learned")),
    ),
    ("student.head", "teacher or learned with loss.name=kl", "none", "", lambda: TrainConfig(loss=KL)),
    (
        *("target.temperatures", "a single value with loss.name=mse", "[0.1, 1]", "loss=kl"),
        lambda: TrainConfig(target=TargetConfig(temperatures=[0.1, 1])),
    ),
    ("loss.name", "one of mse | kl", "mae", "Did you mean 'mse'?", lambda: c.LossConfig(name="mae")),
    ("average.decays", "less than 1", "1", "never moves", lambda: c.AverageConfig(decays=1)),
    ("average.decays", "less than 1", "1", "never moves", lambda: c.AverageConfig(decays=[0.9, 1.0])),
    ("average.decays", "at least 0 and at most 1", "-0.5", "", lambda: c.AverageConfig(decays=-0.5)),
    ("average.decays", "a list of distinct values", "[0.9, 0.9]", "", lambda: c.AverageConfig(decays=[0.9, 0.9])),
    ("schedule.name", "one of constant", "cosin", "Did you mean 'cosine'?", lambda: c.ScheduleConfig(name="cosin")),
    ("schedule.decay_fraction", "at most 1", "1.5", "", lambda: c.ScheduleConfig(decay_fraction=1.5)),
    ("schedule.final_fraction", "at least 0", "-1", "", lambda: c.ScheduleConfig(final_fraction=-1)),
    ("optimizer.learning_rate_factor", "greater than 0", "0", "", lambda: c.OptimizerConfig(learning_rate_factor=0)),
    ("optimizer.depth_power", "a finite number", "inf", "", lambda: c.OptimizerConfig(depth_power=math.inf)),
    ("eval.points", "a whole number, at least 1", "0", "", lambda: c.EvalConfig(points=0)),
    ("eval.samples", "a whole number, at least 2", "1", "", lambda: c.EvalConfig(samples=1)),
    ("gradients.points", "a whole number, at least 0", "-1", "snapshots", lambda: c.GradientsConfig(points=-1)),
    ("gradients.points", "a whole number, at least 0", "1.5", "", lambda: c.GradientsConfig(points=1.5)),
    ("gradients.stream", "one of train | test", "tset", "Did you mean 'test'?", lambda: c.GradientsConfig(1, "tset")),
    ("gradients.weights", "one of raw", "averages", "Did you mean", lambda: c.GradientsConfig(weights="averages")),
    (
        *("gradients.weights", "raw with average.decays=[]", "average", "gradients.weights=raw"),
        lambda: TrainConfig(gradients=c.GradientsConfig(1, weights="average"), average=c.AverageConfig(0)),
    ),
    ("checkpoint.every_seconds", "at least 0", "-1", "", lambda: c.CheckpointConfig(every_seconds=-1)),
    ("tracker.name", "one of wandb", "jsnl", "Did you mean 'jsonl'?", lambda: c.TrackerConfig(name="jsnl")),
    ("tracker.mode", "one of auto", "offlin", "Did you mean 'offline'?", lambda: c.TrackerConfig(mode="offlin")),
    ("device.platform", "one of auto", "cpuu", "Did you mean 'cpu'?", lambda: c.DeviceConfig(platform="cpuu")),
    ("device.precision", "one of highest", "hihg", "Did you mean 'high'?", lambda: c.DeviceConfig(precision="hihg")),
    ("device.count", "a whole number, at least 1", "0", "", lambda: c.DeviceConfig(count=0)),
    ("device.count", "a whole number, at least 1", "true", "", lambda: c.DeviceConfig(count=True)),
    ("steps", "a whole number, at least 1", "0", "updates", lambda: TrainConfig(steps=0)),
    ("steps", "a whole number, at least 1", "-5", "updates", lambda: TrainConfig(steps=-5)),
    ("steps", "a whole number, at least 1", "1.5", "updates", lambda: TrainConfig(steps=1.5)),
    ("steps", "a whole number, at least 1", "true", "updates", lambda: TrainConfig(steps=True)),
    ("seed", "a whole number, at least 0", "-1", "", lambda: TrainConfig(seed=-1)),
    ("replicates", "a whole number, at least 1", "0", "", lambda: TrainConfig(replicates=0)),
    ("width", "a whole number, at least 1", "8.5", "", lambda: TrainConfig(width=8.5)),
    ("vocabulary", "a whole number, at least 2", "1", "", lambda: TrainConfig(vocabulary=1)),
    ("batch_size", "a whole number, at least 1", "0", "", lambda: TrainConfig(batch_size=0)),
    ("learning_rate", "a finite number, greater than 0", "0", "", lambda: TrainConfig(learning_rate=0)),
    ("learning_rate", "a finite number, greater than 0", "nan", "", lambda: TrainConfig(learning_rate=math.nan)),
    ("learning_rate", "a finite number, greater than 0", "true", "", lambda: TrainConfig(learning_rate=True)),
    ("name", "a word without slashes", "'a/b'", "folder", lambda: TrainConfig(name="a/b")),
    ("name", "a word without slashes", "''", "folder", lambda: TrainConfig(name="")),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[0]}={case[2]}")
def test_a_value_that_cannot_be_used_is_refused_in_one_line(case):
    key, condition, value, advice, make = case
    with pytest.raises(InputError) as caught:
        make()
    message = str(caught.value)
    assert message.startswith(f"{key} must be ") and "\n" not in message
    assert condition in message and f", got {value}." in message and advice in message


def test_the_ends_of_each_range_are_allowed():
    assert TeacherConfig(kind="correlated", rho=0).rho == 0 and TeacherConfig(kind="correlated", rho=1).rho == 1
    assert StudentConfig(depths=0, head="learned").depths == (0,)
    assert c.ScheduleConfig(decay_fraction=0, final_fraction=1).final_fraction == 1
    assert TrainConfig(steps=1, batch_size=1, width=1, eval=c.EvalConfig(1, 2)).steps == 1


def test_a_single_value_stands_for_a_list_of_one():
    student = StudentConfig(depths=12.0, init="euler")
    assert (student.depths, student.init) == ((12,), ("euler",)) and type(student.depths[0]) is int
    assert TargetConfig(temperatures=2).temperatures == (2.0,)
    assert c.AverageConfig(decays=0.9).decays == (0.9,)
    assert c.TrackerConfig(tags="mse").tags == ("mse",)


@pytest.mark.parametrize("off", [0, [], [0, 0.0]])
def test_a_decay_of_nothing_turns_averages_off(off):
    assert c.AverageConfig(decays=off).decays == ()


def test_only_what_changes_numbers_changes_the_hash():
    base = config_hash(TrainConfig())
    assert base == "8c67c43ce68c"  # as in records of before device.kernel: those runs can be gone on with
    same = [
        TrainConfig(tracker=c.TrackerConfig("none", tags=["a"])),
        TrainConfig(checkpoint=c.CheckpointConfig(1)),
        TrainConfig(resume=False),
        TrainConfig(gradients=c.GradientsConfig(12, "test", "average")),
        TrainConfig(student=StudentConfig(depths=[3.0, 4, 6, 8, 12, 16])),
    ]
    other = [
        TrainConfig(seed=1),
        TrainConfig(steps=20001),
        TrainConfig(student=StudentConfig(depths=[4, 3, 6, 8, 12, 16])),
        TrainConfig(device=c.DeviceConfig(precision="high")),
        TrainConfig(device=c.DeviceConfig(kernel="xla")),
        TrainConfig(eval=c.EvalConfig(points=51)),
    ]
    assert {config_hash(config) for config in same} == {base}
    assert len({base, *map(config_hash, other)}) == len(other) + 1


def test_a_config_written_and_read_again_is_the_same():
    config = TrainConfig(
        loss=KL,
        student=StudentConfig([0, 3], head="learned", temperature=0.5),
        target=TargetConfig([0.1, 1]),
        optimizer=c.OptimizerConfig("adam", {"b2": 0.99}),
        average=c.AverageConfig([0.9, 0.99]),
    )
    assert from_dict(to_dict(config)) == config


def test_a_config_from_before_there_were_gradient_snapshots_is_one_without_them():
    content = to_dict(TrainConfig(seed=3))
    del content["gradients"]
    assert from_dict(content) == TrainConfig(seed=3)
    assert recipe_hash(TrainConfig()) == recipe_hash(TrainConfig(gradients=c.GradientsConfig(5)))


def test_a_student_deeper_than_the_teacher_is_allowed_and_said():
    config = TrainConfig(teacher=TeacherConfig(depth=4), student=StudentConfig(depths=[4, 5, 9]))
    assert config.warnings() == ["student.depths 5, 9: deeper than the teacher (teacher.depth 4)"]
    assert TrainConfig(teacher=TeacherConfig(depth=4), student=StudentConfig(depths=4)).warnings() == []


@pytest.mark.parametrize(
    "head, setting, expected",
    [
        ("teacher", "auto", 0.1),
        ("learned", "auto", 1.0),
        ("learned", "target", 0.1),
        ("teacher", 2, 2.0),
        ("learned", 0.5, 0.5),
    ],
)
def test_the_temperature_of_a_student(head, setting, expected):
    config = TrainConfig(loss=KL, student=StudentConfig(head=head, temperature=setting))
    assert config.student_temperature(0.1) == expected


def test_a_teacher_has_the_seed_of_the_run_unless_given_its_own():
    assert TrainConfig(seed=3).teacher_seed == 3
    assert TrainConfig(seed=3, teacher=TeacherConfig(seed=0)).teacher_seed == 0

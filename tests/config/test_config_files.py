"""Folders of jobs: as readable as they can be, never shared."""

import itertools
import string

import pytest

from toydepth.config.files import folder_name

EXPERIMENT = "+experiment=tied"


@pytest.mark.parametrize(
    "typed, folder",
    [
        ("", "default"),
        (EXPERIMENT, "default"),
        (f"{EXPERIMENT},seed=1", "seed=1"),
        ("student.depths=[3,4,6]", "student.depths=[3,4,6]"),
        ("steps=3,+optimizer.options.b2=0.99", "steps=3,+optimizer.options.b2=0.99"),
    ],
)
def test_a_short_list_can_be_read(typed, folder):
    assert folder_name("tied", typed) == folder


def test_no_two_lists_share_a_folder():
    long = ",".join(f"student.depths=[{n}]" for n in range(40))
    typed = [
        *("", "seed=1", "seed=11", "seed=1,", "seed=1/2", "seed=1_2", "seed=1 2", "seed=1\\2", "seed=é"),
        *("target.temperatures=[0.1,1]", "target.temperatures=[0.1, 1]", "a={b: 1}", "a={b:1}", "a=_b_1_"),
        *(long, f"{long},seed=1", f"{long},seed=2"),
        *(f"name={letter}{other}" for letter, other in itertools.product(string.punctuation, repeat=2) if other != ","),
    ]
    folders = [folder_name("tied", text) for text in typed]
    # A comma at the end is an empty word; it changes no config.
    assert folders[1] == folders[3]
    twice = {f for f in folders if folders.count(f) > 1}
    assert twice <= {"seed=1"}, twice


def test_a_folder_is_one_level_of_bounded_length():
    for text in ("hydra.x=../../etc", "a=b/c", "x" * 5000, "a=\0", "a=.."):
        name = folder_name("tied", text)
        assert "/" not in name and "\0" not in name and name not in (".", "..") and 0 < len(name) < 200

"""The progress line: one line, as wide as the terminal, and silence elsewhere."""

import io

import pytest
from rich.console import Console

from toydepth.runs import ProgressLine
from toydepth.runs.progress import format_line


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(file, width=60, resumed=None):
    seconds = iter([0.0] * (2 if resumed else 1) + [100.0, 101.0, 102.0])
    console = Console(file=file, width=width, force_terminal=True, color_system=None, _environ={"TERM": "xterm"})
    with ProgressLine(1000, console=console, clock=lambda: next(seconds)) as line:
        if resumed:
            line.resume(resumed)
        for step in (100, 200, 300):
            line.update(step, {6: 4e-4, 3: 1.1e-3})
    return file.getvalue()


def test_a_terminal_gets_steps_speed_time_left_and_losses_by_depth():
    text = run(Terminal())
    assert "300/1000  2.9 steps/s  3:58 left  3:1.1e-3 6:4.0e-4" in text
    assert text.count("\n") == 1


def test_the_line_is_cut_to_the_width():
    text = run(Terminal(), width=20)
    assert "300/1000  2.9 steps…" in text
    assert text.count("\n") == 1


def test_a_resumed_run_does_not_count_earlier_steps_as_speed():
    assert "300/1000  2.0 steps/s" in run(Terminal(), resumed=100)


def test_anything_else_gets_nothing(capsys):
    assert run(io.StringIO()) == ""  # even with colours forced
    with ProgressLine(10) as line:
        line.update(5, {3: 0.1})
    assert capsys.readouterr() == ("", "")


def test_the_terminal_is_given_back_after_an_error():
    file = Terminal()
    console = Console(file=file, width=60, force_terminal=True, _environ={"TERM": "xterm"})
    with pytest.raises(RuntimeError, match="stop"), ProgressLine(10, console=console):
        raise RuntimeError("stop")
    assert file.getvalue().endswith("\x1b[?25h")  # the cursor is shown again


@pytest.mark.parametrize(
    ("speed", "expected"),
    [
        (0.0, "0/72000  3:inf"),
        (20.0, "0/72000  20.0 steps/s  1:00:00 left  3:inf"),
        (72000.0, "0/72000  72,000 steps/s  0:01 left  3:inf"),
    ],
)
def test_speeds(speed, expected):
    assert format_line(0, 72000, speed, {3: float("inf")}) == expected

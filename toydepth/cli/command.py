"""The `toydepth` command: parses, runs one of the commands, and answers errors and interrupts in one line."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import os
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from toydepth.cli.hidden import hidden
from toydepth.cli.law import law
from toydepth.cli.runs import export, figures, fit, train
from toydepth.cli.trace import trace
from toydepth.cli.transport import transport
from toydepth.cli.utility import utility
from toydepth.errors import InputError, RunError, did_you_mean

_INTERRUPTED = 130  # as a shell has it: 128 and the number of SIGINT
_PIPE_CLOSED = 141  # and of SIGPIPE


_DESCRIPTION = "What does depth buy? Trains students of many depths, fits exponents and scaling laws, draws figures."
_COMMANDS: dict[str, Any] = {
    "train": train,
    "fit": fit,
    "figures": figures,
    "law": law,
    "hidden": hidden,
    "utility": utility,
    "trace": trace,
    "transport": transport,
    "export": export,
}


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns the exit code.

    0; 2 for an input that cannot be used; 130 after an interrupt. Train has more: see toydepth.train.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if arguments[:1] == ["train"]:
            from toydepth.train import main as train_main

            return train_main(arguments[1:])
        with _no_interrupt_ignored():
            return _run(arguments)
    except KeyboardInterrupt:
        return _INTERRUPTED


@contextlib.contextmanager
def _no_interrupt_ignored() -> Iterator[None]:
    """Ends the process where an interrupt falls into a callback: Python would print its traceback, and go on."""
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            os._exit(_INTERRUPTED)
        before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _run(arguments: list[str]) -> int:
    """Runs a command other than train; returns the exit code."""
    word = arguments[0] if arguments else "--help"
    if not word.startswith("-") and word not in _COMMANDS:
        hint = did_you_mean(word, _COMMANDS)
        print(f"toydepth: command must be one of {' | '.join(_COMMANDS)}, got {word}.{hint}", file=sys.stderr)
        return 2
    complaint = io.StringIO()
    name = f"toydepth {word}" if word in _COMMANDS else "toydepth"
    try:
        with contextlib.redirect_stderr(complaint):
            command = _parse(arguments or ["--help"])
        return command()
    except SystemExit as stop:
        if stop.code not in (0, None):
            print(f"{name}: {_first_sentence(complaint.getvalue())}", file=sys.stderr)
            return 2
        return 0
    except (InputError, RunError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read has read enough (`| head`). What is still buffered would fail again as Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    except OSError as error:
        if error.filename is None:
            got = f"{error.strerror or error}".lower()
            print(f"{name}: the output must be writable, got: {got}. Send it elsewhere.", file=sys.stderr)
            return RunError.exit_code
        print(f"{name}: {error.filename} must be readable or writable, got: {error.strerror}.", file=sys.stderr)
        return InputError.exit_code


def _parse(arguments: list[str]) -> Any:
    """Returns the command with its arguments filled in, not yet run: what it prints must not be taken for usage."""
    import tyro

    def later(function: Any) -> Any:
        @functools.wraps(function)
        def bound(*positional: Any, **named: Any) -> Any:
            return lambda: function(*positional, **named)

        return bound

    commands = {name: later(function) for name, function in _COMMANDS.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tyro.extras.subcommand_cli_from_dict(
            commands,
            prog="toydepth",
            args=arguments,
            description=_DESCRIPTION,
            config=(tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes),
        )


def _first_sentence(text: str) -> str:
    """What a usage box says between its title and the next rule, in one line, with what it thinks was meant."""
    lines = [re.sub(r"[╭╮╰╯│]|\x1b\[[0-9;]*m", " ", line).strip() for line in text.strip().splitlines()]
    body = itertools.dropwhile(lambda line: not line.strip("-─ "), lines[1:])
    said = list(itertools.takewhile(lambda line: line.strip("-─ "), body))
    if not said:
        return "the arguments were not understood. See --help."
    words = re.sub(r"\s+", " ", " ".join(said)).rstrip(".")
    words = re.sub(r"^Error parsing __tyro-dummy-inner__[\w.]*: ", "", words)  # of a check of ours, in a group
    meant = re.search(r"Perhaps you meant:\W*?(--[\w-]+)", "\n".join(lines))
    return f"{words}.{f' Did you mean {meant.group(1)!r}?' if meant else ' See --help.'}"

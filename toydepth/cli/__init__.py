"""The `toydepth` command.

command.py   parses the words, runs a command, turns errors into one line and an exit code
runs.py      train, fit, figures, export: what is done with runs of training
law.py       law: scaling laws of anybody's table
"""

from toydepth.cli.command import main

__all__ = ["main"]

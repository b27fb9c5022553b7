"""The training command: hydra composes, the config is checked, one job runs, the exit code says how it ended.

    python -m toydepth.train +experiment=tied
    python -m toydepth.train -m +experiment=tied student.depths=3,4,6,8

Exit codes: 0 complete; 1 a failure of ours; 2 an input that cannot be used; 3 every arm diverged; 130 or 143 after
SIGINT or SIGTERM, with a checkpoint from which the same command goes on.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from toydepth.config import TrainConfig, conf_dir, register
from toydepth.config.messages import explain
from toydepth.errors import InputError, RunError

_EXIT = {"complete": 0, "diverged": 3}


class _Jobs:
    """What the jobs of this process did, for the exit code and --json."""

    def __init__(self, arguments: list[str], as_json: bool):
        self.arguments = arguments
        self.console = Console(stderr=as_json)
        self.begun = 0
        self.finished: list[dict[str, Any]] = []
        self.codes: list[int] = []


def main(arguments: list[str] | None = None) -> int:
    """Runs the command with hydra's arguments, and `--json` besides; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in arguments
    arguments = _order([a for a in arguments if a != "--json"])
    jobs = _Jobs(arguments, as_json)
    register()

    def task(node: DictConfig) -> None:
        _run_one(node, jobs)

    before = sys.argv
    sys.argv = ["toydepth train", *arguments]
    # Hydra prints its own errors over several lines and always exits with 1, unless it is asked for the whole error.
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")
    try:
        _check_options(arguments)
        hydra.main(version_base="1.3", config_path=conf_dir(), config_name="train")(task)()
    except SystemExit as end:  # hydra ends so after --version, say
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except (_Stop, KeyboardInterrupt) as stop:
        jobs.codes.append(stop.code if isinstance(stop, _Stop) else _interrupted())
    except InputError as error:
        jobs.codes.append(_complain(error, InputError.exit_code))
    except Exception as error:
        message = explain(error, TrainConfig, arguments)
        if message is None and isinstance(error, OSError) and not jobs.begun:
            why = f"{error.filename} ({error.strerror})"
            message = f"hydra.run.dir must be a folder that can be made, got {why}. Choose another."
        if message is None or os.environ.get("TOYDEPTH_TRACEBACK"):
            jobs.codes.append(RunError.exit_code)
            raise
        jobs.codes.append(_complain(message, InputError.exit_code))
    finally:
        sys.argv = before
        # Nothing to say where hydra itself has answered (--cfg job); otherwise always a list, were it an empty one, and
        # also when a fault of ours ends the process: what has been trained is there.
        if as_json and jobs.codes:
            rows = [job | {"fits": []} if job["fits"] is None else job for job in jobs.finished]
            print(json.dumps(rows, allow_nan=False), flush=True)
    return max(jobs.codes, default=0)


def _interrupted() -> int:
    """Says what a signal before the first step leaves: nothing."""
    print("toydepth train: interrupted before training began; nothing is lost, start it again", file=sys.stderr)
    return 130


def _order(arguments: list[str]) -> list[str]:
    """Puts -m first: hydra's parser takes overrides from one side of it only."""
    flags = [a for a in arguments if a in ("-m", "--multirun")]
    return flags[:1] + [a for a in arguments if a not in flags]


def _check_options(arguments: list[str]) -> None:
    """Refuses an option that hydra does not know in one line; hydra itself prints its whole usage."""
    parser = get_args_parser()

    def refuse(message: str) -> NoReturn:
        raise InputError(f"{message}. See --help; overrides are key=value, without dashes, after all options.")

    parser.error = refuse
    parser.parse_args(arguments)


class _Stop(BaseException):
    """Ends a multirun after a signal; the jobs that were to follow are not begun.

    No Exception: hydra would keep one until the last job has ended.
    """

    def __init__(self, code: int):
        super().__init__(f"stopped by a signal, exit code {code}")
        self.code = code


def _run_one(node: DictConfig, jobs: _Jobs) -> None:
    """Runs one job of this process. A job that fails is said at once and does not keep the next from running."""
    jobs.begun += 1
    run = HydraConfig.get()
    try:
        config = OmegaConf.to_object(node)
        assert isinstance(config, TrainConfig)
        # Imported here: a mistyped key is answered before jax is.
        from toydepth.job import run_job

        done = run_job(config, Path(run.runtime.output_dir), list(run.overrides.task), jobs.console)
    except (InputError, RunError) as error:
        jobs.codes.append(_complain(error, error.exit_code))
        return
    except Exception as error:
        message, code = explain(error, TrainConfig, jobs.arguments), InputError.exit_code
        if message is None and _out_of_memory(error):
            message, code = f"out of memory: {_first_line(error)}. {_SMALLER}", RunError.exit_code
        if message is None or os.environ.get("TOYDEPTH_TRACEBACK"):
            jobs.codes.append(RunError.exit_code)
            raise
        jobs.codes.append(_complain(message, code))
        return
    fits = [row.to_dict() for row in done.table.last] if done.table else None
    jobs.finished.append({"run": str(done.folder), "status": done.status, "fits": fits, "why_no_fit": done.why_no_fit})
    if done.signal:
        raise _Stop(128 + done.signal)
    jobs.codes.append(_EXIT[done.status])


_SMALLER = "Lower width, batch_size, eval.samples, replicates or the number of depths and temperatures."


def _out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].removeprefix("RESOURCE_EXHAUSTED: ").rstrip(".")


def _complain(error: object, code: int) -> int:
    print(f"toydepth train: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

"""Weights & Biases: one run for each start of a job, online where that works at once, offline otherwise."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toydepth.errors import InputError
from toydepth.runs.files import plain
from toydepth.runs.trackers.base import TrackedRun
from toydepth.runs.trackers.mode import DEFAULT_BASE_URL, Probe, can_connect, decide_mode, find_netrc

_INIT_SECONDS = 15.0  # for a server that accepts the connection and then says nothing
_FINISH_SECONDS = 120.0  # for what is left to upload; it stays on disk, and can be synced later
_EXIT_CODES = {"complete": 0, "interrupted": 130}  # any other end counts as failed
_MAX_NAME, _MAX_TAG = 128, 64  # the server refuses longer ones


class WandbTracker:
    """Logs to Weights & Biases into the run's own folder; `wandb` is imported here and nowhere else.

    The mode is decided when the tracker is made (`decide_mode`), so that a wrong setting fails before anything
    compiles. A resumed run is a new W&B run of the same group, named `<name>-from-<step>`, as there is no resuming
    offline; its steps go on.

    Args:
        project: W&B project.
        mode: auto | online | offline.
        entity: team or person; None for the default of the account.
        probe: tells whether a server can be reached; for tests.

    Attributes:
        mode: 'online' | 'offline' | 'disabled'; reason: why; num_dropped: rows dropped as their step went backwards.

    Raises:
        InputError: where wandb is not installed, or `mode` cannot be had.
    """

    def __init__(
        self, project: str, *, mode: str = "auto", entity: str | None = None, probe: Probe = can_connect
    ) -> None:
        self._wandb = _import_wandb()
        configured_mode, base_url = _configured(self._wandb)
        environ = dict(os.environ)
        # `wandb offline` and `wandb disabled` are kept in the client's settings file.
        if configured_mode in ("offline", "disabled"):
            environ.setdefault("WANDB_MODE", configured_mode)
        self.mode, self.reason = decide_mode(mode, environ, find_netrc(), probe, base_url=base_url)
        self.warnings: list[str] = []
        self.where = ""
        self.num_dropped = 0
        self._project, self._entity = project, entity
        self._run: Any = None
        self._step = -1

    def start(self, run: TrackedRun) -> None:
        """Opens a run of its own, whatever an earlier job of this process left open."""
        run.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._run = self._init(run, self.mode)
        except Exception as error:
            if self.mode != "online":
                raise
            # The server was there a moment ago, but refuses or stays silent: nothing is lost offline.
            self.mode, self.reason = "offline", "the server did not start the run"
            first_line = (str(error).splitlines() or [""])[0]
            self.warnings.append(f"wandb went offline: {type(error).__name__}: {first_line}")
            self._run = self._init(run, self.mode)
        self._step = -1 if run.resumed_from is None else run.resumed_from
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")
        if self.mode == "offline":
            self.where = f"wandb sync {Path(self._run.dir).parent}"
        elif self.mode == "online":
            self.where = str(self._run.url)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Logs `metrics`, and `step` among them as the x axis."""
        self._log({**metrics, "step": step}, step)

    def image(self, name: str, path: Path, step: int) -> None:
        """Uploads the figure at `path`."""
        # The file, not the figure: a figure logged directly would be converted, and need plotly.
        self._log({name: self._wandb.Image(str(path)), "step": step}, step)

    def summary(self, values: Mapping[str, Any]) -> None:
        """Sets the numbers that the run is compared by."""
        self._require_run().summary.update(plain(dict(values), "summary"))

    def finish(self, status: str) -> None:
        """Closes the run, as failed unless it is complete; harmless where none was opened."""
        if self._run is None:
            return
        run, self._run = self._run, None
        if self.num_dropped:
            self.warnings.append(f"wandb dropped {self.num_dropped} rows whose step went backwards")
        try:
            run.summary.update({"status": status})
        finally:
            run.finish(exit_code=_EXIT_CODES.get(status, 1))

    def _init(self, run: TrackedRun, mode: str) -> Any:
        suffix = "" if run.resumed_from is None else f"-from-{run.resumed_from}"
        return self._wandb.init(
            project=self._project,
            entity=self._entity,
            name=run.name[: _MAX_NAME - len(suffix)] + suffix,
            group=run.group[:_MAX_NAME] if run.group else None,
            tags=[tag[:_MAX_TAG] for tag in run.tags if tag],
            config=plain(run.config, "config"),
            dir=str(run.folder),
            mode=mode,
            # Without it a job of a sweep that follows one that was not closed would join its run.
            reinit="finish_previous",
            settings=_quiet_settings(self._wandb),
        )

    def _log(self, row: dict[str, Any], step: int) -> None:
        run = self._require_run()
        if step < self._step:
            self.num_dropped += 1  # W&B would drop it as well, with a warning for each
            return
        self._step = step
        run.log(row, step=step)

    def _require_run(self) -> Any:
        if self._run is None:
            raise RuntimeError("the tracker must be started before it logs")
        return self._run


def _import_wandb() -> Any:
    with contextlib.suppress(ImportError):
        import wandb

        # A folder named wandb, which every run leaves behind, can be imported too; it holds no init.
        if hasattr(wandb, "init"):
            return wandb
    advice = "Install it (pip install wandb), or use tracker=jsonl."
    raise InputError(f"tracker must be one whose package is installed, got wandb without wandb. {advice}")


def _configured(wandb: Any) -> tuple[str, str]:
    """Returns the mode and server of the client's own settings files and defaults."""
    with contextlib.suppress(Exception):  # a WANDB_ variable it cannot read; decide_mode says it better
        settings = wandb.setup().settings
        return settings.mode, settings.base_url
    return "", DEFAULT_BASE_URL


def _quiet_settings(wandb: Any) -> Any:
    wanted = {
        "silent": True,
        "console": "off",
        "disable_code": True,
        "disable_git": True,
        "save_code": False,
        "init_timeout": _INIT_SECONDS,
        "finish_timeout": _FINISH_SECONDS,
        # The record holds versions and machine already; sampling the machine costs a core its time.
        "x_disable_stats": True,
        "x_disable_meta": True,
        "x_disable_machine_info": True,
        "x_save_requirements": False,
    }
    # Those that start with x_ are the client's internals, and come and go; an unknown one would be an error.
    known = getattr(wandb.Settings, "model_fields", wanted)
    return wandb.Settings(**{name: value for name, value in wanted.items() if name in known})

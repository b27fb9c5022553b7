"""Whether Weights & Biases is used online or offline, decided in seconds and without a question, before it starts.

Left to itself, the client asks for a key at a terminal, and waits a minute and a half for a network that is not there.
"""

from __future__ import annotations

import netrc
import os
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from toydepth.errors import InputError, did_you_mean

DEFAULT_BASE_URL = "https://api.wandb.ai"
PROBE_SECONDS = 2.0
MODES = ("auto", "online", "offline")
# What the client takes WANDB_MODE to mean; 'run' and 'dryrun' are its older words.
_ENVIRONMENT_MODES = {
    "online": "online",
    "run": "online",
    "offline": "offline",
    "dryrun": "offline",
    "disabled": "disabled",
}
# One service under two names: a key stored for one opens the other.
_SAME_SERVICE = ("api.wandb.ai", "api.forge.coreweave.com")

Probe = Callable[[str, int, float], bool]


def decide_mode(
    mode: str,
    environ: Mapping[str, str],
    netrc_path: Path,
    probe: Probe,
    base_url: str = DEFAULT_BASE_URL,
) -> tuple[str, str]:
    """Returns the mode to start W&B in, and the reason in a few words. Never asks, never waits for long.

    'auto' follows WANDB_MODE where it is set; otherwise it is online only with both a key and a server that answers.

    Args:
        mode: auto | online | offline, as configured; online and offline win over WANDB_MODE.
        environ: the environment: WANDB_MODE, WANDB_API_KEY, WANDB_IDENTITY_TOKEN_FILE, WANDB_BASE_URL, proxies.
        netrc_path: file that `wandb login` keeps keys in; may be missing.
        probe: called as probe(host, port, seconds); whether a connection can be made. Usually `can_connect`.
        base_url: the server where WANDB_BASE_URL is not set.

    Returns:
        tuple[str, str]: ('online' | 'offline' | 'disabled', reason). Disabled only where WANDB_MODE says so.

    Raises:
        InputError: for an unknown mode, and where online is asked for without a key or a server that answers.

    Example:
        >>> decide_mode("auto", {"WANDB_API_KEY": "secret"}, Path("none"), lambda host, port, seconds: False)
        ('offline', 'no connection to api.wandb.ai')
        >>> decide_mode("auto", {}, Path("none"), lambda host, port, seconds: True)
        ('offline', 'no API key for api.wandb.ai')
    """
    if mode not in MODES:
        advice = f"Use one of them.{did_you_mean(mode, MODES)}"
        raise InputError(f"tracker.mode must be one of {', '.join(MODES)}, got {mode!r}. {advice}")
    asked = "tracker.mode"
    if mode == "auto" and environ.get("WANDB_MODE"):
        asked = "WANDB_MODE"
        if environ[asked] not in _ENVIRONMENT_MODES:
            known = ("online", "offline", "disabled")
            advice = f"Set it to one of them, or unset it.{did_you_mean(environ[asked], known)}"
            raise InputError(f"WANDB_MODE must be one of {', '.join(known)}, got {environ[asked]!r}. {advice}")
        mode = _ENVIRONMENT_MODES[environ[asked]]
    if mode in ("offline", "disabled"):
        return mode, f"{asked} says so"

    url = environ.get("WANDB_BASE_URL") or base_url
    host = urlsplit(url).netloc.rpartition("@")[2]
    if not _has_key(environ, netrc_path, host):
        if mode == "online":
            got = f"online without an API key for {host}"
            raise InputError(f"{asked} must be offline or auto, got {got}. Run `wandb login`, or set WANDB_API_KEY.")
        return "offline", f"no API key for {host}"
    if not probe(*_target(url, environ), PROBE_SECONDS):
        if mode == "online":
            got = f"online without a connection to {host}"
            raise InputError(f"{asked} must be offline or auto, got {got}. Sync later with `wandb sync`.")
        return "offline", f"no connection to {host}"
    return "online", f"{asked} says so" if mode == "online" else f"a key for {host}, which answers"


def can_connect(host: str, port: int, seconds: float) -> bool:
    """Returns whether a TCP connection can be opened within `seconds`, looking up the name included.

    >>> can_connect("127.0.0.1", 9, 0.5)
    False
    """
    found, done = threading.Event(), threading.Event()

    def connect() -> None:
        try:
            with socket.create_connection((host, port), timeout=seconds):
                found.set()
        except (OSError, UnicodeError):
            pass
        finally:
            done.set()

    # A thread, as a socket's timeout does not cover the name server, which may take half a minute to say nothing.
    threading.Thread(target=connect, daemon=True).start()
    done.wait(seconds)
    return found.is_set()


def find_netrc() -> Path:
    """Returns the path of the file that holds keys: NETRC where it is set, else .netrc in the home folder."""
    return Path(os.environ.get("NETRC") or "~/.netrc").expanduser()


def _has_key(environ: Mapping[str, str], netrc_path: Path, host: str) -> bool:
    if environ.get("WANDB_API_KEY") or environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    try:
        entries = netrc.netrc(netrc_path)
    except (OSError, netrc.NetrcParseError, UnicodeDecodeError):
        return False
    names = _SAME_SERVICE if host in _SAME_SERVICE else (host,)
    return any((entries.authenticators(name) or ("", "", ""))[2] for name in names)


def _target(url: str, environ: Mapping[str, str]) -> tuple[str, int]:
    parts = urlsplit(url)
    proxy = environ.get(f"{parts.scheme}_proxy") or environ.get(f"{parts.scheme.upper()}_PROXY")
    exempt = [name.strip() for name in (environ.get("no_proxy") or environ.get("NO_PROXY") or "").split(",")]
    host = f".{parts.hostname}"
    if proxy and not any(name == "*" or (name and host.endswith("." + name.lstrip("."))) for name in exempt):
        # Behind a proxy the server itself cannot be reached, yet the client gets through.
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)

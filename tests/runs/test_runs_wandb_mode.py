"""Online or offline: every branch of the decision, with a probe that opens no connection."""

import re
import socket
import threading

import pytest

from toydepth.errors import InputError
from toydepth.runs.trackers import can_connect, decide_mode
from toydepth.runs.trackers.mode import find_netrc

KEY = {"WANDB_API_KEY": "k"}
OWN = {"WANDB_BASE_URL": "http://wandb.example.org:8080"}
DEFAULT = "api.wandb.ai"

DECISIONS = [
    # mode, environment, does the server answer, machine in netrc -> mode, reason
    ("auto", {}, True, None, "offline", f"no API key for {DEFAULT}"),
    ("auto", {}, True, "elsewhere.org", "offline", f"no API key for {DEFAULT}"),
    ("auto", KEY, True, None, "online", f"a key for {DEFAULT}, which answers"),
    ("auto", KEY, False, None, "offline", f"no connection to {DEFAULT}"),
    ("auto", {"WANDB_IDENTITY_TOKEN_FILE": "f"}, True, None, "online", f"a key for {DEFAULT}, which answers"),
    ("auto", {}, True, DEFAULT, "online", f"a key for {DEFAULT}, which answers"),
    ("auto", {}, True, "api.forge.coreweave.com", "online", f"a key for {DEFAULT}, which answers"),
    ("auto", OWN, True, DEFAULT, "offline", "no API key for wandb.example.org:8080"),
    ("auto", OWN, True, "wandb.example.org:8080", "online", "a key for wandb.example.org:8080, which answers"),
    ("auto", {**KEY, "WANDB_MODE": "offline"}, True, None, "offline", "WANDB_MODE says so"),
    ("auto", {**KEY, "WANDB_MODE": "dryrun"}, True, None, "offline", "WANDB_MODE says so"),
    ("auto", {**KEY, "WANDB_MODE": "disabled"}, True, None, "disabled", "WANDB_MODE says so"),
    ("auto", {**KEY, "WANDB_MODE": "online"}, True, None, "online", "WANDB_MODE says so"),
    ("auto", {**KEY, "WANDB_MODE": ""}, True, None, "online", f"a key for {DEFAULT}, which answers"),
    ("offline", {**KEY, "WANDB_MODE": "online"}, True, None, "offline", "tracker.mode says so"),
    ("online", {**KEY, "WANDB_MODE": "offline"}, True, None, "online", "tracker.mode says so"),
]


@pytest.fixture
def netrc(tmp_path):
    """Writes a netrc file with a key for one machine, or none at all."""

    def write(machine):
        path = tmp_path / "netrc"
        if machine:
            path.write_text(f"machine {machine}\n  login user\n  password secret\n")
        return path

    return write


@pytest.mark.parametrize(("mode", "environ", "answers", "machine", "expected", "reason"), DECISIONS)
def test_decisions(netrc, mode, environ, answers, machine, expected, reason):
    assert decide_mode(mode, environ, netrc(machine), lambda *where: answers) == (expected, reason)


REFUSALS = [
    ("onlin", {}, "tracker.mode must be one of auto, online, offline, got 'onlin'. Use one of them. Did you mean 'onl"),
    ("disabled", {}, "tracker.mode must be one of auto, online, offline, got 'disabled'. Use one of them."),
    (
        "auto",
        {"WANDB_MODE": "ofline"},
        "WANDB_MODE must be one of online, offline, disabled, got 'ofline'. Set it to one of them, or unset it. Did yo",
    ),
    (
        "online",
        {},
        "tracker.mode must be offline or auto, got online without an API key for api.wandb.ai. Run `wandb login`, or s",
    ),
    ("auto", {"WANDB_MODE": "online"}, "WANDB_MODE must be offline or auto, got online without an API key for api.w"),
    (
        "online",
        KEY,
        "tracker.mode must be offline or auto, got online without a connection to api.wandb.ai. Sync later with `wand",
    ),
]


@pytest.mark.parametrize(("mode", "environ", "message"), REFUSALS)
def test_refusals(netrc, mode, environ, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}") as error:
        decide_mode(mode, environ, netrc(None), lambda *where: False)
    assert "\n" not in str(error.value)


def test_the_server_is_asked_only_when_it_matters(netrc):
    def probe(*where):
        raise AssertionError("asked")

    decide_mode("auto", {}, netrc(None), probe)
    decide_mode("offline", KEY, netrc(None), probe)
    decide_mode("auto", {**KEY, "WANDB_MODE": "offline"}, netrc(None), probe)


TARGETS = [
    ({}, ("api.wandb.ai", 443)),
    (OWN, ("wandb.example.org", 8080)),
    ({"WANDB_BASE_URL": "http://wandb.example.org"}, ("wandb.example.org", 80)),
    ({"https_proxy": "http://proxy:3128"}, ("proxy", 3128)),
    ({"HTTPS_PROXY": "proxy:3128"}, ("proxy", 3128)),
    ({"http_proxy": "http://proxy:3128"}, ("api.wandb.ai", 443)),
    ({"https_proxy": "http://proxy:3128", "no_proxy": "localhost, .wandb.ai"}, ("api.wandb.ai", 443)),
    ({"https_proxy": "http://proxy:3128", "NO_PROXY": "*"}, ("api.wandb.ai", 443)),
    ({"https_proxy": "http://proxy:3128", "no_proxy": "andb.ai"}, ("proxy", 3128)),
]


@pytest.mark.parametrize(("environ", "target"), TARGETS)
def test_what_is_asked(netrc, environ, target):
    asked = []
    decide_mode("auto", {**KEY, **environ}, netrc(None), lambda *where: asked.append(where) or True)
    assert asked == [(*target, 2.0)]


def test_a_damaged_netrc_holds_no_key(netrc):
    path = netrc(None)
    path.write_text("machine")
    assert decide_mode("auto", {}, path, lambda *where: True)[0] == "offline"


def test_the_netrc_file_is_the_one_the_client_uses(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NETRC", raising=False)
    assert find_netrc() == tmp_path / ".netrc"
    monkeypatch.setenv("NETRC", "~/keys")
    assert find_netrc() == tmp_path / "keys"


def test_can_connect_to_what_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert can_connect("127.0.0.1", port, 5.0)
    assert not can_connect("127.0.0.1", port, 5.0)
    assert not can_connect("", 443, 5.0) and not can_connect("a" * 70, 443, 5.0)


def test_a_name_server_that_is_silent_does_not_hold_up_the_run(monkeypatch):
    released = threading.Event()

    def wait(*arguments, **options):
        released.wait(60)
        raise OSError("name or service not known")

    monkeypatch.setattr("socket.create_connection", wait)
    assert not can_connect("api.wandb.ai", 443, 0.01)
    released.set()

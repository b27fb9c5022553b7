"""Hydra's and OmegaConf's errors as one clear line, with a did-you-mean."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from toydepth.errors import InputError, did_you_mean


def explain(error: BaseException, schema: type) -> str | None:
    """Returns one line for an error of composing a config, or None for an error that is not about the config.

    Args:
        error: as raised by hydra, with what caused it.
        schema: the root dataclass, whose keys are suggested.
    """
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    for link in chain:
        if isinstance(link, InputError):
            return str(link)
    text = "\n".join(str(e) for e in chain)
    # `+key=value` gets past hydra, and fails when the dataclass is built.
    if found := re.search(r"(?:unexpected keyword argument|cannot assign to field) '(\w+)'", text):
        key = found.group(1)
        return f"{key} is not a key or group of the config.{did_you_mean(key, config_keys(schema))}"
    if not any(isinstance(e, (HydraException, OmegaConfBaseException)) for e in chain):
        return None
    if found := re.search(r"Could not find '([\w/]+)/([^'/]+)'", text):
        group, word = found.groups()
        known = re.findall(r"^\t(\S+)$", text, re.MULTILINE)
        return f"{group} must be one of {' | '.join(known)}, got {word}.{did_you_mean(word, known)}"
    patterns = (
        r"Could not override '([^']+)'",
        r"Key '([^']+)' (?:is )?not in",
        r"No match in the defaults list for '([^']+)'",
    )
    for pattern in patterns:
        if found := re.search(pattern, text):
            full = re.search(r"full_key: (\S+)", text)
            key = full.group(1) if full else found.group(1)
            return f"{key} is not a key or group of the config.{did_you_mean(key, config_keys(schema))}"
    if found := re.search(r"LexerNoViableAlt|mismatched input|no viable alternative|extraneous input|missing EQUAL", text):
        words = re.search(r"Error when parsing override : '(.*)'", text) or re.search(r"parsing.*?'(.*?)'", text)
        given = f", got {words.group(1)}" if words else ""
        return (
            f"arguments must be key=value or group=option{given}. Quote lists for the shell: 'student.depths=[3,4,6]'."
        )
    first = next((line for line in str(chain[-1]).splitlines() if line.strip()), type(error).__name__)
    full = re.search(r"full_key: (\S+)", text)
    return f"{full.group(1)}: {first}" if full else first


def config_keys(schema: type, prefix: str = "") -> list[str]:
    """Returns the dotted keys of a dataclass and of those inside it.

    Example:
        >>> from toydepth.config import TrainConfig
        >>> "student.depths" in config_keys(TrainConfig)
        True
    """
    keys: list[str] = []
    for item in dataclasses.fields(schema):
        keys.append(prefix + item.name)
        kind: Any = item.default_factory if item.default_factory is not dataclasses.MISSING else None
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            keys += config_keys(kind, f"{prefix}{item.name}.")
    return keys

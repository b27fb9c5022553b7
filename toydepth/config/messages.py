"""Hydra's and OmegaConf's errors as one clear line, with a did-you-mean."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from hydra.errors import HydraException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from toydepth.config.checks import show
from toydepth.errors import InputError, did_you_mean

# What OmegaConf says of a value it cannot take, and the condition in our words.
_CONDITIONS = (
    (r"could not be converted to Integer", "a whole number"),
    (r"could not be converted to Float", "a number"),
    (r"is not a valid bool", "true or false"),
    (r"Cannot convert '.*' to string", "a single word"),
    (r"is not Optional", "given a value"),
    (r"has missing mandatory value", "given a value"),
    (r"Cannot merge .*object_type=list", "a value or a list of values"),
    (r"Cannot merge .*object_type=|is not a subclass of", "values with their names, {name: value}"),
    (r"Interpolation key '.*' not found", "a value, or ${key} with a key of the config"),
)
_SYNTAX = "Quote lists for the shell: 'student.depths=[3,4,6]'."


def explain(error: BaseException, schema: type, arguments: Sequence[str] = ()) -> str | None:
    """Returns one line for an error of composing a config, or None for an error that is not about the config.

    Args:
        error: as raised by hydra, with what caused it.
        schema: the root dataclass, whose keys are suggested.
        arguments: as typed; some errors do not say which of them they are about.
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
        return _unknown(_typed_key(found.group(1), arguments), schema)
    if "Config group override must be a string" in text:
        groups = {key.split(".")[0] for key in config_keys(schema) if "." in key} | {"scale", "experiment"}
        pattern = rf"=.*|\+?({'|'.join(groups)})=(null|true|false|[\d.]*)"
        typed = next((a for a in arguments if re.fullmatch(pattern, a)), "something else")
        return f"arguments must be key=value or group=option, got {typed}. A group takes the name of one of its files."
    if not any(isinstance(e, (HydraException, OmegaConfBaseException)) for e in chain):
        return None
    return _explain_syntax(chain, text) or _explain_key(text, schema) or _explain_value(chain, text, arguments)


def _explain_syntax(chain: list[BaseException], text: str) -> str | None:
    for link in chain:
        if isinstance(link, OverrideParseException):
            return f"arguments must be key=value or group=option, got {link.override}. {_SYNTAX}"
    found = re.search(r"Ambiguous value for argument '([^=]+)=(.*)'", text)
    found = found or re.search(r"Sweep parameters '([^=]+)=(.*)' requires --multirun", text)
    if found:
        key, value = found.groups()
        return f"{key} must be one value, or a list in brackets, got {value}. To run one job for each, add -m."
    return None


def _explain_key(text: str, schema: type) -> str | None:
    if found := re.search(r"Could not find '([\w/]+)/([^'/]+)'", text):
        group, word = found.groups()
        known = re.findall(r"^\t(\S+)$", text, re.MULTILINE)
        return f"{group} must be one of {' | '.join(known)}, got {word}.{did_you_mean(word, known)}"
    if found := re.search(r"'([^']+)'\. No match in the defaults list\.\n.*default list use (\S+)", text):
        key, typed = found.groups()
        return f"{key} must be added with a plus, got {typed[1:]}. Write {typed}."
    if found := re.search(r"Could not override '([^']+)'|Key '([^']+)' (?:is )?not in", text):
        full = re.search(r"full_key: (\S+)", text)
        key = full.group(1) if full else found.group(1) or found.group(2)
        parent, _, name = key.rpartition(".")
        if parent in config_keys(schema, kind=dict):
            return f"{parent} must be given new options with a plus, got {name}. Write +{key}=..."
        return _unknown(key, schema)
    return None


def _explain_value(chain: list[BaseException], text: str, arguments: Sequence[str]) -> str:
    # The innermost errors are templates ("Value '$VALUE' ..."): the first that knows its key is the one to read.
    link = next((e for e in chain if getattr(e, "full_key", None)), chain[0])
    said = next((line for line in str(link).splitlines() if line.strip()), type(link).__name__)
    key = getattr(link, "full_key", None)
    if not key:
        return said
    for pattern, condition in _CONDITIONS:
        if re.search(pattern, str(link), re.DOTALL):
            typed = re.search(r"Error merging override \+*([\w.]+)=(.*)", text)
            value = typed.group(2) if typed and typed.group(1) == key else show(getattr(link, "value", None))
            if found := re.search(r"Interpolation key '(.*)' not found", said):
                value = f"${{{found.group(1)}}}"
                # Where hydra's own keys use the value, they are the ones that fail first.
                key = next((a.partition("=")[0].lstrip("+") for a in arguments if value in a), key)
            if "mandatory" in said:
                value = "???"
            return f"{key} must be {condition}, got {value or 'nothing'}."
    return f"{key}: {said}"


def _unknown(key: str, schema: type) -> str:
    return f"{key} is not a key or group of the config.{did_you_mean(key, config_keys(schema))}"


def _typed_key(name: str, arguments: Sequence[str]) -> str:
    """The dotted key that was typed, for the one part of it that an error names."""
    keys = [match.group(1) for a in arguments if (match := re.match(r"\++([\w.]+)=", a))]
    return next((key for key in keys if name in key.split(".")), name)


def config_keys(schema: type, prefix: str = "", *, kind: type = object) -> list[str]:
    """Returns the dotted keys of a dataclass and of those inside it; with kind=dict, only those made as a dict.

    Example:
        >>> from toydepth.config import TrainConfig
        >>> "student.depths" in config_keys(TrainConfig)
        True
    """
    keys: list[str] = []
    for item in dataclasses.fields(schema):
        make: Any = item.default_factory if item.default_factory is not dataclasses.MISSING else None
        if kind in (object, make):
            keys.append(prefix + item.name)
        if isinstance(make, type) and dataclasses.is_dataclass(make):
            keys += config_keys(make, f"{prefix}{item.name}.", kind=kind)
    return keys

"""Layers of settings, the strongest first: command line, environment, file, defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import (
    PydanticBaseSettingsSource,
)

from streamwatch.settings.faults import Layer, SettingsError, is_secret, step_text
from streamwatch.settings.settings import Settings
from streamwatch.settings.yaml_text import MAX_CHARACTERS, MAX_DEPTH, YamlRefused, parse

ENV_PREFIX = "STREAMWATCH__"


class Environment(PydanticBaseSettingsSource):
    """`STREAMWATCH__KAFKA__CLIENT_ID=…`: every variable with the prefix, so that a typo is noticed."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(Settings)
        self.environ = environ

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """One top-level section."""
        del field
        return self().get(field_name), field_name, False

    def variables(self) -> dict[str, list[str]]:
        """Variable → path of the key it sets."""
        return {
            name: name.removeprefix(ENV_PREFIX).lower().split("__")
            for name in sorted(self.environ)
            if name.upper().startswith(ENV_PREFIX)
        }

    def __call__(self) -> dict[str, Any]:
        """All of them as nested mappings."""
        tree: dict[str, Any] = {}
        for name, path in self.variables().items():
            plant(tree, path, self.environ[name], f"environment variable {name}")
        return tree


def layers_of(
    file: Path | None,
    overrides: Sequence[str],
    environ: Mapping[str, str] | None,
    otherwise: Mapping[str, Any] | None,
) -> list[Layer]:
    """Layers of settings, the strongest first."""
    environment = Environment(os.environ if environ is None else environ)
    layers: list[Layer] = [_override(text) for text in reversed(overrides)]
    for name, path in environment.variables().items():
        tree: dict[str, Any] = {}
        plant(tree, path, environment.environ[name], f"environment variable {name}")
        layers.append(Layer(f"environment variable {name}", tree))
    if file is not None:
        layers.append(Layer(str(file), _read(file)))
    if otherwise is not None:
        layers.append(Layer("the command itself", dict(otherwise)))
    return layers


def merged(strongest_first: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One tree of several: mappings are merged key by key, anything else is replaced as a whole."""
    result: dict[str, Any] = {}
    for values in strongest_first:
        for key, value in values.items():
            if key not in result:
                result[key] = merged([value]) if isinstance(value, dict) else value
            elif isinstance(result[key], dict) and isinstance(value, dict):
                result[key] = merged([result[key], value])
    return result


def plant(tree: dict[str, Any], path: Sequence[str], text: str, origin: str) -> None:
    """Set one key of a nested mapping from text; `[…]` and `{…}` are YAML, anything else is itself."""
    shown = ".".join(step_text(step) for step in path[:MAX_DEPTH])
    if len(path) > MAX_DEPTH:
        raise SettingsError(f"{shown}… in {origin}: nested deeper than {MAX_DEPTH}")
    *sections, key = path
    node = tree
    for section in sections:
        node = node.setdefault(section, {})
        if not isinstance(node, dict):
            raise SettingsError(f"{shown} in {origin}: {step_text(section)} was already given as a value")
    structured = text.lstrip().startswith(("[", "{")) and (key == "secrets" or not is_secret(key))
    try:
        node[key] = parse(text) if structured else text
    except YamlRefused as error:
        raise SettingsError(f"{shown} in {origin}: {error}") from None


def _override(text: str) -> Layer:
    path, equals, value = text.partition("=")
    steps = path.strip().split(".")
    if not equals or not path.strip():
        # Whoever forgets the sign may have written the value next to the key.
        known = steps[0] in Settings.model_fields and all(re.fullmatch(r"[a-z_]+", step) for step in steps)
        hidden = not known or any(is_secret(step) for step in steps[:-1])
        raise SettingsError(
            f"--set {'(not shown)' if hidden else path.strip()}: expected section.key=value, "
            "such as kafka.bootstrap_servers=localhost:9092"
        )
    tree: dict[str, Any] = {}
    plant(tree, steps, value, "--set")
    return Layer("--set", tree)


def _read(file: Path) -> dict[str, Any]:
    try:
        if not file.is_file():
            raise SettingsError(
                f"{file}: no such file; `streamwatch config example > {file}` writes one to start from"
            )
        with file.open(encoding="utf-8") as opened:
            values = parse(opened.read(MAX_CHARACTERS + 1))
    except YamlRefused as error:
        raise SettingsError(f"{file}: {error}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file}: not UTF-8") from None
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}") from None
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise SettingsError(f"{file}: expected a mapping of sections such as kafka and topics")
    if values and not values.keys() & Settings.model_fields.keys():
        # Some other file, whose words may be secret, while an unknown key is named.
        known = ", ".join(sorted(Settings.model_fields))
        raise SettingsError(f"{file}: expected sections of {known}; got none of them")
    return values

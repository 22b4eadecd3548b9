"""Settings read, merged and checked."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    PydanticBaseSettingsSource,
)

from streamwatch.settings.faults import (
    LISTS_OF_SECRETS,
    Layer,
    SettingsError,
    describe,
    faults,
    is_secret,
    step_text,
)
from streamwatch.settings.settings import Settings

# YAML as settings need it: mappings, lists and plain values; nothing that refers, expands or constructs.
#
# Each event of a text is looked at before anything is built of it, so that what is refused costs nothing.
# An error names a line and a kind of fault, never a word of the text: the word may be a secret.


MAX_CHARACTERS = 131_072
MAX_DEPTH = 24
"""Mappings and lists inside each other; the settings need 8."""
MAX_VALUES = 20_000
"""Keys and plain values of a text; to read more takes seconds, and no settings have a tenth of them."""
_QUOTED = re.compile(r"'([^']*)'")
_HARMLESS = re.compile(r"<[a-z ]+>|[,\]}:?-]")


class YamlRefused(ValueError):  # noqa: N818 - it names what is the case
    """The text is no YAML, or more of it than settings need; the message holds nothing of the text."""


def parse(text: str) -> Any:
    """Parse a text.

    Raises
    ------
    YamlRefused
        Syntax, aliases, anchors, tags, a key twice in one mapping (YAML 1.2, §3.2.1.1: of two `monitors`
        sections one would be ignored), nesting beyond `MAX_DEPTH`, or more than `MAX_VALUES` or
        `MAX_CHARACTERS`.
    """
    if len(text) > MAX_CHARACTERS:
        raise YamlRefused(f"longer than {MAX_CHARACTERS} characters")
    try:
        return yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a safe loader, narrowed
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        raise YamlRefused(f"not valid YAML: {_problem(error)}{_at(mark)}") from None
    except (ValueError, OverflowError) as error:
        if isinstance(error, YamlRefused):
            raise
        raise YamlRefused("not valid YAML: a number or a date that does not exist") from None


class _PlainLoader(yaml.SafeLoader):
    """A safe loader that refuses what refers, expands or constructs as soon as it comes to it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._values = 0

    def get_event(self) -> Any:
        event = super().get_event()
        if isinstance(event, yaml.AliasEvent):
            raise YamlRefused(
                f"aliases are not read: put a value that begins with * in quotes{_at(event.start_mark)}"
            )
        if getattr(event, "anchor", None) is not None:
            raise YamlRefused(
                f"anchors are not read: put a value that begins with & in quotes{_at(event.start_mark)}"
            )
        if getattr(event, "tag", None) is not None:
            raise YamlRefused(
                f"tags are not read: put a value that begins with ! in quotes{_at(event.start_mark)}"
            )
        if isinstance(event, yaml.CollectionStartEvent):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise YamlRefused(f"nested deeper than {MAX_DEPTH}{_at(event.start_mark)}")
        elif isinstance(event, yaml.CollectionEndEvent):
            self._depth -= 1
        elif isinstance(event, yaml.ScalarEvent):
            self._values += 1
            if self._values > MAX_VALUES:
                raise YamlRefused(f"more than {MAX_VALUES} values{_at(event.start_mark)}")
        return event

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - theirs
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise YamlRefused(f"a key stands twice in one mapping{_at(key.start_mark)}")
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def _problem(error: yaml.YAMLError) -> str:
    """The library's own words where they quote signs of YAML only."""
    problem = str(getattr(error, "problem", None) or "")
    if problem and all(_HARMLESS.fullmatch(quoted) for quoted in _QUOTED.findall(problem)):
        return problem
    return "a character or a word that is not allowed there; quotes may help"


def _at(mark: Any) -> str:
    return f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""


# Layers of settings, the strongest first: command line, environment, file, defaults.


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
    structured = text.lstrip().startswith(("[", "{")) and (key in LISTS_OF_SECRETS or not is_secret(key))
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


def load(
    file: Path | None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    otherwise: Mapping[str, Any] | None = None,
) -> Settings:
    """Read, merge and check the settings.

    Parameters
    ----------
    file
        The YAML file; None where environment and command line say everything.
    overrides
        `section.key=value`, strongest; a value starting with `[` or `{` is YAML.
    environ
        The environment; the process's own by default.
    otherwise
        Values of keys that are set nowhere, for commands that need no Kafka.

    Raises
    ------
    SettingsError
        Naming every faulty key, its origin, what was expected and what was found.
    """
    layers = layers_of(file, overrides, environ, otherwise)
    try:
        return Settings(**merged(layer.values for layer in layers))
    except ValidationError as error:
        raise describe(error, Settings, layers) from None


def load_used(
    file: Path | None,
    overrides: Sequence[str],
    used: Collection[str],
    otherwise: Mapping[str, Any],
    environ: Mapping[str, str] | None = None,
) -> tuple[Settings, Sequence[str]]:
    """Read settings of which only some sections are used: faults in others are no errors.

    Parameters
    ----------
    file, overrides, environ
        As of `load`.
    used
        Names of the sections that are used.
    otherwise
        Values of keys that are set nowhere, and of a faulty section that is not used; other keys have their
        defaults.

    Returns
    -------
    tuple
        The settings, and the lines of the faults that were passed over.

    Raises
    ------
    SettingsError
        Naming every faulty key of the sections used, and every key that is no section: it may be one of those
        that are used, misspelt.
    """
    layers = layers_of(file, overrides, environ, otherwise)
    try:
        return Settings(**merged(layer.values for layer in layers)), ()
    except ValidationError as error:
        found = faults(error, Settings, layers)
    passed_over = Settings.model_fields.keys() - set(used)
    if concerned := [line for section, line in found if section not in passed_over]:
        raise SettingsError("\n".join(concerned))
    faulty = {section for section, _ in found}
    kept = [{name: v for name, v in layer.values.items() if name not in faulty} for layer in layers]
    settings = Settings(**merged([*kept, {name: v for name, v in otherwise.items() if name in faulty}]))
    return settings, [line for _, line in found]

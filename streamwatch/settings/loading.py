"""Loading of the settings: file, environment and overrides are read, merged and checked."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

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

# A subset of YAML: mappings, lists and plain values, without aliases, anchors and tags.
#
# A value without quotes is a whole number, true or false only in the notation of JSON, and never a date:
# YAML 1.1 reads the class `no` as false and the class `010` as 8.
#
# Each event of the parser is checked before a value is built from it, so hostile texts are refused early.
# Errors name a line and a kind of fault, but quote nothing of the text, which may be a secret.


MAX_CHARACTERS = 131_072
MAX_DEPTH = 24
"""Most nested mappings and lists; settings need 8."""
MAX_VALUES = 20_000
"""Most keys and plain values of a text: parsing more takes seconds, and settings have less than 2,000."""
_QUOTED = re.compile(r"'([^']*)'")
_HARMLESS = re.compile(r"<[a-z ]+>|[,\]}:?-]")


class YamlRefused(ValueError):  # noqa: N818 - the name says what happened
    """The text is not valid YAML, or not in the allowed subset; the message quotes nothing of the text."""


def parse(text: str) -> Any:
    """Parse a text in the allowed subset of YAML.

    Raises
    ------
    YamlRefused
        For faulty syntax, aliases, anchors, tags, a repeated key in a mapping (YAML 1.2, §3.2.1.1: one of two
        `monitors` sections would be ignored), nesting beyond `MAX_DEPTH`, a text beyond `MAX_VALUES` or
        `MAX_CHARACTERS`, or half of a surrogate pair, which no text in UTF-8 has.
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
        raise YamlRefused("not valid YAML: a number that is too long") from None


_NARROWED: Final[Mapping[str, re.Pattern[str] | None]] = {
    "tag:yaml.org,2002:bool": re.compile(r"(?:true|false)\Z"),
    "tag:yaml.org,2002:int": re.compile(r"-?(?:0|[1-9][0-9]*)\Z"),
    "tag:yaml.org,2002:timestamp": None,
}
"""Types whose plain notation is narrower than in YAML 1.1, with the whole of it; None: there is none."""


_TEXT: Final = "tag:yaml.org,2002:str"
_TEXT_AS_KEYS: Final = frozenset({"tag:yaml.org,2002:bool", "tag:yaml.org,2002:int"})
"""Types that are texts as keys: the classes `true` and `1` would be one key."""


class _PlainLoader(yaml.SafeLoader):
    """Safe loader that refuses everything outside of the allowed subset at the parser's first event of it."""

    yaml_implicit_resolvers: dict[str, Any] = {  # noqa: RUF012 - an attribute of the library's class
        first: [
            (tag, _NARROWED.get(tag, pattern))
            for tag, pattern in resolvers
            if _NARROWED.get(tag, pattern) is not None
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

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
            if not _is_unicode(event.value):
                raise YamlRefused(
                    f"half of a surrogate pair, write the character itself{_at(event.start_mark)}"
                )
        return event

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - theirs
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.tag in _TEXT_AS_KEYS:
                    key.tag = _TEXT
                if (key.tag, key.value) in seen:
                    raise YamlRefused(f"a key stands twice in one mapping{_at(key.start_mark)}")
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def _is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _problem(error: yaml.YAMLError) -> str:
    """Return the library's message if it quotes only punctuation of YAML, else a general one."""
    problem = str(getattr(error, "problem", None) or "")
    if "'\\t'" in problem:
        return "a tab; lines are indented with spaces"
    if problem and all(_HARMLESS.fullmatch(quoted) for quoted in _QUOTED.findall(problem)):
        return problem
    return "a character or a word that is not allowed there; quotes may help"


def _at(mark: Any) -> str:
    return f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""


ENV_PREFIX = "STREAMWATCH__"
_ONE_UNDERSCORE = re.compile(rf"STREAMWATCH_((?:{'|'.join(Settings.model_fields)})__.+)", re.IGNORECASE)
"""Name of a variable that sets nothing, as a second underscore is missing."""


def variables(environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the path of the key that each variable with the prefix sets, by name of the variable.

    `STREAMWATCH__KAFKA__CLIENT_ID` sets `kafka.client_id`; misspelt variables are included, to be refused.
    """
    return {
        name: name.removeprefix(ENV_PREFIX).lower().split("__")
        for name in sorted(environ)
        if name.upper().startswith(ENV_PREFIX)
    }


def layers_of(
    file: Path | None,
    overrides: Sequence[str],
    environ: Mapping[str, str] | None,
    otherwise: Mapping[str, Any] | None,
) -> list[Layer]:
    """Read the layers of settings, the strongest first: overrides, environment, file, `otherwise`."""
    environ = os.environ if environ is None else environ
    if wrong := next(filter(None, map(_ONE_UNDERSCORE.fullmatch, sorted(environ))), None):
        raise SettingsError(
            f"environment variable {wrong.group()}: two underscores follow STREAMWATCH: "
            f"expected {ENV_PREFIX}{wrong.group(1)}"
        )
    layers: list[Layer] = [_override(text) for text in reversed(overrides)]
    for name, path in variables(environ).items():
        tree: dict[str, Any] = {}
        plant(tree, path, environ[name], f"environment variable {name}")
        layers.append(Layer(f"environment variable {name}", tree))
    if file is not None:
        layers.append(Layer(str(file), _read(file)))
    if otherwise is not None:
        layers.append(Layer("the command itself", dict(otherwise)))
    return layers


def merged(strongest_first: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge trees: mappings key by key; of other values the first, strongest one counts."""
    result: dict[str, Any] = {}
    for values in strongest_first:
        for key, value in values.items():
            if key not in result:
                result[key] = merged([value]) if isinstance(value, dict) else value
            elif isinstance(result[key], dict) and isinstance(value, dict):
                result[key] = merged([result[key], value])
    return result


def plant(tree: dict[str, Any], path: Sequence[str], text: str, origin: str) -> None:
    """Set the key at a path of a nested mapping to a text, which is parsed as YAML if it begins with [ or {.

    Raises
    ------
    SettingsError
        If the text is not UTF-8, the YAML is faulty, or a step of the path is a value; names `origin`.
    """
    shown = ".".join(step_text(step) for step in path[:MAX_DEPTH])
    if len(path) > MAX_DEPTH:
        raise SettingsError(f"{shown}… in {origin}: nested deeper than {MAX_DEPTH}")
    if not _is_unicode(text):  # bytes of the command line or the environment that are no UTF-8
        raise SettingsError(f"{shown} in {origin}: not UTF-8")
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
        # Without the sign, the text may contain a value, which may be a secret.
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
        if file.is_dir():
            raise SettingsError(f"{file}: expected a file, got a directory")
        if not file.exists():
            raise SettingsError(
                f"{file}: no such file; `streamwatch config example > {file}` writes one to start from"
            )
        with file.open(encoding="utf-8") as opened:
            values = parse(opened.read(MAX_CHARACTERS + 1))
    except YamlRefused as error:
        raise SettingsError(f"{file}: {_other_format(file) or error}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file}: not UTF-8") from None
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}") from None
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        expected = _other_format(file) or "expected a mapping of sections such as kafka and topics"
        raise SettingsError(f"{file}: {expected}")
    if values and not values.keys() & Settings.model_fields.keys():
        # Probably another kind of file, whose keys may be secret.
        known = ", ".join(sorted(Settings.model_fields))
        raise SettingsError(f"{file}: expected sections of {known}; got none of them")
    return values


def _other_format(file: Path) -> str:
    """Describe what is expected instead of the format that a file's name ends in; empty for YAML and JSON."""
    got = _OTHER_FORMATS.get(file.suffix.lower())
    return "" if got is None else f"expected YAML, got {got}; `streamwatch config example` shows it"


_OTHER_FORMATS: Final = {".toml": "TOML", ".ini": "an INI file", ".properties": "a file of properties"}


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
        The YAML file; None: only environment and overrides.
    overrides
        Texts `section.key=value`, the strongest layer; a value beginning with `[` or `{` is YAML.
    environ
        The environment; None: that of the process.
    otherwise
        Values of keys that are set nowhere, for commands that need no Kafka.

    Raises
    ------
    SettingsError
        If a key is faulty; names every such key, its origin, and the expected and the found value.
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
) -> tuple[Settings, Sequence[str]]:
    """Load settings for a command that uses only some sections: faults in other sections are no errors.

    Parameters
    ----------
    file, overrides
        As of `load`.
    used
        Names of the sections that are used.
    otherwise
        Values of keys that are set nowhere, and those of faulty sections that are not used; their other keys
        have the defaults.

    Returns
    -------
    tuple[Settings, Sequence[str]]
        The settings, and the lines of the ignored faults.

    Raises
    ------
    SettingsError
        If a key of a used section is faulty, or a top-level key is unknown, as it may be a misspelt section.
    """
    layers = layers_of(file, overrides, None, otherwise)
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

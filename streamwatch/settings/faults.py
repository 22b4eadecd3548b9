"""Errors of the settings: a line for each fault with key, origin, expected and found value."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from streamwatch.edge.receivers import KINDS as RECEIVERS
from streamwatch.settings.estimators import DETECTOR_KINDS, FORGETTING_KINDS, OneOf, OneOrMore
from streamwatch.settings.field_forms import WRITTEN_AS
from streamwatch.settings.monitors import BY_COSTS, BY_NAME

RENAMED: Final[Mapping[str, str]] = {
    "alerts.alarm_ttl": "alerts.resolve_timeout",
    "alerts.max_alarm_age": "alerts.stale_after",
    "alerts.outlets": "alerts.receivers",
    "alerts.receivers.repeat": "alerts.receivers.repeat_interval",
    "join.max_tombstones": "join.max_dedup_entries",
    "join.tombstone_horizon": "join.dedup_horizon",
    "kafka.on_loss": "kafka.on_data_loss",
}
"""Old key, which no longer works → new key, both from the root; indices of lists are left out."""

REMOVED: Final[Mapping[str, str]] = {
    "kafka.watermark_grace": "time.settle and time.max_hold_back set how long to wait for partitions",
    "time.max_disorder": "records are evaluated in one order; time.settle sets how long to wait for others",
    "state.cache_entries": "state.join_memory_megabytes sets how many entries of the join stay in memory",
    "time.max_skew": "time.max_future sets how far ahead a timestamp may be",
}
"""Old key, which no longer works → text on what there is instead."""


def replacement_of(path: str) -> str | None:
    """Describe what replaced a key of earlier versions; None for a key that never existed.

    Parameters
    ----------
    path
        Dotted path of the key from the root, without indices of lists.
    """
    if (new := RENAMED.get(path)) is not None:
        return f"renamed: it is now called {new}"
    if (instead := REMOVED.get(path)) is not None:
        return f"no longer a setting: {instead}"
    return None


_FIELDS_OF_FORMS = ("id", "model", "prediction", "label", "scores")
"""Keys of a mapping whose values have one of several forms (`WRITTEN_AS`)."""
LISTS_OF_SECRETS = frozenset(
    key.name for kind in RECEIVERS.values() for key in kind.keys if key.holds == "secrets"
)
SECRETS = (
    *("password", "secret", "token", "url"),
    *LISTS_OF_SECRETS,
    *(key.name for kind in RECEIVERS.values() for key in kind.keys if key.holds == "secret"),
)
"""Parts of the names of keys whose values may be, or contain, a secret."""


REQUIRED: Final = "required, but set nowhere"
"""Fault of a key that has no default."""


class SettingsError(Exception):
    """The settings cannot be used; the text names every fault, one a line."""


class Layer(typing.NamedTuple):
    """Settings from one origin: a file, the environment or the command line."""

    origin: str
    values: dict[str, Any]

    def origin_of(self, path: Sequence[str | int]) -> str | None:
        """Return the origin if this layer sets the key, else None."""
        node: Any = self.values
        for step in path:
            if isinstance(node, dict) and step == 0:
                continue  # a mapping instead of a list of one
            try:
                node = node[step]
            except (KeyError, IndexError, TypeError):
                # The path may lead beyond a value in short form, such as `fading` or a topic's name.
                return None if isinstance(node, dict) else self.origin
        return self.origin


def describe(error: ValidationError, root: type[BaseModel], layers: Sequence[Layer]) -> SettingsError:
    """Make an error with a line for each fault: `monitors.forgetting[0].alpha in streamwatch.yaml: …`."""
    return SettingsError("\n".join(line for _, line in faults(error, root, layers)))


def faults(
    error: ValidationError, root: type[BaseModel], layers: Sequence[Layer]
) -> Sequence[tuple[str, str]]:
    """List every fault: its top-level section ("" for none), and its line as in `describe`."""
    details = error.errors()
    # pydantic also reports a list with faulty entries as too short.
    above = {detail["loc"][:depth] for detail in details for depth in range(len(detail["loc"]))}
    kept = [detail for detail in details if detail["type"] != "too_short" or detail["loc"] not in above]
    return [(str(detail["loc"][0]) if detail["loc"] else "", _line(detail, root, layers)) for detail in kept]


def _line(detail: ErrorDetails, root: type[BaseModel], layers: Sequence[Layer]) -> str:
    loc = tuple(detail["loc"])
    if loc[-1:] == ("[key]",):  # pydantic's mark of a faulty key: the fault is of the mapping
        loc = loc[:-2]
    raw = _without_tags(loc, keep_field=True)
    shown = _without_tags(loc, keep_field=False)
    path = dotted(shown)
    if detail["type"] == "missing":
        looked = ", ".join(layer.origin for layer in layers)
        return f"{path}: {REQUIRED} ({looked or 'no settings were given'})"
    origin = next((found for layer in layers if (found := layer.origin_of(raw)) is not None), None)
    where = f"{path} in {origin}" if origin else path
    return f"{where}: {_message(detail, root, raw)}"


def _message(detail: ErrorDetails, root: type[BaseModel], path: Sequence[str | int]) -> str:
    context = detail.get("ctx", {})
    got = _shown(detail["input"], root, path)
    match detail["type"]:
        case "extra_forbidden":
            message = _unknown_key(root, path)
        case "value_error":
            message = str(context["error"]).replace(repr(detail["input"]), got)
        case "union_tag_invalid" | "union_tag_not_found":
            message = f"expected one of {', '.join(_kinds(path))}, got {got}"
        case "literal_error":
            message = f"expected {context['expected']}, got {got}"
        case "model_type" | "model_attributes_type" | "dict_type":
            message = f"expected a mapping, got {got}"
        case "string_pattern_mismatch":
            message = (
                f"expected letters, digits, '.', '_' and '-' only{_at_most(context['pattern'])}, got {got}"
            )
        case "string_type" | "path_type":
            quotes = "" if detail["input"] is None else "; put it in quotes"
            message = (
                f"expected {'a text' if detail['type'] == 'string_type' else 'a path'}, got {got}{quotes}"
            )
        case "tuple_type" | "list_type":
            message = f"expected a list, each entry beginning with a dash, got {got}"
        case "too_short" if context["min_length"] > 1:
            message = f"expected at least {context['min_length']} entries, got {context['actual_length']}"
        case "too_short":
            message = "must not be empty"
        case str():  # any other type: pydantic's message
            message = f"{detail['msg'][0].lower()}{detail['msg'][1:]}, got {got}"
    return message


def _at_most(pattern: str) -> str:
    """Say how long a text of a pattern such as `^[a-z]{1,64}$` may be; empty if it has no bound."""
    bound = re.search(r"\{\d+,(\d+)\}", pattern)
    return f", at most {bound.group(1)}" if bound else ""


def _unknown_key(root: type[BaseModel], path: Sequence[str | int]) -> str:
    named = [step for step in path if isinstance(step, str)]
    if (replacement := replacement_of(".".join(named))) is not None:
        return replacement
    *section, key = named
    expected = sorted(_keys(root, path[:-1]))
    if re.fullmatch(r"\d+|\w+\[\d+\]", key):
        return "unknown key; entries of a list are not set one by one: set the whole list, [{…}, …]"
    near = difflib.get_close_matches(key, expected, n=1, cutoff=0.5)
    if not difflib.get_close_matches(key, near, cutoff=0.75):
        near = _elsewhere(root, section, key) or near
    if near:
        return f"unknown key; did you mean {' or '.join(map(repr, near))}?"
    return f"unknown key; known: {', '.join(expected)}"


def _elsewhere(root: type[BaseModel], section: list[str], key: str) -> Sequence[str]:
    """List keys of this name, or nearly, that are elsewhere; [] for many.

    The nearest are taken: below this section, else below the one around it, and so on. Of other sections of
    the root those of one alone: what several have, such as `topic`, tells nothing of what is meant.
    """
    paths = [path for path in _paths_below(root) if path != section[: len(path)]]
    names = difflib.get_close_matches(key, {path[-1] for path in paths}, n=1, cutoff=0.8)
    named = [path for path in paths if path[-1] in names or "_".join(path) == key]
    around = (
        [path for path in named if path[:depth] == section[:depth]] for depth in range(len(section), 0, -1)
    )
    found = next(filter(None, around), named)
    if section and found is named:
        found = [path for path in named if len(path) <= _MOST_STEPS]
        if len({path[0] for path in found}) > 1:
            return []
    return (
        [".".join(path) for path in sorted(found, key=lambda path: (len(path), path))]
        if len(found) <= _MOST_SUGGESTED
        else []
    )


def _kinds(path: Sequence[str | int]) -> Sequence[str]:
    return FORGETTING_KINDS if "forgetting" in path else DETECTOR_KINDS


_MOST_SUGGESTED = 3
"""Most keys of other sections that an error suggests for an unknown one."""
_MOST_STEPS = 2
"""Most steps of a suggested key of another section: `join.horizon`, and not the parameter of a detector."""
_MOST_SHOWN = 200
"""Most characters of a value that an error repeats."""


def _shown(value: object, root: type[BaseModel], path: Sequence[str | int]) -> str:
    """Show a value as written; only its kind (a mapping, a text, ...) if it may be or contain a secret."""
    keys = [step for step in path if isinstance(step, str)]
    if any(is_secret(key) for key in keys) or _secret_below(root, keys) or _secret_inside(value):
        kinds: dict[type, str] = {dict: "a mapping", list: "a list", str: "a text", type(None): "nothing"}
        return f"{kinds.get(type(value), 'a value')} (not shown)"
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _secret_below(root: type[BaseModel], keys: Sequence[str]) -> bool:
    """Return whether a key at or below this path is a secret, so that a misplaced value may be one."""
    if not keys:
        return True
    return any(
        _mentions_secret(annotation)
        for model in _models_at(root, keys[:-1])
        if keys[-1] in model.model_fields
        for annotation in _annotations(model, keys[-1])
    )


def _mentions_secret(annotation: Any) -> bool:
    if annotation is SecretStr:
        return True
    return any(
        _mentions_secret(each)
        for model in _models(annotation)
        for name in model.model_fields
        for each in _annotations(model, name)
    ) or any(_mentions_secret(part) for part in typing.get_args(annotation))


def _secret_inside(value: object) -> bool:
    """Return whether a value contains a key or a text that looks like a secret under a wrong key."""
    if isinstance(value, dict):
        entries: dict[object, object] = value
        return any(is_secret(str(key)) or _secret_inside(key) for key in entries) or any(
            _secret_inside(inner) for inner in entries.values()
        )
    if isinstance(value, list | tuple):
        several: Sequence[object] = value
        return any(_secret_inside(inner) for inner in several)
    return isinstance(value, str) and ("://" in value or value.startswith("whsec_"))


def is_secret(key: str) -> bool:
    """Return whether the value of a key must never be shown; paths of files with secrets may be."""
    public = key.endswith(("_file", "_files")) or key == "external_url"
    return any(word in key for word in SECRETS) and not public


def dotted(path: Sequence[str | int]) -> str:
    """Write a path: `("monitors", "forgetting", 0, "alpha")` → `monitors.forgetting[0].alpha`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step_text(step)}" if text else step_text(step)
    return text


def step_text(key: object) -> str:
    """Show a key as written if it looks like one; hide other texts, such as a URL written without `url:`."""
    text = str(key)
    return text if re.fullmatch(r"[\w.\-*? ]{1,64}", text) else "(not shown)"


def _without_tags(loc: Sequence[str | int], *, keep_field: bool) -> tuple[str | int, ...]:
    """Return the path of a value in the file, without the tags of unions that pydantic adds to it.

    The only key of an entry such as `fading: {alpha: …}` equals the tag; it is kept only with `keep_field`.
    """
    path: list[str | int] = []
    steps = list(loc)
    while steps:
        step = steps.pop(0)
        if step in (BY_NAME, BY_COSTS):
            continue
        path.append(step)
        field = path[-2] if isinstance(step, int) and len(path) > 1 else step  # or one of a list of paths
        if field in _FIELDS_OF_FORMS and steps and steps[0] in WRITTEN_AS:
            steps.pop(0)
        if isinstance(step, int) and steps and _is_tag(str(steps[0])):
            tag = steps.pop(0)
            if steps and steps[0] == tag and not keep_field:
                steps.pop(0)
    return tuple(path)


def _is_tag(step: str) -> bool:
    return step.removesuffix(" by name") in {*FORGETTING_KINDS, *DETECTOR_KINDS}


def _keys(root: type[BaseModel], path: Sequence[str | int]) -> set[str]:
    """Return the known keys of the section at a path."""
    here = _models_at(root, [step for step in path if isinstance(step, str)])
    return {name for model in here for name in model.model_fields}


def _paths_below(section: type[BaseModel], above: list[str] | None = None) -> Iterator[list[str]]:
    """Iterate over the paths of all keys of a section and of those below it, without indices of lists."""
    for name in section.model_fields:
        path = [*(above or []), name]
        yield path
        below = {model for annotation in _annotations(section, name) for model in _models(annotation)}
        yield from {".".join(found): found for model in below for found in _paths_below(model, path)}.values()


def _models_at(root: type[BaseModel], keys: Sequence[str]) -> list[type[BaseModel]]:
    """Return the sections that are possible at a path of keys, through all alternatives of unions."""
    here: list[type[BaseModel]] = [root]
    for key in keys:
        here = [
            model
            for parent in here
            if key in parent.model_fields
            for annotation in _annotations(parent, key)
            for model in _models(annotation)
        ]
    return here


def _annotations(model: type[BaseModel], key: str) -> tuple[Any, ...]:
    """Return the annotation of a key and its metadata."""
    return (model.model_fields[key].annotation, *model.model_fields[key].metadata)


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Return every section that an annotation mentions."""
    if isinstance(annotation, OneOf):
        return list(annotation.written.values())
    if isinstance(annotation, OneOrMore):
        return [annotation.section]
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [model for part in typing.get_args(annotation) for model in _models(part)]

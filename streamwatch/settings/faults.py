"""What is wrong with the settings, where it stands, and what was expected instead."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from streamwatch.edge.receivers import KINDS as RECEIVERS
from streamwatch.settings.monitors import (
    BY_COSTS,
    BY_NAME,
    DETECTOR_KINDS,
    FORGETTING_KINDS,
    OneOf,
    OneOrMore,
)
from streamwatch.settings.topics import WRITTEN_AS

# Keys that settings no longer have. An error names what replaced the key; no old key works.


RENAMED: Final[Mapping[str, str]] = {
    "alerts.alarm_ttl": "alerts.resolve_timeout",
    "alerts.max_alarm_age": "alerts.stale_after",
    "alerts.outlets": "alerts.receivers",
    "alerts.receivers.repeat": "alerts.receivers.repeat_interval",
    "join.max_tombstones": "join.max_dedup_entries",
    "join.tombstone_horizon": "join.dedup_horizon",
    "kafka.on_loss": "kafka.on_data_loss",
}
"""Old key → new key, both from the root; indices of lists are left out."""

REMOVED: Final[Mapping[str, str]] = {
    "kafka.watermark_grace": "time.settle and time.max_hold_back set how long to wait for partitions",
    "time.max_disorder": "records are evaluated in one order; time.settle sets how long to wait for others",
    "state.cache_entries": "state.join_memory_megabytes sets how many entries of the join stay in memory",
    "time.max_skew": "time.max_future sets how far ahead a timestamp may be",
}
"""Old key → what there is instead."""


def replacement_of(path: str) -> str | None:
    """Return what replaced a key of earlier versions; None for a key that never existed.

    Parameters
    ----------
    path
        From the root, with dots, without indices of lists.
    """
    if (new := RENAMED.get(path)) is not None:
        return f"renamed: it is now called {new}"
    if (instead := REMOVED.get(path)) is not None:
        return f"no longer a setting: {instead}"
    return None


_FIELDS_OF_FORMS = ("id", "model", "prediction", "label", "scores")
"""Keys of a mapping whose content is written in one of several forms."""
LISTS_OF_SECRETS = frozenset(
    key.name for kind in RECEIVERS.values() for key in kind.keys if key.holds == "secrets"
)
SECRETS = (
    *("password", "secret", "token", "url"),
    *LISTS_OF_SECRETS,
    *(key.name for kind in RECEIVERS.values() for key in kind.keys if key.holds == "secret"),
)
"""Parts of the names of keys whose contents may be, or hold, a secret."""


class SettingsError(Exception):
    """The settings cannot be used; its text names every fault, one a line."""


class Layer(typing.NamedTuple):
    """Settings from one origin: a file, the environment or the command line."""

    origin: str
    values: dict[str, Any]

    def origin_of(self, path: Sequence[str | int]) -> str | None:
        """Return the origin if this layer sets the key, else None."""
        node: Any = self.values
        for step in path:
            if isinstance(node, dict) and step == 0:
                continue  # one mapping stands for a list of one
            try:
                node = node[step]
            except (KeyError, IndexError, TypeError):
                # A value in short form (`fading`, a topic's name) ends the path where it stands.
                return None if isinstance(node, dict) else self.origin
        return self.origin


def describe(error: ValidationError, root: type[BaseModel], layers: Sequence[Layer]) -> SettingsError:
    """Every fault as `monitors.forgetting[0].alpha in streamwatch.yaml: fading factor must be …`."""
    return SettingsError("\n".join(line for _, line in faults(error, root, layers)))


def faults(
    error: ValidationError, root: type[BaseModel], layers: Sequence[Layer]
) -> Sequence[tuple[str, str]]:
    """List every fault: the top-level key it stands under ("" for none), and its line as of `describe`."""
    details = error.errors()
    # A list with faulty entries counts as too short, too: that is no news.
    above = {detail["loc"][:depth] for detail in details for depth in range(len(detail["loc"]))}
    news = [detail for detail in details if detail["type"] != "too_short" or detail["loc"] not in above]
    return [(str(detail["loc"][0]) if detail["loc"] else "", _line(detail, root, layers)) for detail in news]


def _line(detail: ErrorDetails, root: type[BaseModel], layers: Sequence[Layer]) -> str:
    loc = tuple(detail["loc"])
    raw = _without_tags(loc, keep_field=True)
    shown = _without_tags(loc, keep_field=False)
    path = dotted(shown)
    if detail["type"] == "missing":
        looked = ", ".join(layer.origin for layer in layers)
        return f"{path}: required, but set nowhere ({looked or 'no settings were given'})"
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
        case "tuple_type" | "list_type":
            message = f"expected a list, each entry beginning with a dash, got {got}"
        case "too_short" if context["min_length"] > 1:
            message = f"expected at least {context['min_length']} entries, got {context['actual_length']}"
        case "too_short":
            message = "must not be empty"
        case str():  # of any other type, in pydantic's words
            message = f"{detail['msg'][0].lower()}{detail['msg'][1:]}, got {got}"
    return message


def _unknown_key(root: type[BaseModel], path: Sequence[str | int]) -> str:
    if (replacement := replacement_of(".".join(step for step in path if isinstance(step, str)))) is not None:
        return replacement
    expected = sorted(_keys(root, path[:-1]))
    near = difflib.get_close_matches(str(path[-1]), expected, n=1, cutoff=0.5)
    return f"unknown key; did you mean {near[0]!r}?" if near else f"unknown key; known: {', '.join(expected)}"


def _kinds(path: Sequence[str | int]) -> Sequence[str]:
    return FORGETTING_KINDS if "forgetting" in path else DETECTOR_KINDS


_MOST_SHOWN = 200
"""Characters of a value that are repeated at most."""


def _shown(value: object, root: type[BaseModel], path: Sequence[str | int]) -> str:
    """A value as it was written, or only of what kind it is where it may be or hold a secret."""
    keys = [step for step in path if isinstance(step, str)]
    if any(is_secret(key) for key in keys) or _secret_below(root, keys) or _secret_inside(value):
        kinds: dict[type, str] = {dict: "a mapping", list: "a list", str: "a text", type(None): "nothing"}
        return f"{kinds.get(type(value), 'a value')} (not shown)"
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _secret_below(root: type[BaseModel], keys: Sequence[str]) -> bool:
    """Tell whether the settings have a secret under this path, so that a value there may be one."""
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
    """Tell whether a key or a text in a value looks like a secret that was written under the wrong key."""
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
    """Tell whether what stands under this key must never be repeated; paths to files of secrets may."""
    public = key.endswith(("_file", "_files")) or key == "external_url"
    return any(word in key for word in SECRETS) and not public


def dotted(path: Sequence[str | int]) -> str:
    """`("monitors", "forgetting", 0, "alpha")` is `monitors.forgetting[0].alpha`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step_text(step)}" if text else step_text(step)
    return text


def step_text(key: object) -> str:
    """A key as it was written, if it looks like one: a URL without `url:` stands where a key does."""
    text = str(key)
    return text if re.fullmatch(r"[\w.\-*? ]{1,64}", text) else "(not shown)"


def _without_tags(loc: Sequence[str | int], *, keep_field: bool) -> tuple[str | int, ...]:
    """Where the value stands in the file; pydantic adds the union's tag after a list index.

    An entry is written `fading: {alpha: …}`: its only key repeats the tag, and what is shown leaves it out.
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
    """Keys known where the path ends."""
    here = _models_at(root, [step for step in path if isinstance(step, str)])
    return {name for model in here for name in model.model_fields}


def _models_at(root: type[BaseModel], keys: Sequence[str]) -> list[type[BaseModel]]:
    """Sections that may stand where the path ends, whatever union stands on the way."""
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
    """Return the annotation of a key, and its metadata."""
    return (model.model_fields[key].annotation, *model.model_fields[key].metadata)


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Every model an annotation mentions."""
    if isinstance(annotation, OneOf):
        return list(annotation.written.values())
    if isinstance(annotation, OneOrMore):
        return [annotation.section]
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [model for part in typing.get_args(annotation) for model in _models(part)]

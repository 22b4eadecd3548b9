"""YAML as settings need it: mappings, lists and plain values; nothing that refers, expands or constructs.

Each event of a text is looked at before anything is built of it, so that what is refused costs nothing. An
error names a place and a kind of fault, never a word of the text: the word may be a secret.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

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

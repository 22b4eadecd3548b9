"""Configuration of the estimators, in a form that a later version can read."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

from streamwatch.core.estimators import registers
from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.specs import (
    AdwinSpec,
    ComparisonSpec,
    DriftWeightedSpec,
    FadingSpec,
    LandmarkSpec,
    ModelDetectors,
    MonitorsSpec,
    SlidingSpec,
    UtilitySpec,
)

_KIND = "of"
_MONITORS = MonitorsSpec.__name__


class DocumentError(ValueError):
    """The document does not describe a configuration of estimators."""


def known_specs() -> dict[str, type[Any]]:
    """Classes of estimator specifications, by their name in documents."""
    own = (
        AdwinSpec,
        ComparisonSpec,
        DriftWeightedSpec,
        FadingSpec,
        LandmarkSpec,
        ModelDetectors,
        SlidingSpec,
        UtilitySpec,
    )
    by_name = (*own, *(kind.spec for kind in (*KINDS, *registers.KINDS)))
    return {spec.__name__: spec for spec in by_name}


def document_of(spec: MonitorsSpec) -> bytes:
    """Encode a specification as a document."""
    return msgspec.json.encode(_plain(spec))


def spec_of(document: bytes) -> tuple[MonitorsSpec, tuple[str, ...]]:
    """Decode a document: the specification, and its estimators that this version does not have.

    An estimator with a parameter that no longer exists is one of the latter; new parameters get defaults.

    Raises
    ------
    DocumentError
        If the document does not describe a configuration of estimators.
    """
    try:
        plain = msgspec.json.decode(document)
        if plain.pop(_KIND) != _MONITORS:
            raise DocumentError("expected the settings of monitors")
        lost: list[str] = []
        by_name = known_specs()
        wanted = {field.name for field in fields(MonitorsSpec)}
        values = {name: _restored(value, by_name, lost) for name, value in plain.items() if name in wanted}
        return MonitorsSpec(**values), tuple(dict.fromkeys(lost))
    except (msgspec.DecodeError, AttributeError, KeyError, TypeError) as error:
        raise DocumentError(f"expected the settings of monitors: {error}") from error


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {
            _KIND: type(value).__name__,
            **{field.name: _plain(getattr(value, field.name)) for field in fields(value)},
        }
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _restored(value: Any, by_name: dict[str, type[Any]], lost: list[str]) -> Any:
    if not isinstance(value, list):
        return value
    items: list[Any] = []
    for item in value:
        if not isinstance(item, dict):
            items.append(_tuples(item))
            continue
        parameters = {name: _restored(given, by_name, lost) for name, given in item.items()}
        kind = parameters.pop(_KIND)
        try:
            items.append(by_name[kind](**parameters))
        except (KeyError, TypeError):
            lost.append(f"{kind.removesuffix('Spec')} {parameters.get('name', '')}".strip())
    return tuple(items)


def _tuples(value: Any) -> Any:
    """Lists, and lists in them, as the tuples they were."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value

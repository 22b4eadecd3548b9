"""Configuration of the estimators as a state stores it, and what began anew after changes of settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final

import msgspec

from streamwatch.core.estimators import registers
from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.join.durable.packed import reading
from streamwatch.core.metrics.series import Layered
from streamwatch.core.records.events import Name, model_of
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

# Configuration of the estimators, in a form that a later version can read.


_KIND = "of"
_SETTINGS: Final = msgspec.msgpack.Decoder(tuple[bytes, dict[Name, Name]])
_MONITORS = MonitorsSpec.__name__


class DocumentError(ValueError):
    """Raised if a document does not describe a configuration of estimators."""


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
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError, KeyError, TypeError) as error:
        raise DocumentError(f"expected the settings of monitors: {error}") from error


def settings_of_estimators(section: bytes) -> tuple[bytes, Mapping[str, str]]:
    """Decode the section `settings` of a commit: a document, and descriptions of its estimators by section.

    Raises
    ------
    PackedError
        If it is no such section.
    """
    with reading("the section 'settings'"):
        return _SETTINGS.decode(section)


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
    """Convert a list, and lists in it, to tuples."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


# Beginnings after a change of settings: evaluation epochs of models, and estimators that began empty.


BEGINNINGS = "beginnings"
"""Name of the section of a commit that holds `Beginnings`."""


class Epoch(msgspec.Struct, frozen=True, array_like=True):
    """Evaluation epoch of a model: the time since which the present settings make its outcomes."""

    since_ms: int
    """Record time of the state when the process started and began the epoch, in ms since the epoch."""
    changed: list[Name]
    """Settings whose change began it, or a description of the command that did."""
    outcomes: int
    """Number of outcomes of the model evaluated before it."""
    anew: bool = False
    """Whether the model's estimators began anew with it, and so contain none of these outcomes."""


class _Beginnings(msgspec.Struct, frozen=True, array_like=True):
    epochs: dict[Name, Epoch] = {}
    parts: dict[Name, int] = {}
    topics: dict[Name, int] = {}


@dataclass(frozen=True, slots=True)
class StartOver:
    """Parts that begin anew at a start in addition to estimators with changed parameters; default: none."""

    epochs: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    """Models (without folds) that begin an evaluation epoch, and why."""
    estimators: frozenset[str] = frozenset()
    """Models of `epochs` whose estimators begin anew."""
    parts: frozenset[str] = frozenset()
    """Estimators that begin anew, as `EstimatorSet.estimators` describes them."""
    parts_of: frozenset[str] | None = None
    """Models of which `parts` begin anew; None for all."""
    join: bool = False
    """Whether the join begins without entries, and with its counters at 0; the clock continues."""
    comparisons: bool = False
    """Whether all comparisons of models begin anew."""


class Beginnings:
    """Epochs by model, times at which estimators of all models began anew, and topics that were added.

    Attributes
    ----------
    epochs
        Latest epoch by model, without folds; models that never began one are absent.
    parts
        Record time (ms) by description of the estimator.
    topics
        Record time (ms) by name of a topic that was added to a state: it is read from there on.
    """

    __slots__ = ("_changed", "epochs", "parts", "topics")

    def __init__(self) -> None:
        self.epochs: dict[str, Epoch] = {}
        self.parts: dict[str, int] = {}
        self.topics: dict[str, int] = {}
        self._changed = False

    def restore(self, section: bytes | None) -> None:
        """Continue from a commit's section, if any; raises msgspec.DecodeError if it is not readable."""
        if section is not None:
            found = _DECODER.decode(section)
            self.epochs, self.parts, self.topics = found.epochs, found.parts, found.topics

    def begin(self, model: str, changed: Iterable[str], since_ms: int, outcomes: int, *, anew: bool) -> None:
        """Begin an epoch of a model."""
        self.epochs[model] = Epoch(since_ms, list(changed), outcomes, anew)
        self._changed = True

    def begin_parts(self, parts: Iterable[str], since_ms: int, dropped: Iterable[str] = ()) -> None:
        """Note the estimators that began anew, and drop those that no longer exist."""
        for part in dropped:
            self._changed |= self.parts.pop(part, None) is not None
        for part in parts:
            self.parts[part] = since_ms
            self._changed = True

    def add_topics(self, topics: Iterable[str], since_ms: int) -> None:
        """Note topics that are read from now on."""
        for topic in topics:
            self.topics[topic] = since_ms
            self._changed = True

    def retire(self, name: str, alive: Iterable[str]) -> None:
        """Drop the epoch of a model that retired, unless it has folds in `alive`."""
        model = model_of(name)
        if model in self.epochs and all(model_of(other) != model for other in alive):
            del self.epochs[model]
            self._changed = True

    def changes(self) -> bytes | None:
        """Encode all beginnings for a commit; None if nothing has changed since the last call."""
        if not self._changed:
            return None
        self._changed = False
        return _ENCODER.encode(_Beginnings(self.epochs, self.parts, self.topics))


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(_Beginnings)


def details_with_beginnings(
    details: Mapping[str, Mapping[str, object]], beginnings: Beginnings
) -> Mapping[str, Mapping[str, object]]:
    """Add epochs, and estimators that began after the model, to the details that the API shows of models.

    Models without details get none.
    """
    epochs, parts = dict(beginnings.epochs), dict(beginnings.parts)
    return Layered(details, (), lambda model, shown: {**shown, **_fields(model, shown, epochs, parts)})


def _fields(
    model: str, shown: Mapping[str, object], epochs: Mapping[str, Epoch], parts: Mapping[str, int]
) -> dict[str, object]:
    fields: dict[str, object] = {}
    if (epoch := epochs.get(model)) is not None:
        fields["evaluation_since_timestamp_seconds"] = epoch.since_ms / 1000.0
        fields["evaluation_changed"] = ", ".join(epoch.changed)
        fields["evaluation_outcomes_before"] = epoch.outcomes
        fields["evaluation_began_anew"] = epoch.anew
    first = shown.get("first_seen_timestamp_seconds")
    begun = {
        part: since_ms / 1000.0
        for part, since_ms in sorted(parts.items())
        if isinstance(first, float) and first < since_ms / 1000.0
    }
    if begun:
        fields["estimators_since_timestamp_seconds"] = begun
    return fields

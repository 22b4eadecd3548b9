"""Consequences of a change of each setting for an existing state (docs/reference/changes).

As past records are not kept, there are five kinds of consequences (`Change`). For each key, the first case
that applies to the old and the new value counts. A contract test compares `RULES` with the keys of the
settings.

Keys are dotted paths from the root. Topics are distinguished by name, not by position, and a topic's only
mapping is called `mapping`: `topics.labels[outcomes].mapping.classes`. The key of a rule omits names and
numbers: `topics.labels.mapping.classes`.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel

from streamwatch.core.predictions.early_hints.observe import EarlyHintsSpec
from streamwatch.edge.sources.kafka.spec import At, parse_start
from streamwatch.settings.sections import Section
from streamwatch.settings.settings import Settings
from streamwatch.settings.topics import MappingSection, TopicSection

Values: TypeAlias = Mapping[str, Any]
"""Values by key, in the notation of the file: durations as text, estimators as lists."""

SIDES: Final = ("topics.predictions", "topics.labels")
_WHOLE: Final = frozenset(
    f"{side}.{part}" for side in SIDES for part in ("format", "key_format", "mapping.kind")
)
"""Sections that count as one setting each."""
_INSTANCE: Final = re.compile(r"\[[^\]]*\]")


def keys() -> list[str]:
    """Return every key that a rule may be about, in the order of the settings."""
    return [*_keys(Settings, "")]


def _keys(model: type[BaseModel], before: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        key = f"{before}{name}"
        if key in SIDES:
            yield key
            yield from _keys(TopicSection, f"{key}.")
            continue
        if key.endswith(".name") and key.removesuffix(".name") in SIDES:
            continue  # part of the key, not a setting
        inner = None if key in _WHOLE else _section(field.annotation)
        if inner is None or _may_be_none(field.annotation):
            yield key
        if inner is not None:
            yield from _keys(inner, f"{key}.")


def _section(annotation: Any) -> type[BaseModel] | None:
    """Return the section that is the value of a key; None for other values and for lists of sections."""
    if isinstance(annotation, type):
        return annotation if issubclass(annotation, BaseModel) else None
    if not _may_be_none(annotation):
        return None
    return next(filter(None, map(_section, typing.get_args(annotation))), None)


def _annotation(section: BaseModel, name: str) -> Any:
    return type(section).model_fields[name].annotation


def _may_be_none(annotation: Any) -> bool:
    return type(None) in typing.get_args(annotation)


def rule_key(key: str) -> str:
    """Return the key of the rule about a key: without names of topics and numbers of mappings."""
    return _INSTANCE.sub("", key).replace(".mappings.", ".mapping.")


def values_of(settings: Settings) -> dict[str, Any]:
    """Return the values of all keys by key; for a section that may be null, `on` or None."""
    found: dict[str, Any] = {}
    _collect(settings, "", settings.model_dump(mode="json"), found)
    return found


def _collect(section: BaseModel, before: str, dumped: Mapping[str, Any], found: dict[str, Any]) -> None:
    for name in type(section).model_fields:
        key, value = f"{before}{name}", getattr(section, name)
        if key in SIDES:
            found[key] = [topic.name for topic in value]
            for topic in value:
                _collect_topic(topic, f"{key}[{topic.name}].", found)
        elif isinstance(value, Section) and _section(annotation := _annotation(section, name)) is not None:
            if _may_be_none(annotation):
                found[key] = "on"
            _collect(value, f"{key}.", dumped[name], found)
        else:
            found[key] = dumped[name]


def _collect_topic(topic: TopicSection, before: str, found: dict[str, Any]) -> None:
    dumped = topic.model_dump(mode="json")
    for name in ("namespace", "format", "key_format", "envelope", "decode"):
        found[f"{before}{name}"] = dumped[name]
    found[f"{before}mappings"] = len(topic.all_mappings)
    for number, mapping in enumerate(topic.all_mappings):
        own = f"{before}mapping." if len(topic.all_mappings) == 1 else f"{before}mappings[{number}]."
        written = mapping.model_dump(mode="json")
        for name in MappingSection.model_fields:
            found[f"{own}{name}"] = written[name]


class Change(StrEnum):
    """Kind of consequence that a changed setting has for a state."""

    GOES_ON = "goes on"
    """The content of the state does not depend on the setting."""
    FROM_NOW = "from now on"
    """Counts so far stay; records from now on follow the new value."""
    BEGINS_ANEW = "begins anew"
    """A part begins with no outcomes; the other parts continue."""
    CONVERTED = "converted at start"
    """The content is converted when the state is opened."""
    REFUSED = "refused"
    """`run` does not start; its error names a command that helps."""


Scope: TypeAlias = Literal["estimators", "epoch"]
"""What begins for the models concerned: estimators together with an evaluation epoch, or only an epoch."""
Needs: TypeAlias = Literal["waiting", "folds"]
"""What a state must contain for a case to apply: waiting predictions or labels, or waiting predictions of
folds."""

RESET_JOIN: Final = "streamwatch state reset --section join"
RESET_ALL: Final = "streamwatch state reset --all"


def _always(before: Any, after: Any) -> bool:
    del before, after
    return True


@dataclass(frozen=True, slots=True)
class Case:
    """Consequence of a change of a setting, and the condition under which it applies."""

    change: Change
    what: str
    """Consequence in words, which continue the name of the change."""
    when: str = ""
    """Condition in words; empty: always."""
    applies: Callable[[Any, Any], bool] = _always
    """(old value, new value), as in `values_of` → whether the case applies."""
    needs: Needs | None = None
    """What the state must contain; None: anything."""
    command: str = ""
    """Command that helps if the change is refused."""
    scope: Scope | None = None
    """What begins anew for the models concerned; None if no models are."""


def _larger(before: Any, after: Any) -> bool:
    return after > before


def _earlier(before: Any, after: Any) -> bool:
    """Return whether `start_from` was moved back, as far as that can be known."""
    one, other = parse_start(before), parse_start(after)
    if other == "earliest" or one == "latest":
        return one != other
    return isinstance(one, At) and isinstance(other, At) and other.timestamp_ms < one.timestamp_ms


def _stride(reach: int) -> int:
    """Return the number of predictions of which early hints compare one."""
    return EarlyHintsSpec(predictions=reach, reach=reach).stride


_OTHER_THRESHOLD: Final = Case(
    Change.FROM_NOW, "evidence found so far stays, and is compared with the new threshold"
)
_OWN_PARTS: Final = Case(Change.BEGINS_ANEW, "what it is about, alone, with no outcomes")
_OTHER_FORGETTING: Final = Case(
    Change.BEGINS_ANEW,
    "what it is about, all measures of scores, and recovery if the first fading factor is another; alone, "
    "with no outcomes",
)
_PASSING: Final = Case(Change.GOES_ON, "it decides nothing that is kept")
_READ_NEXT: Final = Case(Change.FROM_NOW, "it decides how records are read that come")
_OTHER_OUTCOMES: Final = Case(
    Change.BEGINS_ANEW,
    "estimates of the models concerned, with an evaluation epoch: what was counted under the old mapping "
    "cannot be distinguished",
    scope="estimators",
)
_OTHER_IDS: Final = Case(
    Change.BEGINS_ANEW,
    "estimates of the models concerned, with an evaluation epoch; what waits under the old ids never meets",
    scope="estimators",
)
_OTHER_UTILITY: Final = Case(
    Change.BEGINS_ANEW, "verdicts of the models concerned, alone, with an evaluation epoch", scope="epoch"
)
_SAMPLED: Final = Case(
    Change.FROM_NOW, "for predictions that come; where none is mapped any more, what waits loses its own"
)
_FIXED: Final = Case(
    Change.GOES_ON,
    "the daemon keeps nothing of it; `streamwatch spark` refuses another number with an old checkpoint",
)
_NOT_READ: Final = Case(Change.GOES_ON, "it is not read on this side")
_LIMIT: Final = (
    Case(Change.GOES_ON, "there is more room", "raised", _larger),
    Case(Change.FROM_NOW, "the oldest beyond it are evicted and counted", "lowered"),
)
_WAIT: Final = (Case(Change.FROM_NOW, "also for what waits already; what has expired stays so"),)


def _mapping(side: str) -> dict[str, tuple[Case, ...]]:
    """Rules of the fields of a topic's mapping; a field of the other side is not read."""
    predicts = side == SIDES[0]
    own = {
        "id": _OTHER_IDS,
        "model": _OTHER_IDS,
        "prediction": _OTHER_OUTCOMES if predicts else _NOT_READ,
        "label": _NOT_READ if predicts else _OTHER_OUTCOMES,
        "timestamp": _READ_NEXT,
        "timestamp_unit": _READ_NEXT,
        "scores": _OTHER_OUTCOMES if predicts else _NOT_READ,
        "fold": _READ_NEXT if predicts else _NOT_READ,
        "label_probability": _SAMPLED if predicts else _NOT_READ,
        "label_requested": _SAMPLED if predicts else _NOT_READ,
        "min_label_probability": _SAMPLED if predicts else _NOT_READ,
        "segments": Case(
            Change.FROM_NOW,
            "values of a segment count from records that come; one that is named no more ends",
        )
        if predicts
        else _NOT_READ,
        "classes": _OTHER_OUTCOMES,
        "kind": _OTHER_OUTCOMES,
        "when": _OTHER_OUTCOMES,
        "optional": _READ_NEXT,
    }
    return {f"{side}.mapping.{field}": (case,) for field, case in own.items()}


def _topics(side: str) -> dict[str, tuple[Case, ...]]:
    return {
        side: (
            Case(
                Change.CONVERTED,
                "topics rank anew from the next record on",
                "in another order",
                lambda before, after: sorted(before) == sorted(after),
            ),
            Case(
                Change.GOES_ON,
                "a topic that is added is read from the clock on; of one that is left out, the position is "
                "forgotten",
                "added or left out",
            ),
        ),
        f"{side}.namespace": (
            Case(
                Change.REFUSED,
                "what waits would never meet",
                "while predictions or labels wait",
                needs="waiting",
                command=RESET_JOIN,
            ),
            Case(Change.GOES_ON, "as nothing waits under the old one", "otherwise"),
        ),
        f"{side}.format": (_READ_NEXT,),
        f"{side}.key_format": (_READ_NEXT,),
        f"{side}.envelope": (_READ_NEXT,),
        f"{side}.decode": (_READ_NEXT,),
        f"{side}.mappings": (_OTHER_OUTCOMES,),
        **_mapping(side),
    }


def _going_on(section: str, *names: str) -> dict[str, tuple[Case, ...]]:
    return {f"{section}.{name}": (_PASSING,) for name in names}


def _assigned_by(what: str) -> tuple[Case, ...]:
    """Rules of a setting by which waiting predictions were assigned to folds."""
    return (
        Case(
            Change.REFUSED,
            f"what waits was assigned to folds under the old {what}",
            "while predictions of folds wait",
            needs="folds",
            command=RESET_JOIN,
        ),
        Case(Change.BEGINS_ANEW, "estimates of folds, alone", "otherwise"),
    )


FORGOTTEN: Final = (
    "schema_registry",
    "models",
    "alerts",
    "outcomes",
    "events",
    "ledger",
    "standby",
    "http",
    "state",
    "spark",
    "log",
)
"""Sections that a state does not remember, nor `kafka.security`: it depends on none, and some are secret."""
_PREFIXES: Final = ("kafka.security.", *(f"{section}." for section in FORGOTTEN))


def is_remembered(key: str) -> bool:
    """Return whether a state stores the value of a key, to compare it at the next start."""
    return not key.startswith(_PREFIXES)


RULES: Final[Mapping[str, tuple[Case, ...]]] = MappingProxyType(
    {
        **{key: (_PASSING,) for key in keys() if not is_remembered(key)},  # except those listed below
        "source": (
            Case(Change.REFUSED, "topics and results of Spark have states of their own", command=RESET_ALL),
        ),
        "kafka.bootstrap_servers": (
            Case(
                Change.GOES_ON,
                "another cluster shows by the ids of its topics, and `kafka.on_data_loss` decides",
            ),
        ),
        "kafka.start_from": (
            Case(
                Change.REFUSED,
                "records before the first start cannot be read in their order any more",
                "earlier",
                _earlier,
                command=RESET_ALL,
            ),
            Case(Change.GOES_ON, "it counted at the first start only", "otherwise"),
        ),
        **_going_on(
            "kafka",
            "on_data_loss",
            "max_batch_bytes",
            "max_record_bytes",
            "group_id",
            "dead_letter_topic",
            "client_id",
        ),
        **_topics(SIDES[0]),
        **_topics(SIDES[1]),
        "join.horizon": (
            Case(
                Change.FROM_NOW,
                "also for what waits already; what has expired stays so; what is counted by horizon begins "
                "anew: late labels, label delays, verdicts by cohorts, revised predictions, early hints and "
                "sampled labels",
            ),
        ),
        "join.early_horizon": _WAIT,
        "join.dedup_horizon": _WAIT,
        "join.max_pending": _LIMIT,
        "join.max_labels": _LIMIT,
        "join.max_dedup_entries": _LIMIT,
        "join.on_expiry": (Case(Change.FROM_NOW, "for predictions that expire from now on"),),
        "join.order": (
            Case(
                Change.CONVERTED,
                "outcomes that are held back are evaluated with the next record",
                "to resolution",
                lambda _, after: after == "resolution",
            ),
            Case(Change.CONVERTED, "none is held back at first", "to prediction_time"),
        ),
        "join.reorder_window": (Case(Change.FROM_NOW, "for outcomes that are held back already, too"),),
        "join.max_reordered": (Case(Change.FROM_NOW, "beyond it, outcomes are released early and counted"),),
        "join.retain_unmatched": (Case(Change.FROM_NOW, "for labels that come"),),
        "join.conflicts": (
            Case(
                Change.CONVERTED,
                "of predictions that wait, the first is evaluated",
                "both → first",
                lambda before, after: (before, after) == ("both", "first"),
            ),
            Case(
                Change.CONVERTED,
                "of predictions that wait, the last class that was kept is evaluated",
                "both → last",
                lambda before, after: (before, after) == ("both", "last"),
            ),
            Case(Change.FROM_NOW, "for predictions that come; revisions begin with `both`", "otherwise"),
        ),
        **_going_on("time", "settle", "max_hold_back", "max_future", "max_held_megabytes"),
        "monitors.forgetting": (_OTHER_FORGETTING,),
        "monitors.detectors": (_OWN_PARTS,),
        "monitors.detectors_by_model": (_OWN_PARTS,),
        "monitors.detector_clocks": (_OWN_PARTS,),
        "monitors.max_unsettled": (Case(Change.FROM_NOW, "the oldest beyond it are released early"),),
        "monitors.drift_weighted": (_OWN_PARTS,),
        "monitors.confidence_delta": (Case(Change.BEGINS_ANEW, "verdicts, alone, with no evidence"),),
        "monitors.opponents": (Case(Change.BEGINS_ANEW, "verdicts on opponents that are new, alone"),),
        "monitors.utility": (_OTHER_UTILITY,),
        "monitors.utility_by_model": (_OTHER_UTILITY,),
        "monitors.verdict_outcomes": (Case(Change.BEGINS_ANEW, "verdicts, alone, with no evidence"),),
        "monitors.comparisons": (
            Case(Change.FROM_NOW, "pairs come of ids that are predicted or resolved from now on"),
        ),
        "monitors.max_comparisons": (
            Case(Change.GOES_ON, "there is more room", "raised", _larger),
            Case(Change.FROM_NOW, "pairs beyond it begin anew", "lowered"),
        ),
        "monitors.history_days": (Case(Change.FROM_NOW, "a longer history grows, a shorter one is cut"),),
        "monitors.segments.alpha": (Case(Change.BEGINS_ANEW, "estimates by segment, alone"),),
        "monitors.segments.max_values": (Case(Change.BEGINS_ANEW, "estimates by segment, alone"),),
        "monitors.segments.measures": (_PASSING,),
        "monitors.segments.max_total": (
            Case(Change.GOES_ON, "there is more room", "raised", _larger),
            Case(
                Change.BEGINS_ANEW,
                "values that do not fit any more, which are left out and counted",
                "lowered",
            ),
        ),
        "monitors.probabilities": (Case(Change.BEGINS_ANEW, "measures of scores, alone"),),
        "monitors.probabilities.auc_outcomes": (Case(Change.BEGINS_ANEW, "measures of scores, alone"),),
        "monitors.probabilities.max_auc_classes": (Case(Change.BEGINS_ANEW, "measures of scores, alone"),),
        "monitors.early_hints": (Case(Change.BEGINS_ANEW, "early hints, alone"),),
        "monitors.early_hints.predictions": (_OTHER_THRESHOLD,),
        "monitors.early_hints.delta": (_OTHER_THRESHOLD,),
        "monitors.early_hints.reach": (
            Case(
                Change.BEGINS_ANEW,
                "early hints, alone",
                "to another multiple of 4,096, rounded up",
                lambda before, after: _stride(before) != _stride(after),
            ),
            Case(Change.GOES_ON, "as predictions are compared at the same distance", "otherwise"),
        ),
        "monitors.early_hints.max_models": (
            Case(Change.GOES_ON, "there is more room", "raised", _larger),
            Case(Change.FROM_NOW, "models beyond it are not watched any more", "lowered"),
        ),
        "monitors.early_hints.notify": (_PASSING,),
        "monitors.revisions.alpha": (Case(Change.BEGINS_ANEW, "comparison of revised predictions, alone"),),
        "monitors.cohort_verdicts": (
            Case(
                Change.FROM_NOW,
                "cohorts are of predictions made from now on; until enough are judged, the verdict in the "
                "order of labels is shown first",
                "switched on",
                lambda before, after: not before and after,
            ),
            Case(Change.GOES_ON, "the verdict in the order of labels is shown first", "switched off"),
        ),
        "monitors.label_delays": (Case(Change.BEGINS_ANEW, "shares of labelled predictions, alone"),),
        "monitors.shadow_max_classes": (
            Case(Change.BEGINS_ANEW, "shadow classifiers and the confusion matrix, alone"),
        ),
        "monitors.per_class": (_PASSING,),
        "monitors.max_models": (
            Case(Change.GOES_ON, "there is more room", "raised", _larger),
            Case(Change.BEGINS_ANEW, "models that do not fit any more, which are listed", "lowered"),
        ),
        "monitors.max_classes": (
            Case(
                Change.FROM_NOW,
                "for classes that come; a model that had more begins anew, as they were counted as one",
                "raised",
                _larger,
            ),
            Case(
                Change.BEGINS_ANEW, "estimates of all models, whose classes are counted otherwise", "lowered"
            ),
        ),
        "monitors.series": (_PASSING,),
        "monitors.max_series": (_PASSING,),
        "folds.scheme": _assigned_by("scheme"),
        "folds.k": _assigned_by("number"),
        "folds.prequential": _assigned_by("scheme"),
        "state.kind": (
            Case(
                Change.REFUSED,
                "what is kept in `state.directory` would be left behind",
                "rocksdb → memory",
                lambda before, after: (before, after) == ("rocksdb", "memory"),
                command="streamwatch run --discard",
            ),
            Case(Change.GOES_ON, "a state on disk is begun, as memory keeps none", "memory → rocksdb"),
        ),
        "state.directory": (Case(Change.GOES_ON, "with the state that is there, if there is one"),),
        "spark.id_buckets": (_FIXED,),
        "spark.model_buckets": (_FIXED,),
    }
)
"""Cases by key of a rule (`rule_key`); the first that applies counts."""

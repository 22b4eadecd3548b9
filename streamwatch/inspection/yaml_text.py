"""A guess as settings: YAML with a comment on every choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from streamwatch.edge.decoders.mapping import KeyOf, Paths, Trimmed
from streamwatch.edge.yaml_text import block, comment, inline
from streamwatch.inspection.guessed import Choice, Guess, Numbers, TopicGuess
from streamwatch.inspection.guessing import (
    DAY_MS,
    HOUR_MS,
    duration_text,
    quantile_ms,
    suggested_ms,
    written,
)
from streamwatch.inspection.joined import JoinedSample
from streamwatch.inspection.words import printable

DEFAULT_HORIZON_MS: Final = 14 * DAY_MS
DEFAULT_EARLY_MS: Final = HOUR_MS


def _mapping_lines(topic: TopicGuess) -> list[str]:
    """Return the lines of a topic's mapping or mappings, each key below a comment with its reason."""
    several = bool(topic.others)
    lines, indent = ["      mappings:" if several else "      mapping:"], " " * (10 if several else 8)
    for each in (topic, *topic.others):
        lines += ["        -"] if several else []
        for name, value, why in _fields(each):
            lines += [*comment(printable(why), indent), f"{indent}{name}: {inline(value)}"]
    return lines


def _sides(guess: Guess) -> Mapping[str, Sequence[TopicGuess]]:
    both = [topic for topic in guess.topics if topic.side == "both"]
    return {
        "predictions": [*(topic for topic in guess.topics if topic.side == "prediction"), *both],
        "labels": [*(topic for topic in guess.topics if topic.side == "label"), *both],
    }


def text(guess: Guess, sections: Mapping[str, Any], sample: JoinedSample, heading: Sequence[str]) -> str:
    """Return the settings as YAML: given sections, topics, and `join` if delays require it.

    Comments say why each location was chosen.
    """
    lines = [line for part in heading for line in comment(printable(part))]
    for name, section in sections.items():
        lines += ["", *block({name: dict(section)}).splitlines()]
    lines += ["", "topics:"]
    for side, topics in _sides(guess).items():
        lines.append(f"  {side}:")
        for topic in topics:
            keys = [f"{name}: {inline(value)}" for name, value in _head(topic).items()]
            lines += [f"    - {keys[0]}", *(f"      {key}" for key in keys[1:])]
            lines += _mapping_lines(topic)
    if join := list(_join(sample)):
        lines += ["", "join:"]
        for name, value, why in join:
            lines += comment(printable(why), " " * 2)
            lines.append(f"  {name}: {value}")
    elif sample.dated:
        lines += ["", *comment(printable(_horizon_note(sample)))]
    return "\n".join(lines) + "\n"


def _head(topic: TopicGuess) -> dict[str, Any]:
    """Return the keys of a topic beside its mapping."""
    note = {
        "name": topic.topic,
        "format": topic.format,
        "key_format": topic.key_format if topic.uses_key else None,
        "envelope": topic.envelope,
        "decode": {
            rule.path: rule.encodings[0] if len(rule.encodings) == 1 else list(rule.encodings)
            for rule in topic.decode
        }
        or None,
    }
    return {key: value for key, value in note.items() if value is not None}


def _fields(topic: TopicGuess) -> Iterator[tuple[str, Any, str]]:
    """Yield key, value and reason of each line of a mapping."""
    yield "id", _paths(topic.id.locations), _reason(topic.id)
    if topic.model is not None:
        yield "model", _paths(topic.model.locations), _reason(topic.model)
    else:
        yield "model", None, "a label is for every model that predicted its id"
    if topic.prediction is not None:
        yield "prediction", _predicted(topic, topic.prediction), _reason(topic.prediction)
    if topic.label is not None:
        yield "label", topic.label.location, _reason(topic.label)
    if topic.timestamp is not None:
        yield "timestamp", topic.timestamp.location, _reason(topic.timestamp)
        yield "timestamp_unit", topic.timestamp_unit, ""
    else:
        yield "timestamp", None, "the record's time counts"
    if topic.side != "label":
        yield "scores", *_scores(topic.scores)
    if topic.when:
        asked = {location: list(texts) for location, texts in topic.when.items()}
        yield "when", asked, "records with other texts there have no class, and are skipped"
    if topic.optional:
        yield "optional", True, "many of its records have no class, and are not invalid for that"
    if topic.has_fold_field:
        yield "fold", None, "value.fold is there: name it, and set folds, if models predict in folds"
    if topic.classes:
        yield "classes", dict(topic.classes), "classes as labels write them → as predictions do: check them"
    if topic.kind is not None:
        location, prediction, label = topic.kind
        yield (
            "kind",
            {"field": location, "prediction": prediction, "label": label},
            "distinguishes predictions from labels",
        )


def _paths(paths: Paths) -> Any:
    """Write paths in the notation of the settings."""
    match paths:
        case str():
            return paths
        case KeyOf(key_of):
            return {"key_of": key_of}
        case Trimmed(path, prefix, suffix):
            lost = {"strip_prefix": prefix, "strip_suffix": suffix}
            return {"path": path} | {key: text for key, text in lost.items() if text}
        case tuple():
            return list(map(_paths, paths))


def _predicted(topic: TopicGuess, choice: Choice) -> Any:
    if topic.score is not None:
        score = topic.score
        made = {"threshold": score.threshold, "above": score.above, "below": score.below}
        return {"score": choice.location, **made}
    return choice.location if topic.largest is None else _numbers("largest", topic.largest)


def _scores(scores: Numbers | None) -> tuple[Any, str]:
    if scores is None:
        return None, "no object or array of a probability for each class was found"
    return _numbers("array", scores) if scores.classes else scores.location, "a probability for each class"


def _numbers(key: str, numbers: Numbers) -> dict[str, Any]:
    ordered = {"classes": list(numbers.classes)} if numbers.classes else {}
    return {key: numbers.location} | ordered


def _reason(choice: Choice) -> str:
    note = choice.why
    if choice.is_close:
        note += f"{'; ' if note else ''}{choice.confidence:.0%} sure, else {choice.runner_up}"
    return note


def _join(sample: JoinedSample) -> Iterator[tuple[str, str, str]]:
    """Yield key, value and reason of the settings of the join that delays of the sample require."""
    if not sample.dated:
        return
    horizon = suggested_ms(sample.delays_ms)
    if horizon > DEFAULT_HORIZON_MS:
        yield "horizon", written(horizon), f"the longest delay seen is {duration_text(sample.delays_ms[-1])}"
    early = suggested_ms([-sample.delays_ms[0]])
    if early > DEFAULT_EARLY_MS:
        why = f"labels came up to {duration_text(-sample.delays_ms[0])} before their prediction"
        yield "early_horizon", written(early), why


def _horizon_note(sample: JoinedSample) -> str:
    middle, longest = duration_text(quantile_ms(sample.delays_ms, 0.5)), duration_text(sample.delays_ms[-1])
    return (
        f"join.horizon stays at 14d. Delays seen: {middle} (median), {longest} (longest); if none can be "
        f"much longer, join: {{horizon: {written(suggested_ms(sample.delays_ms))}}} needs less memory."
    )

"""From samples of topics to a mapping: the parts put together, with what could not be told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from streamwatch.core.ports import Record
from streamwatch.lab.inspection.envelopes import envelope_of
from streamwatch.lab.inspection.flatten import NULL, SKIPPED, FlatRecord, flatten
from streamwatch.lab.inspection.guessed import Guess, TopicGuess
from streamwatch.lab.inspection.mappings.challengers import with_challengers
from streamwatch.lab.inspection.one_record import within
from streamwatch.lab.inspection.pairing import Pairing, best_pairing, paired, views
from streamwatch.lab.inspection.problems import class_problems, no_ids_meet
from streamwatch.lab.inspection.streams import Stream, streams_of
from streamwatch.lab.inspection.topic_guesses import both_guess, label_guess, prediction_guess
from streamwatch.lab.inspection.words import LABEL, PREDICTION, weight

READABLE: Final = 0.5
"""Share of a topic's records that must be JSON objects for it to be looked into."""


def guess(samples: Mapping[str, Sequence[Record]]) -> Guess:
    """Guess the mapping of each topic.

    Parameters
    ----------
    samples
        Records by topic, of each some hundreds at best; labels should have met their predictions.
    """
    flats = {topic: [flatten(record) for record in records] for topic, records in samples.items()}
    problems: list[str] = []
    notes: list[str] = []
    streams: dict[str, Sequence[Stream]] = {}
    envelopes: dict[str, str] = {}
    for topic, records in flats.items():
        if (known := envelope_of(records)) is not None:
            kind, said = known
            envelopes[topic] = kind.name
            notes.append(f"topic {topic}: {said}")
            records = [flatten(record, kind) for record in samples[topic]]  # noqa: PLW2901
        if fault := _unreadable(topic, records):
            problems.append(fault)
        else:
            notes += _unaddressable(topic, records)
            streams[topic] = streams_of(topic, records)
    best = best_pairing(streams) or _of_one_topic(streams)
    if best is None:
        return Guess(problems=(*problems, *no_ids_meet(streams)), notes=tuple(notes))
    pairings = [best, *_further(best, streams)]
    known = {pairing.predictions.topic for pairing in pairings} | {
        pairing.labels.topic for pairing in pairings
    }
    problems += [
        f"topic {topic}: its ids meet those of no other topic" for topic in streams if topic not in known
    ]
    guessed, found = _topics(pairings)
    topics = [replace(topic, envelope=envelopes.get(topic.topic)) for topic in guessed]
    return Guess(tuple(topics), (*problems, *found), tuple(notes))


def _of_one_topic(streams: Mapping[str, Sequence[Stream]]) -> Pairing | None:
    """Predictions and labels in the same records, where there is no topic that labels could come from."""
    if len(streams) != 1:
        return None
    found = [way for of_topic in streams.values() for view in views(of_topic) if (way := within(view))]
    return found[0] if found else None


def _further(best: Pairing, streams: Mapping[str, Sequence[Stream]]) -> list[Pairing]:
    """Further topics, each as predictions for the labels found or as labels for the predictions found."""
    found: list[Pairing] = []
    if best.predictions.kind is not None:
        return found
    for topic, of_topic in streams.items():
        if topic in {best.predictions.topic, best.labels.topic} or not of_topic:
            continue
        ways = [
            way
            for view in views(of_topic)
            for way in (paired(view, best.labels), paired(best.predictions, view))
        ]
        sound = [way for way in ways if way is not None and way.is_usable]
        if sound:
            found.append(max(sound, key=lambda way: way.rank - _of_known(way, best)))
    return found


def _of_known(way: Pairing, best: Pairing) -> float:
    """Part of the rank that the name of the field adds whose topic was known already."""
    if not way.classes:
        return 0.0
    if way.labels is best.labels:
        return weight(way.classes[0].label, LABEL)
    return weight(way.classes[0].prediction, PREDICTION)


def _topics(pairings: Sequence[Pairing]) -> tuple[list[TopicGuess], list[str]]:
    """Mapping of each topic, once, and what is wrong with it."""
    best = pairings[0]
    problems = [problem for pairing in pairings for problem in class_problems(pairing)]
    if best.predictions.kind is not None and best.predictions.topic == best.labels.topic:
        return both_guess(best), problems
    if best.predictions is best.labels:
        return ([prediction_guess(best), label_guess(best)] if best.is_usable else []), problems
    topics: dict[str, TopicGuess] = {}
    for pairing in pairings:
        if not pairing.is_usable:
            continue
        if pairing.predictions.topic not in topics:
            topics[pairing.predictions.topic] = with_challengers(prediction_guess(pairing), pairing)
        if pairing.labels.topic not in topics:
            topics[pairing.labels.topic] = label_guess(pairing)
    return list(topics.values()), problems


def _unreadable(topic: str, records: Sequence[FlatRecord]) -> str:
    faults = Counter(record.fault for record in records if record.fault not in {"", NULL, SKIPPED})
    filled = sum(record.fault not in {NULL, SKIPPED} for record in records)
    if not filled:
        return f"topic {topic}: no record has a value" if records else f"topic {topic}: no record was found"
    if faults.total() <= (1 - READABLE) * filled:
        return ""
    fault, count = faults.most_common(1)[0]
    said = f"topic {topic}: {count:,} of {filled:,} records are {fault}"
    if fault.startswith("framed"):
        said += ": they are written with a schema registry, not as plain JSON"
    return said


def _unaddressable(topic: str, records: Sequence[FlatRecord]) -> list[str]:
    names = sorted({name for record in records for name in record.unaddressable})
    if not names:
        return []
    return [f"topic {topic}: names that cannot be mapped: {', '.join(names[:5])}"]

"""Guess of the mappings of all topics from samples, with problems and notes; suggested durations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import floor, log10
from typing import Final

from streamwatch.core.ports import Record
from streamwatch.core.records.events import LEAST_PROBABILITY
from streamwatch.core.specs import DAY_MS, HOUR_MS, MINUTE_MS
from streamwatch.edge.decoders.texts import TextRule, Texts
from streamwatch.inspection.classes import scores
from streamwatch.inspection.columns import NOT_JSON, NULL, SKIPPED, Column, FlatRecord, flatten
from streamwatch.inspection.envelopes import envelope_of, text_rules
from streamwatch.inspection.fields import with_fields
from streamwatch.inspection.guessed import Guess, TopicGuess
from streamwatch.inspection.ids import (
    Pairing,
    affixes,
    best_pairing,
    id_columns,
    paired,
    views,
    with_affixes,
    with_composites,
    within,
)
from streamwatch.inspection.models import are_separated
from streamwatch.inspection.streams import Stream, streams_of
from streamwatch.inspection.topic_guesses import (
    both_guess,
    label_guess,
    label_model,
    prediction_guess,
    with_challengers,
)
from streamwatch.inspection.words import LABEL, MODEL, PREDICTION, weight, words

SAMPLED: Final = frozenset(
    {"sampling", "sample", "sampled", "label", "labelling", "labeling", "review", "audit"}
)
CHANCE: Final = frozenset({"probability", "prob", "rate", "chance", "share", "fraction"})
PROPENSITY: Final = frozenset({"propensity", "propensities"})
ASKED: Final = frozenset({"requested", "request", "sampled", "selected", "drawn", "asked"})
"""Words in names of fields: of sampled labels, of probabilities, of both, and of requests."""


def sampling_note(stream: Stream) -> str | None:
    """Propose `label_probability` for a topic of predictions, in a note; None if no field looks like one.

    It is not part of the guessed mapping, as records with a smaller probability than those of the sample
    would be invalid.
    """
    found = next((column for _, column in sorted(stream.columns.items()) if _is_probability(column)), None)
    if found is None:
        return None
    least = min(found.numbers)
    unit = 10.0 ** floor(log10(least))
    rounded = float(f"{floor(least / unit * (1 + 1e-9)) * unit:.1g}")
    fields = {"label_probability": found.location, "min_label_probability": f"{rounded:g}"}
    asked = next((column for _, column in sorted(stream.columns.items()) if _is_request(column)), None)
    if asked is not None:
        fields["label_requested"] = asked.location
    written = ", ".join(f"{name}: {value}" for name, value in fields.items())
    return (
        f"topic {stream.topic}: {found.location} looks like the probability with which a label is asked for "
        f"({least:g} at least); if so, add {written} to its mapping, with the smallest probability in use"
    )


def _is_probability(column: Column) -> bool:
    """Return whether a column is named like a sampling probability and has only such as settings accept."""
    named = set(words(column.leaf))
    speaks = bool(named & PROPENSITY) or bool(named & SAMPLED and named & CHANCE)
    numbers = column.numbers
    return (
        speaks
        and len(numbers) == column.counts.total() > 0
        and all(LEAST_PROBABILITY <= each <= 1.0 for each in numbers)
    )


def _is_request(column: Column) -> bool:
    """Return whether a column is named like a request of a label and has only booleans."""
    named = set(words(column.leaf))
    return column.is_boolean and bool(named & ASKED) and bool(named & SAMPLED)


# Guess of the mappings of all topics from samples, with problems and notes; suggested durations.


SHOWN: Final = 5
FAN_OUT: Final = 1.5
"""Largest `fan_out` of a pair of ids."""


def no_ids_meet(streams: Mapping[str, Sequence[Stream]]) -> list[str]:
    """Describe why no ids match: prefixes, other ways of writing, or no candidates."""
    wholes = [of_topic[0] for of_topic in streams.values() if of_topic]
    if len(wholes) < 2:
        return [
            "id: a second topic is needed, or one whose records say whether they are predictions or labels"
        ]
    notes: list[str] = []
    for left, right in permutations(wholes, 2):
        if left.topic > right.topic:
            continue
        found = affixes(left, right)
        if found:
            best = found[0]
            locations = f"{left.topic} {best.left} and {right.topic} {best.right}"
            notes.append(
                f"id: {locations} would meet ({best.shared:,} ids), but {best.note}. "
                "Ids are compared as they are: have one side write them as the other does"
            )
    if notes:
        return notes
    candidates = [f"{stream.topic}: {_shown(stream)}" for stream in wholes]
    return [
        "id: no field of one topic has contents in common with one of another; candidates: "
        + "; ".join(candidates)
    ]


def _shown(stream: Stream) -> str:
    columns = sorted(id_columns(stream), key=lambda column: -column.uniqueness)[:SHOWN]
    return ", ".join(f"{c.location} ({next(iter(c.counts))}, …)" for c in columns) or "none"


def class_problems(pairing: Pairing) -> list[str]:
    """Describe what is wrong with the ids or classes of a pairing; empty if nothing is."""
    topics = f"{pairing.predictions.name} and {pairing.labels.name}"
    best_ids = pairing.ids[0]
    if best_ids.fan_out > FAN_OUT and not _are_of_models(pairing):
        return [
            (
                f"id: {best_ids.left} and {best_ids.right} meet, but both repeat: each record would meet "
                f"{best_ids.fan_out:.1f} of the other topic. If several fields make the id together, list "
                f"them on both sides: id: [{best_ids.left}, …] and id: [{best_ids.right}, …]"
            )
        ]
    if pairing.is_sound:
        best = pairing.classes[0]
        sides = ((pairing.predictions, best.prediction), (pairing.labels, best.label))
        notes = [_longer(stream, location) for stream, location in sides if stream.longest(location) > 1]
        return [*notes, f"classes of {topics}: {best.unmatched}"] if best.unmatched else notes
    if pairing.scored is not None:
        return []
    continuous = scores(pairing.predictions)
    if continuous:
        shown = ", ".join(continuous[:SHOWN])
        topic = pairing.predictions.name
        note = f"prediction: {topic} has no field with a class, but {shown} is a score from 0 to 1"
        return [f"{note}: have the producer write the class that the score led to, too"]
    pairs = [f"{pair.prediction} with {pair.label}" for pair in pairing.classes[:SHOWN]]
    return [
        f"prediction and label of {topics}: no two fields look like predicted and true classes"
        + (f"; candidates: {', '.join(pairs)}" if pairs else "")
        + ". Where each record of a topic means one class, its label is a constant: label: =fraud"
    ]


def _are_of_models(pairing: Pairing) -> bool:
    """Return whether labels repeat an id because each names another model."""
    named = label_model(pairing, pairing.classes[0].label) if pairing.classes else None
    if named is None or weight(named.location, MODEL, outer=0.7) <= 0:
        return False
    return are_separated(pairing.labels, pairing.ids[0].right, (named.location, *named.further))


def _longer(stream: Stream, location: str) -> str:
    """Describe that a location is in one of several elements of an array."""
    array = location.partition("[")[0]
    longest = stream.longest(location)
    note = f"{stream.name}: {array} has up to {longest} elements: with {array}[] each is an event"
    note += ", whose id, if it is not in the array, is followed by # and the number of the element"
    return f"{note}; {location} takes that one alone"


READABLE: Final = 0.5
"""Least share of a topic's records that can be decoded for it to be examined."""


def guess(samples: Mapping[str, Sequence[Record]]) -> Guess:
    """Guess the mapping of each topic.

    Parameters
    ----------
    samples
        Records by topic, preferably some hundreds of each, with labels of the sampled predictions.
    """
    flats = {topic: [flatten(record) for record in records] for topic, records in samples.items()}
    problems: list[str] = []
    notes: list[str] = []
    streams: dict[str, Sequence[Stream]] = {}
    ways: dict[str, _Read] = {}
    for topic, flat in flats.items():
        read = _read(samples[topic], flat)
        records, ways[topic] = read.records, read
        notes += [f"topic {topic}: {note}" for note in read.notes]
        if fault := _unreadable(topic, records):
            problems.append(fault)
        else:
            notes += _unaddressable(topic, records)
            streams[topic] = streams_of(topic, records)
    best = _best(streams) or _of_one_topic(streams)
    if best is None:
        return Guess(problems=(*problems, *no_ids_meet(streams)), notes=tuple(notes))
    pairings = [with_fields(pairing) for pairing in (best, *_further(best, streams))]
    known = {pairing.predictions.topic for pairing in pairings} | {
        pairing.labels.topic for pairing in pairings
    }
    problems += [
        f"topic {topic}: its ids meet those of no other topic" for topic in streams if topic not in known
    ]
    of_predictions = {pairing.predictions.topic: pairing.predictions for pairing in pairings}
    notes += [note for stream in of_predictions.values() if (note := sampling_note(stream)) is not None]
    guessed, found = _topics(pairings)
    topics = [ways[topic.topic].with_reading(topic) for topic in guessed]
    return Guess(tuple(topics), (*problems, *found), tuple(notes))


@dataclass(frozen=True, slots=True)
class _Read:
    """Decoded records of a topic, and how they were decoded."""

    records: Sequence[FlatRecord]
    envelope: str | None = None
    """Name of the envelope."""
    plain: bool = False
    """Whether values are texts, not JSON."""
    rules: tuple[TextRule, ...] = ()
    """Texts with structured data."""
    notes: tuple[str, ...] = ()

    def with_reading(self, guess: TopicGuess) -> TopicGuess:
        """Add envelope, format and those rules for texts that the guess uses."""
        used = guess.value_locations
        rules = tuple(
            rule
            for rule in self.rules
            if any(re.match(re.escape(rule.path) + r"[.\[]", each) for each in used)
        )
        return replace(
            guess, envelope=self.envelope, format="text" if self.plain else guess.format, decode=rules
        )


TEXTS_IN_TEXTS: Final = 2
"""Levels of texts within texts that are examined."""


def _read(samples: Sequence[Record], records: Sequence[FlatRecord]) -> _Read:
    """Find out how a topic's records are decoded (envelope, format, texts with data), and decode them."""
    notes: list[str] = []
    filled = sum(record.fault not in {NULL, SKIPPED} for record in records)
    plain = sum(record.fault == NOT_JSON for record in records) > READABLE * filled
    kind = None
    if plain:
        records = [flatten(record, plain=True) for record in samples]
        notes.append("values are no JSON: each is a text, at the path value")
    elif (known := envelope_of(records)) is not None:
        kind, note = known
        notes.append(note)
        records = [flatten(record, kind) for record in samples]
    rules: tuple[TextRule, ...] = ()
    for _ in range(TEXTS_IN_TEXTS):
        more = text_rules(records)
        if not more:
            break
        rules += more
        records = [flatten(record, kind, Texts(rules), plain=plain) for record in samples]
    return _Read(records, None if kind is None else kind.name, plain, rules, tuple(notes))


def _best(streams: Mapping[str, Sequence[Stream]]) -> Pairing | None:
    """Find the best pairing by ids as they are, without affixes, or of several fields; None if none match."""
    best = best_pairing(streams)
    if best is None or best.ids[0].fan_out > FAN_OUT:
        changed = with_affixes(streams)
        other = None if changed is None else best_pairing(changed)
        if other is not None and (best is None or other.ids[0].fan_out < best.ids[0].fan_out):
            best = other
    if best is None or best.ids[0].fan_out <= FAN_OUT or _are_of_models(best):
        return best
    together = with_composites(best.predictions, best.labels)
    found = None if together is None else paired(*together)
    return found if found is not None and found.ids[0].fan_out <= FAN_OUT else best


def _of_one_topic(streams: Mapping[str, Sequence[Stream]]) -> Pairing | None:
    """Find predictions and labels in the same records, if only one topic is sampled; else None."""
    if len(streams) != 1:
        return None
    found = [way for of_topic in streams.values() for view in views(of_topic) if (way := within(view))]
    return found[0] if found else None


def _further(best: Pairing, streams: Mapping[str, Sequence[Stream]]) -> list[Pairing]:
    """Pair each further topic with the labels, or with the predictions, of the best pairing."""
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
    """Return the part of a rank that is due to the name of the field in the already known topic."""
    if not way.classes:
        return 0.0
    if way.labels is best.labels:
        return weight(way.classes[0].label, LABEL)
    return weight(way.classes[0].prediction, PREDICTION)


def _topics(pairings: Sequence[Pairing]) -> tuple[list[TopicGuess], list[str]]:
    """Make one mapping of each topic, and describe the problems of all pairings."""
    best = pairings[0]
    problems = [problem for pairing in pairings for problem in class_problems(pairing)]
    if best.predictions.kind is not None and best.predictions.topic == best.labels.topic:
        return both_guess(best), problems
    if best.predictions.topic == best.labels.topic:
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
    note = f"topic {topic}: {count:,} of {filled:,} records are {fault}"
    if fault.startswith("framed"):
        note += ": they are written with a schema registry, not as plain JSON"
    return note


def _unaddressable(topic: str, records: Sequence[FlatRecord]) -> list[str]:
    names = sorted({name for record in records for name in record.unaddressable})
    if not names:
        return []
    return [f"topic {topic}: names that cannot be mapped: {', '.join(names[:5])}"]


STEPS_MS: Final = (
    *(count * MINUTE_MS for count in (1, 2, 5, 10, 30)),
    *(count * HOUR_MS for count in (1, 2, 6, 12)),
    *(count * DAY_MS for count in (1, 2, 3, 7, 14, 30, 60, 90, 180, 365)),
)
"""Round durations that are suggested."""
ROOM: Final = 2
"""Suggested duration as a multiple of the longest delay of the sample, which may not have the longest one."""


def suggested_ms(delays_ms: Sequence[int]) -> int:
    """Return the smallest round duration of at least twice the longest delay; the least without delays."""
    wanted = ROOM * max((*delays_ms, 0))
    return next((step for step in STEPS_MS if step >= wanted), STEPS_MS[-1])


def quantile_ms(delays_ms: Sequence[int], share: float) -> int:
    """Return the quantile of sorted delays at a share in [0, 1].

    Raises
    ------
    IndexError
        If there are no delays.
    """
    return delays_ms[min(len(delays_ms) - 1, int(share * len(delays_ms)))]


def duration_text(milliseconds: float) -> str:
    """Write a duration with three digits: `3.2 h`; negative ones with their sign."""
    size = abs(milliseconds)
    for unit, length in (("d", DAY_MS), ("h", HOUR_MS), ("min", MINUTE_MS), ("s", 1_000)):
        if size >= length:
            return f"{milliseconds / length:.3g} {unit}"
    return f"{milliseconds:.0f} ms"


def written(milliseconds: int) -> str:
    """Write one of `STEPS_MS` as in settings: `30m`, `12h`, `14d`."""
    for unit, length in (("d", DAY_MS), ("h", HOUR_MS)):
        if milliseconds % length == 0:
            return f"{milliseconds // length}{unit}"
    return f"{milliseconds // MINUTE_MS}m"

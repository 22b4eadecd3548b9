"""What could not be guessed, in words, with the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Final

from streamwatch.lab.inspection.classes import scores
from streamwatch.lab.inspection.ids import affixes, id_columns
from streamwatch.lab.inspection.models import are_separated
from streamwatch.lab.inspection.pairing import Pairing
from streamwatch.lab.inspection.streams import Stream
from streamwatch.lab.inspection.topic_guesses import label_model
from streamwatch.lab.inspection.words import MODEL, weight

SHOWN: Final = 5
FAN_OUT: Final = 1.5
"""Records that one would meet from which a field is no id."""


def no_ids_meet(streams: Mapping[str, Sequence[Stream]]) -> list[str]:
    """Say why nothing meets: a prefix, another way of writing, or no candidates at all."""
    wholes = [of_topic[0] for of_topic in streams.values() if of_topic]
    if len(wholes) < 2:
        return [
            "id: a second topic is needed, or one whose records say whether they are predictions or labels"
        ]
    said: list[str] = []
    for left, right in permutations(wholes, 2):
        if left.topic > right.topic:
            continue
        found = affixes(left, right)
        if found:
            best = found[0]
            places = f"{left.topic} {best.left} and {right.topic} {best.right}"
            said.append(
                f"id: {places} would meet ({best.shared:,} ids), but {best.said}. "
                "Ids are compared as they are: have one side write them as the other does"
            )
    if said:
        return said
    told = [f"{stream.topic}: {_shown(stream)}" for stream in wholes]
    return [
        "id: no field of one topic has contents in common with one of another; candidates: " + "; ".join(told)
    ]


def _shown(stream: Stream) -> str:
    columns = sorted(id_columns(stream), key=lambda column: -column.uniqueness)[:SHOWN]
    return ", ".join(f"{c.place} ({next(iter(c.counts))}, …)" for c in columns) or "none"


def class_problems(pairing: Pairing) -> list[str]:
    """Say what is wrong with the classes of a pairing; empty where nothing is."""
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
        said = [_longer(stream, place) for stream, place in sides if stream.longest(place) > 1]
        return [*said, f"classes of {topics}: {best.unmatched}"] if best.unmatched else said
    if pairing.scored is not None:
        return []
    continuous = scores(pairing.predictions)
    if continuous:
        shown = ", ".join(continuous[:SHOWN])
        topic = pairing.predictions.name
        said = f"prediction: {topic} has no field with a class, but {shown} is a score from 0 to 1"
        return [f"{said}: have the producer write the class that the score led to, too"]
    pairs = [f"{pair.prediction} with {pair.label}" for pair in pairing.classes[:SHOWN]]
    return [
        f"prediction and label of {topics}: no two fields look like predicted and true classes"
        + (f"; candidates: {', '.join(pairs)}" if pairs else "")
        + ". Where each record of a topic means one class, its label is a constant: label: =fraud"
    ]


def _are_of_models(pairing: Pairing) -> bool:
    """Tell whether labels repeat an id because each is of another model, which it names."""
    named = label_model(pairing, pairing.classes[0].label) if pairing.classes else None
    if named is None or weight(named.place, MODEL, outer=0.7) <= 0:
        return False
    return are_separated(pairing.labels, pairing.ids[0].right, (named.place, *named.further))


def _longer(stream: Stream, place: str) -> str:
    """Say that a place is in an array of several elements, of which it would be one."""
    array = place.partition("[")[0]
    said = (
        f"{stream.name}: {array} has up to {stream.longest(place)} elements: with {array}[] each is an event"
    )
    said += ", whose id, if it is not in the array, is followed by # and the number of the element"
    return f"{said}; {place} takes that one alone"

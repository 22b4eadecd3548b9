"""A publication in the state of which numbers were damaged is refused, before compiled code looks them up."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from streamwatch.core.publishing.kept import KeptOutcomes
from streamwatch.core.publishing.outcome_lines import keys_of
from streamwatch.core.publishing.publications import Publication, PublicationError, decoded, encoded
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM
from tests.core.publishing.test_outcome_lines import ids, outcomes
from tests.damage import damaged_bytes
from tests.tiers import by_tier

TRIES = by_tier(fast=100, default=300, everything=5_000)
LARGE = (2**31 - 1, -(2**31), -2)


def whole() -> Publication:
    """Outcomes of every kind, as a commit keeps them."""
    return Publication(4, 0, 0, [KeptOutcomes.of(outcomes(), keys_of(outcomes(), ids))], [], "state.0")


def with_kept(**parts: object) -> bytes:
    """The publication of which a part of the kept outcomes is another."""
    publication = whole()
    kept = msgspec.structs.replace(publication.outcomes[0], **parts)
    return encoded(msgspec.structs.replace(publication, outcomes=[kept]))


def with_number(name: str, number: int) -> bytes:
    """The publication of which the second outcome has another number."""
    records = np.frombuffer(whole().outcomes[0].records, OUTCOME).copy()
    records[name][1] = number
    return with_kept(records=records.tobytes())


def refused(value: bytes, named: str = "") -> None:
    with pytest.raises(PublicationError, match=f"a publication in the state cannot be read: .*{named}"):
        decoded(value)


@pytest.mark.parametrize(
    ("name", "first_without"),
    [
        ("model", 4),
        ("true_class", 3),
        ("predicted_class", 3),
        ("label_at_prediction", 3),
        ("last_class", 4),
        ("scores", SEGMENTS_FROM + 2),
        ("carried", 2**31 - 1),
    ],
)
def test_a_number_without_a_name(name: str, first_without: int) -> None:
    named = {"scores": "segments", "carried": "probabilities"}.get(name, name)
    for number in (first_without, *LARGE):
        refused(with_number(name, number), named)


def test_columns_of_different_outcomes() -> None:
    kept = whole().outcomes[0]
    refused(with_kept(records=kept.records[: OUTCOME.itemsize]), "as many outcomes")
    refused(with_kept(key_sizes=kept.key_sizes[:-1]), "as many outcomes")
    refused(with_kept(keys=kept.keys[:-1]), "expected keys of")
    for size in LARGE:
        sizes = np.frombuffer(kept.key_sizes, np.int32).copy()
        sizes[1] = size
        refused(with_kept(key_sizes=sizes.tobytes()), "expected keys of")


def test_segments_that_are_none() -> None:
    refused(with_kept(segments=["x", "y"]))


@pytest.mark.parametrize("number", [-1, 2**63, 2**64 - 1])
def test_numbers_of_outcomes_and_events(number: int) -> None:
    for name in ("outcomes_before", "events_before"):
        refused(encoded(msgspec.structs.replace(whole(), **{name: number})))


def test_outcomes_damaged_at_chance_are_refused_or_written() -> None:
    chance = np.random.default_rng(1)
    kept, written = whole().outcomes[0], 0
    for _ in range(TRIES):
        name = ("records", "keys", "key_sizes")[int(chance.integers(3))]
        try:
            publication = decoded(with_kept(**{name: damaged_bytes(getattr(kept, name), chance)}))
        except PublicationError:
            continue
        written += sum(len(part.written.ends) for part in publication.lines()) // 4
    assert 0 < written < TRIES

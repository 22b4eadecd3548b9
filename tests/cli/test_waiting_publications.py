"""Outcomes and events that topics may not have yet, as `state show` and `state verify` say it."""

from __future__ import annotations

import json

import pytest

from streamwatch.core.publishing.publications import encoded
from streamwatch.edge.stores.rocksdb.database import PUBLICATION_PREFIX, number_key
from tests.daemon.fake_transactions import publication
from tests.edge.stores.rocksdb.written_state import altering, put


def keep(directory, *publications):
    """Put publications into a state."""
    with altering(directory) as database:
        for each in publications:
            put(database, "meta", PUBLICATION_PREFIX + number_key(each.commit), encoded(each))


def test_what_waits_is_counted(streamwatch, directory):
    keep(directory, publication(8, 1, 3), publication(9, 4, 2))
    code, out, _ = streamwatch("show", "-d", directory, "--quick")
    assert code == 0
    assert "to be published  5 outcomes and 0 events of 2 commits, as far as their topics" in out
    _, out, _ = streamwatch("show", "-d", directory, "--json", "--quick")
    assert json.loads(out)["publications"] == {"commits": 2, "outcomes": 5, "events": 0}
    code, out, _ = streamwatch("verify", "-d", directory)
    assert (code, "✓ publications: 5 outcomes and 0 events for topics" in out) == (0, True)


def test_without_any_nothing_is_shown(streamwatch, directory):
    _, out, _ = streamwatch("show", "-d", directory, "--quick")
    assert "to be published" not in out


@pytest.mark.parametrize("first", [3, 5])
def test_a_gap_or_an_overlap_is_found(streamwatch, directory, first):
    keep(directory, publication(8, 1, 3), publication(9, first, 2))
    code, out, _ = streamwatch("verify", "-d", directory)
    assert code == 2
    assert (
        f"the publication of commit 9 begins after outcome {first - 1}, the one before it ends with 3" in out
    )


def test_one_that_cannot_be_read_is_found(streamwatch, directory):
    with altering(directory) as database:
        put(database, "meta", PUBLICATION_PREFIX + number_key(8), b"\x93")
    code, out, _ = streamwatch("verify", "-d", directory)
    assert code == 2
    assert "a publication cannot be decoded" in out

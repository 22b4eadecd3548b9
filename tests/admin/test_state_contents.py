"""A state that cannot be decoded is refused by the same words, whoever reads it."""

from __future__ import annotations

import re

import pytest

from streamwatch.admin.state_contents import UNREADABLE, reading, state_pasts
from streamwatch.admin.state_show import overview
from streamwatch.core.ports import CommitBatch
from streamwatch.edge.stores.kind import StateDamaged
from tests.core.join.join_stream import predict
from tests.edge.stores.rocksdb.joins import Life


@pytest.fixture
def directory(tmp_path):
    """A state with one commit."""
    life = Life(tmp_path / "state")
    life.feed(predict("a", "x"))
    life.commit()
    life.store.close()
    return tmp_path / "state"


def refusal(directory, error):
    """Match what is said of a state in whose contents an error came up."""
    return re.escape(f"the state in {directory} cannot be decoded ({error}") + ".*`streamwatch state verify`"


@pytest.mark.parametrize("error", UNREADABLE)
def test_every_error_of_decoding_says_that_the_state_is_damaged(directory, error):
    with pytest.raises(StateDamaged, match=refusal(directory, error.__name__)), reading(directory):
        raise error("bytes of another kind")


def test_other_errors_pass(directory):
    with pytest.raises(ZeroDivisionError), reading(directory):
        raise ZeroDivisionError


@pytest.mark.parametrize("read", [overview, state_pasts])
def test_a_value_that_is_not_what_a_commit_writes_is_named_damage(tmp_path, read):
    life = Life(tmp_path / "state")
    life.feed(predict("a", "x"))
    life.commit()
    life.store.commit(CommitBatch(models={"m": b"\xc1"}))
    life.store.close()
    with pytest.raises(StateDamaged, match=refusal(tmp_path / "state", "DecodeError")):
        read(tmp_path / "state")

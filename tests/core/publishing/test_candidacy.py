"""Who may speak: never two at a time, whatever is delayed, lost or stopped; and one again soon."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.publishing.candidacy import Candidacy, SessionSpec
from tests.tiers import examples

TIMEOUT = 6.0
SPEC = SessionSpec(TIMEOUT, margin=1.0, renewal=1.0)


@dataclass
class Request:
    """A renewal on its way to the group, or its answer on its way back."""

    replica: int
    generation: int
    term: int
    asked: float
    acknowledged: bool = False


@dataclass
class Group:
    """A consumer group as brokers keep it: it elects one, and forgets who says nothing for the timeout."""

    now: float = 0.0
    elected: int | None = None
    generation: int = 0
    heard: float = 0.0
    replicas: list[Candidacy] = field(default_factory=lambda: [Candidacy(SPEC), Candidacy(SPEC)])
    known: list[int] = field(default_factory=lambda: [0, 0])
    """Generation in which each replica knows that it was elected; 0 for none."""
    requests: list[Request] = field(default_factory=list)

    def expire(self) -> None:
        if self.elected is not None and self.now >= self.heard + TIMEOUT:
            self.elected = None

    def step(self, what: str, replica: int, seconds: float) -> None:
        self.now += seconds
        self.expire()
        candidacy = self.replicas[replica]
        if what == "elect" and self.elected is None:
            self.elected, self.generation, self.heard = replica, self.generation + 1, self.now
        elif what == "learn" and self.elected == replica and self.known[replica] != self.generation:
            self.known[replica] = self.generation
            candidacy.win(self.now - TIMEOUT)
            candidacy.open(candidacy.terms)
        elif what == "lose" and self.elected != replica:
            candidacy.lose()
        elif what == "ask" and candidacy.is_elected:
            self.requests.append(Request(replica, self.known[replica], candidacy.terms, self.now))
        elif what == "receive":
            for request in self.requests:
                if not request.acknowledged and request.replica == replica:
                    if request.generation == self.generation and self.elected == replica:
                        request.acknowledged, self.heard = True, self.now
                    else:
                        self.requests.remove(request)
                    break
        elif what == "answer":
            for request in self.requests:
                if request.acknowledged and request.replica == replica:
                    candidacy.renew(request.term, request.asked)
                    self.requests.remove(request)
                    break

    def speakers(self) -> list[int]:
        return [number for number, each in enumerate(self.replicas) if each.speaks(self.now)]


SECONDS = st.sampled_from((0.0, 0.0, 0.1, 0.5, 1.0, 3.0, 4.5, 5.5, 7.0))
STEPS = st.tuples(
    st.sampled_from(
        (
            ("elect", "learn", "ask", "receive", "answer"),
            ("ask", "receive", "answer"),
            *((step,) for step in ("elect", "learn", "lose", "ask", "receive", "answer", "wait")),
        )
    ),
    st.integers(0, 1),
    st.lists(SECONDS, min_size=5, max_size=5),
)
"""Some things that happen to a replica, one after the other, and the seconds before each."""


@settings(max_examples=examples(6), deadline=None)
@given(st.lists(STEPS, max_size=60))
def test_never_do_two_speak_and_who_speaks_is_the_one_elected(
    happened: list[tuple[tuple[str, ...], int, list[float]]],
) -> None:
    group = Group()
    for steps, replica, waits in happened:
        for what, seconds in zip(steps, waits, strict=False):
            group.step(what, replica, seconds)
            assert group.speakers() in ([], [group.elected])


def test_the_model_of_the_group_lets_both_speak_in_turn() -> None:
    group, heard = Group(), list[int]()
    for replica in (0, 1):
        for what in ("elect", "learn", "ask", "receive", "answer"):
            group.step(what, replica, 0.1)
        heard += group.speakers()
        group.step("wait", replica, TIMEOUT)
        assert group.speakers() == []
    assert heard == [0, 1]


def speaking(asked: float) -> Candidacy:
    candidacy = Candidacy(SPEC)
    candidacy.join()
    candidacy.win(asked)
    candidacy.open(candidacy.terms)
    return candidacy


def test_a_holder_is_silent_before_the_group_can_elect_another() -> None:
    candidacy = speaking(100.0)
    assert candidacy.role(104.9) == "holder"
    assert not candidacy.speaks(105.0)
    candidacy.renew(1, 103.0)
    assert candidacy.speaks(107.9)
    assert candidacy.role(108.0) == "standby"


def test_the_start_of_a_request_counts_and_not_its_answer() -> None:
    candidacy = speaking(100.0)
    candidacy.renew(1, 101.0)  # answered at 104
    assert not candidacy.speaks(106.0)


def test_an_answer_from_a_term_before_proves_nothing() -> None:
    candidacy = speaking(100.0)
    candidacy.lose()
    candidacy.win(90.0)
    candidacy.renew(1, 108.0)
    assert not candidacy.holds(109.0)


def test_who_has_not_read_the_ledger_in_this_term_says_nothing() -> None:
    candidacy = Candidacy(SPEC)
    assert candidacy.role(100.0) == "catching_up"
    candidacy.join()
    candidacy.win(100.0)
    candidacy.open(term=0)
    assert candidacy.role(100.1) == "taking_over"
    assert not candidacy.speaks(100.1)


def test_who_differs_is_elected_no_more() -> None:
    candidacy = speaking(100.0)
    candidacy.diverge("its outcomes differ")
    assert candidacy.role(100.1) == "diverged"
    assert not candidacy.is_elected
    candidacy.win(101.0)  # the group elected it before it had left
    assert not candidacy.is_elected


@pytest.mark.parametrize("margin", [0.0, 6.0, 7.0])
def test_a_margin_that_leaves_nothing_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="margin must be in"):
        SessionSpec(TIMEOUT, margin=margin)

"""`streamwatch gate` says whether a challenger is better, worse or neither, and what that rests on."""

from __future__ import annotations

import asyncio
import json
from functools import cache

import pytest

from streamwatch.cli import app
from streamwatch.cli.gate import Decision, NotCompared, decide
from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.metrics.series import Report
from streamwatch.core.records.events import Outcome, PairedAnswer
from streamwatch.core.specs import ComparisonSpec, LandmarkSpec, MonitorsSpec
from streamwatch.edge.daemon_api import Address, DaemonUnreachable, NotThere
from tests.commands import CliRunner
from tests.edge.test_daemon_api import answering
from tests.edge.web.http_faces import BEGAN_MS, FakeHealth, serving
from tests.edge.web.judged_pairs import CHAMPION, judged

SPEC = MonitorsSpec(forgetting=(LandmarkSpec(),), comparisons=(ComparisonSpec("old/1", ("*",)),))


@cache
def compared(**wins: float) -> Report:
    """Challengers of `old/1` by the share of 6,000 labels that they alone, or with −, it alone gets right."""
    comparisons = ComparisonSet(SPEC)
    for challenger, share in wins.items():
        every = round(1 / abs(share)) if share else 10**9
        outcomes: list[Outcome] = []
        for at in range(6_000):
            alone = at % every == every - 1
            own = "yes" if not alone or share > 0 else "no"
            other = "yes" if not alone or share < 0 else "no"
            pairs = (PairedAnswer("old/1", other),)
            outcomes.append(Outcome(challenger, "yes", own, 1_000 * at, 0, pairs=pairs))
        comparisons.fold(outcomes)
    return Report(comparisons.families(), BEGAN_MS, {})


def report() -> Report:
    """One that is better, one that is worse and one that is neither."""
    return compared(good=0.25, bad=-0.25, same=0.0)


async def asked(challenger: str, **options: float) -> Decision:
    async with serving(FakeHealth()) as server:
        server.publish(report())
        return await asyncio.to_thread(decide, Address(server.url), "old/1", challenger, **options)


async def test_a_verdict_comes_with_its_evidence_in_one_line() -> None:
    good, bad, same = [await asked(name) for name in ("good", "bad", "same")]
    assert [each.verdict for each in (good, bad, same)] == ["better", "worse", "open"]
    assert good.line.startswith("better: good beside old/1 since 1970-01-01T00:")
    assert "6,000 ids compared, lead +0.25" in good.line
    assert ", lead -0.25" in bad.line
    assert "evidence of 1 is a verdict: better 0." in same.line
    assert all("\n" not in each.line for each in (good, bad, same))
    assert good.document["challenger"] == "good"


async def test_too_few_ids_leave_it_open() -> None:
    decision = await asked("good", least_pairs=6_001)
    assert decision.verdict == "open"
    assert "6,000 ids compared (fewer than 6,001)" in decision.line


async def test_a_verdict_that_may_still_be_taken_back_counts_unless_a_confirmed_one_is_asked_for() -> None:
    early = judged("new", wins=40, losses=0, pairs=3_000, late=True)
    for comparisons, certainty, confirmed in (
        (judged("new", wins=40, losses=0), "confirmed", "better"),
        (early, "provisional: in the order of labels", "open"),
    ):
        async with serving(FakeHealth()) as server:
            server.publish(Report(comparisons.families(), BEGAN_MS, {}))
            address = Address(server.url)
            found = await asyncio.to_thread(decide, address, CHAMPION, "new")
            strict = await asyncio.to_thread(decide, address, CHAMPION, "new", confirmed=True)
        assert found.verdict == "better"
        assert found.line.startswith(f"better ({certainty}): new beside old/1 since ")
        assert strict.verdict == confirmed
    assert strict.line.startswith("open: new beside old/1, ")
    assert "ids compared, better but provisional: in the order of labels, lead +0." in strict.line


async def test_an_open_verdict_is_asked_for_again_until_the_time_is_over() -> None:
    pauses: list[float] = []
    async with serving(FakeHealth()) as server:
        server.publish(report())

        def passes(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 2:
                server.publish(compared(same=0.25))

        def decided() -> Decision:
            return decide(Address(server.url), "old/1", "same", 3_600.0, 0, passes, lambda: sum(pauses))

        assert (await asyncio.to_thread(decided)).verdict == "better"
        assert pauses == [10.0, 10.0]
        server.publish(report())
        pauses[:] = [0.0] * 5
        waited = await asyncio.to_thread(
            decide, Address(server.url), "old/1", "same", 25.0, 0, pauses.append, lambda: sum(pauses)
        )
        assert waited.verdict == "open"
        assert pauses[5:] == [10.0, 10.0, 5.0]


async def test_the_time_of_requests_counts_as_waited() -> None:
    clock = [0.0]

    def passes(seconds: float) -> None:
        clock.append(clock[-1] + seconds + 30.0)  # as if each request took half a minute

    async with serving(FakeHealth()) as server:
        server.publish(report())
        address = Address(server.url)
        await asyncio.to_thread(decide, address, "old/1", "same", 90.0, 0, passes, lambda: clock[-1])
    assert clock == [0.0, 40.0, 80.0, 120.0]


async def test_a_daemon_that_restarts_meanwhile_is_asked_again() -> None:
    body = json.dumps({"comparison": (await asked("same")).document}).encode()
    ended = await asked("good")
    last = json.dumps({"comparison": ended.document}).encode()
    answers = [body, DaemonUnreachable("nothing listens there"), NotThere("answered 404"), last]
    pauses: list[float] = []

    class Restarting(Address):
        def get(self, path: str) -> bytes:
            del path
            found = answers.pop(0)
            if isinstance(found, Exception):
                raise found
            return found

    address = Restarting("http://127.0.0.1:9")
    decision = decide(address, "old/1", "good", 60.0, 0, pauses.append, lambda: sum(pauses))
    assert (decision.verdict, pauses) == ("better", [10.0, 10.0, 10.0])
    answers[:] = [body, *(DaemonUnreachable("nothing listens there") for _ in range(9))]
    with pytest.raises(DaemonUnreachable, match="nothing listens there"):
        decide(address, "old/1", "good", 60.0, 0, pauses.append, lambda: sum(pauses))
    assert pauses[3:] == [10.0] * 6


async def test_models_that_are_not_compared_and_daemons_that_are_not_there_are_no_verdict() -> None:
    async with serving(FakeHealth()) as server:
        with pytest.raises(NotCompared, match=r"does not compare 'good' with 'old/1', or has met no id"):
            await asyncio.to_thread(decide, Address(server.url), "old/1", "good")
        url = server.url
    with pytest.raises(DaemonUnreachable, match="nothing listens there"):
        await asyncio.to_thread(decide, Address(url), "old/1", "good")


@pytest.mark.parametrize(("challenger", "code"), [("good", 0), ("bad", 1), ("same", 2), ("absent", 3)])
async def test_exit_codes_are_for_pipelines(challenger: str, code: int) -> None:
    async with serving(FakeHealth()) as server:
        server.publish(report())
        options = ["gate", "--champion", "old/1", "--challenger", challenger, "--url", server.url]
        found = await asyncio.to_thread(CliRunner().invoke, app, options)
    assert found.exit_code == code, found.output


def test_a_wrong_time_to_wait_is_named() -> None:
    found = CliRunner().invoke(app, ["gate", "--champion", "a", "--challenger", "b", "--wait", "soon"])
    assert found.exit_code == 2
    assert "--wait" in found.output


@pytest.mark.parametrize(
    "found",
    [
        "{}",
        '{"comparison": null}',
        '{"comparison": {}}',
        '{"comparison": {"pairs": 9, "verdict": "unsure"}}',
        '{"comparison": {"pairs": "many", "verdict": "better"}}',
        '{"comparison": {"pairs": 9, "verdict": "better", "champion": "a", "challenger": "b"}}',
    ],
)
def test_an_answer_with_other_contents_is_none_of_a_daemon(found: str) -> None:
    reply = b"HTTP/1.1 200 OK\r\n\r\n" + found.encode()
    with answering(reply) as url, pytest.raises(DaemonUnreachable, match="not an answer of streamwatch"):
        decide(Address(url), "a", "b")

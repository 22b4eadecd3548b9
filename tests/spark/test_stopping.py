"""SIGTERM and SIGINT to the job."""

from __future__ import annotations

import os
import signal

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`: make test-spark")

from streamwatch.assembly.spark import run_until_asked


class QueryOverOneConnection:
    """A query as Spark's Python reaches it: while a call waits for its answer, there can be no other."""

    def __init__(self, signals, error=None):
        self.signals = list(signals)
        self.error = error
        self.calling = self.stopped = False

    def awaitTermination(self, timeout=None):  # noqa: N802
        assert timeout is not None, "a signal is noticed between calls"
        self.calling = True
        if self.signals:
            os.kill(os.getpid(), self.signals.pop(0))
        self.calling = False
        if self.error is not None:
            raise self.error
        return not self.signals and not self.stopped and self.ends

    ends = False

    def stop(self):
        assert not self.calling, "the connection is lost"
        self.stopped = True


class QueryThatEnds(QueryOverOneConnection):
    ends = True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_query_once_the_call_at_hand_is_answered(number):
    before = signal.getsignal(number)
    query = QueryOverOneConnection([number])
    run_until_asked(query)
    assert query.stopped
    assert signal.getsignal(number) is before


def test_a_query_that_ends_by_itself_is_not_stopped():
    query = QueryThatEnds([])
    run_until_asked(query)
    assert not query.stopped


def test_the_error_of_a_query_is_raised():
    with pytest.raises(OSError, match="disk"):
        run_until_asked(QueryOverOneConnection([], OSError("disk")))

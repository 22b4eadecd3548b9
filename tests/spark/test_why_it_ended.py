"""What `streamwatch spark` says when a query ends or a broker is away, and whether another start helps."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`: make test-spark")

from streamwatch.assembly.spark import RETRY_SECONDS, JobFailed, JobRefused, explained, reached
from streamwatch.edge.sources.kafka import KafkaUnreachable

CHANGED = """[STREAM_FAILED] Query [id = 1] terminated with exception: Traceback (most recent call last):
  File "source.py", line 127, in latestOffset
    require_same_settings(last, self._first(last.life))
streamwatch.spark.reading.SettingsChangedError: spark.id_buckets: expected 4 as at the first start, got 5
 SQLSTATE: 38000
"""
BROKEN = """Job aborted due to stage failure: Traceback (most recent call last):
  File "reading.py", line 12, in read
    raise ValueError
ValueError: a first one

During handling of the above exception, another exception occurred:

streamwatch.edge.sources.kafka.checking.KafkaUnreachable: no answer from 127.0.0.1:9
"""


def test_settings_that_changed_are_a_line_that_says_what_to_change() -> None:
    found = explained(CHANGED)
    assert isinstance(found, JobRefused)
    assert str(found) == "spark.id_buckets: expected 4 as at the first start, got 5"


def test_another_error_is_a_failure_in_a_line() -> None:
    found = explained(BROKEN)
    assert isinstance(found, JobFailed)
    assert str(found) == (
        "a batch failed: KafkaUnreachable: no answer from 127.0.0.1:9; Spark's log has the rest"
    )
    assert "no reason was given" in str(explained(""))


def test_a_broker_that_comes_back_is_waited_for() -> None:
    slept: list[float] = []
    answers = iter([KafkaUnreachable("away"), KafkaUnreachable("away")])

    def begin() -> str:
        error = next(answers, None)
        if error is not None:
            raise error
        return "begun"

    assert reached(begin, slept.append) == "begun"
    assert slept == list(RETRY_SECONDS[:2])


def test_a_broker_that_stays_away_fails_the_start() -> None:
    slept: list[float] = []

    def begin() -> None:
        raise KafkaUnreachable("no broker at 127.0.0.1:9")

    with pytest.raises(JobFailed, match=r"no broker at 127\.0\.0\.1:9 \(tried 6 times\)"):
        reached(begin, slept.append)
    assert slept == list(RETRY_SECONDS)

"""Check of room for `streamwatch check`: the worst case in memory and on disk, and the state's directory."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from streamwatch.admin.capacity import (
    EARLY_HINTS_BYTES,
    SECTION_BYTES,
    DiskSpec,
    Part,
    model_bytes,
    worst_case,
    worst_case_disk,
)
from streamwatch.cli import app
from streamwatch.core.estimators.registers.late_labels.accuracy import estimates_of
from streamwatch.core.estimators.registers.late_labels.observe import geometry_of
from streamwatch.core.estimators.registers.late_labels.register import LATE_LABELS_BYTES, LateLabelsSpec
from streamwatch.core.estimators.registers.late_labels.ring import LabelRing
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.layout import allocate_side, side_columns
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.predictions.early_hints.observe import EarlyHintsSpec
from streamwatch.core.records.events import Prediction
from streamwatch.core.specs import ComparisonSpec, JoinSpec, MonitorsSpec, side_bytes
from streamwatch.edge.keys import digest_bytes
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from streamwatch.edge.stores.rocksdb.database import SCHEMA
from tests.commands import CliRunner
from tests.daemon.fake_alerting import FakeDaemon, alarm

NOWHERE = ["-s", "kafka.bootstrap_servers=127.0.0.1:1", "-s", "topics.predictions=p", "-s", "topics.labels=l"]


@pytest.fixture
def streamwatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """Runs commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return CliRunner()


def total(parts: list[Part]) -> int:
    return sum(part.bytes for part in parts)


DISK = DiskSpec(RocksSpec(Path("state")), journal_outcomes=200_000, table_entries=1_000_000)
LIMITS = ("max_pending", "max_labels", "max_dedup_entries")


IN_MEMORY = [
    (JoinSpec(), 96),
    (JoinSpec(order="prediction_time"), 96),
    (JoinSpec(comparisons=(ComparisonSpec("a", ("b",)),)), 96),
]


@pytest.mark.parametrize(("spec", "measured"), IN_MEMORY)
@pytest.mark.parametrize("limit", LIMITS)
def test_the_worst_case_in_memory_grows_with_every_limit_where_state_is_in_memory(
    limit: str, spec: JoinSpec, measured: int
) -> None:
    def most(count: int) -> int:
        join = replace(spec, **{limit: count})
        return total(worst_case(join, MonitorsSpec()))

    assert most(10_000_000) - most(5_000_000) > 5_000_000 * measured


@pytest.mark.parametrize("limit", LIMITS)
def test_with_state_on_disk_its_limits_bound_the_disk_and_memory_hardly_grows_with_them(limit: str) -> None:
    small, large = JoinSpec(**{limit: 5_000_000}), JoinSpec(**{limit: 500_000_000})
    more = total(worst_case(large, MonitorsSpec(), DISK)) - total(worst_case(small, MonitorsSpec(), DISK))
    assert more == 495_000_000 * 2, "filters"
    grown = total(worst_case_disk(large, MonitorsSpec(), DISK))
    assert grown - total(worst_case_disk(small, MonitorsSpec(), DISK)) > 495_000_000 * 40


def test_the_table_of_the_join_takes_twice_its_entries_while_it_grows() -> None:
    assert any(part.bytes == 2_000_000 * 110 for part in worst_case(JoinSpec(), MonitorsSpec(), DISK))


def test_the_past_of_models_is_bounded_by_days_and_models_in_memory_and_on_disk() -> None:
    ten = MonitorsSpec(max_models=10)
    for days, slots in ((1, 240 + 288 + 24), (30, 240 + 288 + 720)):
        parts = [
            *worst_case(JoinSpec(), replace(ten, history_days=days)),
            *worst_case_disk(JoinSpec(), replace(ten, history_days=days), DISK),
        ]
        shown = [part for part in parts if "monitors.history_days" in part.what]
        assert len(shown) == 2
        assert all(10 * 24 * slots <= part.bytes <= 10 * (24 * slots + 20_000) for part in shown)
        assert shown[0].what.startswith(f"{days} days of the past of 10 models")
    none = worst_case(JoinSpec(), replace(ten, history_days=0))
    assert not any("history_days" in part.what for part in none)


async def test_the_sections_that_a_commit_is_compared_with_are_counted() -> None:
    name = "{:0128}".format  # as long as a name may be
    daemon = FakeDaemon()
    daemon.find(*[alarm(name(n)) for n in range(50)])
    await daemon.rests()
    sections = daemon.model_store.saved().sections
    pipeline = Pipeline(JoinSpec(), EstimatorSet(MonitorsSpec()), digest_bytes)
    pipeline.advance([Prediction(f"{n}", name(n), "a", 1_000) for n in range(50)])
    kept = sum(map(len, sections.values())) + len(pipeline.snapshot())
    assert 0.5 * 50 * SECTION_BYTES < kept < 50 * SECTION_BYTES
    fifty, hundred = MonitorsSpec(max_models=50), MonitorsSpec(max_models=100)
    for disk in (None, DISK):
        less, more = (_sections_of(worst_case(JoinSpec(), spec, disk)) for spec in (fifty, hundred))
        assert (less, more) == (50 * SECTION_BYTES, 100 * SECTION_BYTES)
    hints = JoinSpec(prediction_registers=(EarlyHintsSpec(max_models=10),))
    assert _sections_of(worst_case(hints, fifty)) == less + 10 * EARLY_HINTS_BYTES
    compared = replace(fifty, comparisons=(ComparisonSpec("a", ("b",)),), max_comparisons=10)
    assert _sections_of(worst_case(JoinSpec(), compared)) > less + 10 * 1_000


def _sections_of(parts: list[Part]) -> int:
    (found,) = [part.bytes for part in parts if part.what.startswith("sections of the last commit")]
    return found


def test_the_worst_case_grows_with_classes_and_with_what_waits_for_its_order() -> None:
    assert model_bytes(MonitorsSpec(max_classes=1_000)) > 10 * model_bytes(MonitorsSpec(max_classes=10))
    ordered = JoinSpec(order="prediction_time")
    assert total(worst_case(ordered, MonitorsSpec(), DISK)) > total(
        worst_case(JoinSpec(), MonitorsSpec(), DISK)
    )
    assert total(worst_case_disk(ordered, MonitorsSpec(), DISK)) > total(
        worst_case_disk(JoinSpec(), MonitorsSpec(), DISK)
    )
    compared = replace(ordered, comparisons=(ComparisonSpec("a", ("b", "c")), ComparisonSpec("b", ("c",))))
    pairs = total(worst_case(compared, MonitorsSpec(), DISK)) - total(
        worst_case(ordered, MonitorsSpec(), DISK)
    )
    assert pairs == 2 * 24 * compared.max_reordered


# What `check` says of the directory for state.


def checked(streamwatch: CliRunner, *overrides: str) -> tuple[int, str]:
    settings = [part for override in overrides for part in ("-s", override)]
    result = streamwatch.invoke(app, ["check", *NOWHERE, *settings])
    return result.exit_code, result.output


def test_check_says_that_state_begins_anew_and_creates_nothing(
    streamwatch: CliRunner, tmp_path: Path
) -> None:
    _, shown = checked(streamwatch)
    assert "✓ state in streamwatch-state: begins anew\n" in shown
    assert re.search(r"✓ worst-case disk: \d", shown)
    assert list(tmp_path.iterdir()) == []


def test_check_says_which_state_goes_on(streamwatch: CliRunner, tmp_path: Path) -> None:
    store = RocksStore.open(RocksSpec(tmp_path / "streamwatch-state", 1, 1))
    identity = store.identity
    store.close()
    _, shown = checked(streamwatch)
    assert f"✓ state in streamwatch-state: goes on from {identity}, " in shown


def test_check_finds_a_directory_that_cannot_hold_state(streamwatch: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "holiday.jpg").write_bytes(b"")
    code, shown = checked(streamwatch, "state.directory=pictures")
    assert code == 2
    assert "✗ state.directory: pictures is not empty and holds no state (there is 'holiday.jpg')\n" in shown


def test_check_finds_a_state_of_a_newer_version(streamwatch: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "format.json").write_text('{"schema": 99, "identity": "x"}')
    code, shown = checked(streamwatch, "state.directory=state")
    assert code == 2
    assert f"✗ state.directory: the state in state has schema 99, this program knows up to {SCHEMA}" in shown


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            None,
            "the state in state could not be read or written: [Errno 21] Is a directory: 'state/format.json'",
        ),
        ("{", "the state is damaged: state/format.json is"),
    ],
)
def test_check_names_the_setting_of_a_state_that_cannot_be_read(
    streamwatch: CliRunner, tmp_path: Path, content: str | None, problem: str
) -> None:
    file = tmp_path / "state" / "format.json"
    if content is None:
        file.mkdir(parents=True)
    else:
        file.parent.mkdir()
        file.write_text(content)
    code, shown = checked(streamwatch, "state.directory=state")
    assert code == 2
    assert f"✗ state.directory: {problem}" in shown


def test_check_says_once_that_the_directory_of_the_state_is_a_file(
    streamwatch: CliRunner, tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("")
    code, shown = checked(streamwatch, "state.directory=state")
    assert code == 2
    assert shown.count("✗ state") == 1
    assert "✗ state.directory: state is not a directory: name another in `state.directory`" in shown


def test_check_says_who_can_read_over_http(streamwatch: CliRunner, tmp_path: Path) -> None:
    assert "HTTP" not in checked(streamwatch)[1]
    shown = checked(streamwatch, "http.listen=0.0.0.0:9877")[1]
    assert "✓ HTTP at 0.0.0.0:9877 can be reached from other machines\n  no token is required" in shown
    (tmp_path / "token").write_text("a" * 40)
    shown = checked(streamwatch, "http={listen: '0.0.0.0:9877', token_file: token}")[1]
    assert "other machines\n  the token crosses the network in the clear (http.tls)\n" in shown


def test_check_finds_a_state_that_this_version_cannot_go_on_from(
    streamwatch: CliRunner, tmp_path: Path
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "format.json").write_text('{"schema": 1, "identity": "x"}')
    code, shown = checked(streamwatch, "state.directory=state")
    assert code == 2
    assert "✗ state.directory: the state in state has schema 1" in shown
    assert "to start afresh" in shown


def test_check_finds_a_disk_that_is_nearly_full(streamwatch: CliRunner) -> None:
    code, shown = checked(streamwatch, "state.min_free_megabytes=1000000000")
    assert code == 2
    assert re.search(r"✗ state\.directory: \S+ \wB are free on the disk of .*reading pauses below", shown)


def test_check_says_when_the_disk_is_smaller_than_the_limits(streamwatch: CliRunner) -> None:
    _, shown = checked(streamwatch, "join.max_pending=1000000000000")
    assert "less than the worst case: reading would pause when the state takes" in shown


def test_check_finds_a_directory_it_may_not_write(
    streamwatch: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda _path, _mode: False)
    code, shown = checked(streamwatch)
    assert code == 2
    assert re.search(r"✗ state\.directory: .* cannot be written by user \d+\n", shown)


def test_check_finds_a_directory_that_is_on_no_disk(streamwatch: CliRunner) -> None:
    code, shown = checked(streamwatch, "state.directory=/proc/streamwatch")
    assert code == 2
    assert re.search(r"✗ state\.directory: /proc (is on no disk: expected|cannot be written)", shown)
    assert "are free" not in shown


def test_state_in_memory_needs_no_room_on_disk(streamwatch: CliRunner) -> None:
    _, shown = checked(streamwatch, "state.kind=memory")
    assert "✓ state in memory: a restart reads the topics again\n" in shown
    assert "worst-case disk" not in shown


def test_late_labels_count_by_model_in_memory_and_on_disk() -> None:
    monitors = replace(MonitorsSpec(), max_models=10, registers=(LateLabelsSpec(),))
    for parts in (worst_case(JoinSpec(), monitors), worst_case_disk(JoinSpec(), monitors, DISK)):
        (shown,) = [part for part in parts if part.what.startswith("late labels of 10 models")]
        assert shown.bytes == 10 * LATE_LABELS_BYTES
    assert not any("late labels" in part.what for part in worst_case(JoinSpec(), MonitorsSpec()))


def test_a_full_ring_and_its_snapshot_are_within_those_bytes() -> None:
    ring = LabelRing(1, geometry_of(100_000))
    own = ring._counts.nbytes + ring._buckets.nbytes + ring._newest_ms.nbytes
    (estimate,) = estimates_of(ring, np.zeros(1, np.int64))
    own += estimate.outcomes.nbytes + estimate.weights.nbytes + estimate.shares.nbytes
    assert own <= LATE_LABELS_BYTES
    now = 1_760_000_000_000
    ring._counts[:] = 2**31 - 1
    ring._buckets[0] = ring._newest_ms[0] = now
    assert (
        len(msgspec.msgpack.encode(next(iter(ring.snapshots(np.zeros(1, np.int64))))))
        <= 1.1 * LATE_LABELS_BYTES
    )


@pytest.mark.parametrize("conflicts", ["first", "last", "both"])
@pytest.mark.parametrize("carried", [(), ("sampling",)])
def test_bytes_beside_an_entry_are_those_of_its_columns(conflicts, carried) -> None:
    spec = JoinSpec(conflicts=conflicts, carried=carried)
    columns = allocate_side(10, len(side_columns(spec))).nbytes // 10
    revised = 4 * (conflicts != "first")  # its entry in the list of predictions revised since a commit
    assert side_bytes(spec) == columns + revised

"""A file read in columns gives what it gives row by row: estimates, alarms, counts, unusable lines."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import fields
from datetime import UTC, datetime
from random import Random

import pytest

from streamwatch.core.merge import timestamps
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import ComparisonSpec, JoinSpec
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.history.outcome_rows import lines as line_buffer
from streamwatch.history.outcome_rows import plan as times
from streamwatch.history.outcome_rows import rows
from streamwatch.history.recordings import partitions
from streamwatch.history.recordings.file import RecordingError
from streamwatch.history.recordings.lines import CsvColumns
from streamwatch.history.replay import replay
from streamwatch.history.replay.replay import Player, ReplaySpec, default_topics
from tests.tiers import by_tier, seeds

SEEDS = seeds(0, by_tier(fast=4, default=60, everything=3_000))
TIMED = {"seconds", "compile_seconds"}
HEADER = "id,model,prediction,label,timestamp"
START_MS = 1_700_000_000_000


@pytest.fixture(name="small")
def _small(monkeypatch):
    """All limits so small that files of a few hundred rows pass them."""
    for name, value in {"LOOK_AHEAD": 20, "_ROWS": 64, "_FIRST_ROWS": 40, "_HEAD": 50, "_ODD": 4}.items():
        monkeypatch.setattr(rows, name, value)
    monkeypatch.setattr(line_buffer, "_READ_BYTES", 4_000)
    monkeypatch.setattr(times, "LOOK_AHEAD", 20)
    monkeypatch.setattr(timestamps, "LOOK_AHEAD", 20)
    monkeypatch.setattr(partitions, "CHUNK", 50)


def both_ways(path, monkeypatch, **given):
    """What a file gives in columns, and row by row; and how many of its rows were taken in columns.

    Outcomes are the same both ways, to every field.
    """
    taken = []
    seen, seen_by_rows = [], []
    take = Player.take

    def counted(player, part, partition):
        taken.append(len(part.offsets))
        take(player, part, partition)

    with monkeypatch.context() as patched:
        patched.setattr(Player, "take", counted)
        in_columns = replay.replay(ReplaySpec([path], seen=seen.extend, **given))
    with monkeypatch.context() as patched:
        patched.setattr(replay, "_in_columns", lambda *_: None)
        by_rows = replay.replay(ReplaySpec([path], seen=seen_by_rows.extend, **given))
    assert list(map(values_of, seen)) == list(map(values_of, seen_by_rows))
    return in_columns, by_rows, sum(taken)


def values_of(outcome):
    """Fields of an outcome, without the id that a recorded one has."""
    return tuple(getattr(outcome, name) for name in Outcome.__struct_fields__)


def assert_equal(one, other):
    for field in fields(one):
        if field.name not in TIMED:
            assert repr(getattr(one, field.name)) == repr(getattr(other, field.name)), field.name


def row(chance, number, at_ms):
    """One line; most are ordinary."""
    model, true = chance.choice("mn"), chance.choice("abc")
    predicted = true if chance.random() < 0.8 else chance.choice("abc")
    return [f"i{number}", model, predicted, true, str(at_ms)]


def hostile(chance, cells):
    """Change one cell, or the line, into something that a file may hold."""
    column = chance.randrange(5)
    match chance.randrange(9):
        case 0:
            cells[column] = ""
        case 1:
            cells[column] = chance.choice(("é", "a b", "x" * 200, "\x7f", "\t", "1e3", "-1", "0", "01"))
        case 2:
            cells[4] = chance.choice(("2023-11-14T22:13:20Z", "99999999999999999999", "1700000000000.5", "0"))
        case 3:
            cells.append("more")
        case 4:
            return ""
        case 5:
            cells[column] = f"name-{chance.randrange(30)}"
        case 6:
            del cells[column]
        case 7:
            cells[2] = ""
        case _:
            cells[4] = ""
    return ",".join(cells)


def written(chance, path, *, count, oddness, quotes=False, jumps=False):
    """A file of which a share is not ordinary."""
    at_ms, lines = START_MS, [HEADER]
    for number in range(count):
        at_ms += chance.choice((0, 1, 40, 1_000, -5))
        if jumps and chance.random() < 0.01:
            at_ms += chance.choice((7 * 86_400_000, 3_600_000, 400_000))
        cells = row(chance, number, at_ms)
        if jumps and chance.random() < 0.01:
            cells[4] = str(chance.choice((at_ms + 86_400_000, 253_402_300_799_999, 5, at_ms - 10**9)))
        line = hostile(chance, cells) if chance.random() < oddness else ",".join(cells)
        lines.append(f'"q",{line[2:]}' if quotes and chance.random() < 0.004 else line)
    end = chance.choice(("\n", "\r\n"))
    text = end.join(lines) + chance.choice(("", end))
    path.write_bytes(text.encode())


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", SEEDS)
def test_any_file_gives_what_it_gives_row_by_row(seed, tmp_path, monkeypatch):
    chance = Random(seed)
    path = tmp_path / "outcomes.csv"
    oddness = chance.choice((0.0, 0.02, 0.3, 1.0))
    written(
        chance,
        path,
        count=chance.choice((0, 1, 30, 400)),
        oddness=oddness,
        quotes=seed % 5 == 0,
        jumps=seed % 3 == 0,
    )
    assert_equal(*both_ways(path, monkeypatch)[:2])


JSON_VALUES = (
    *(
        "1",
        "-1",
        "1.0",
        "1.5",
        "01",
        "1e3",
        "-0",
        "true",
        "false",
        "null",
        '"é"',
        '"a\\n"',
        '"a\\u0062"',
        '""',
        '"1"',
    ),
    *(
        "[1]",
        '{"a": 1}',
        "nul",
        "+1",
        "1.",
        ".5",
        '"a',
        "123456789012345678901",
        '"' + "x" * 200 + '"',
        '"\x7f"',
    ),
)


def json_line(chance, number, at_ms, oddness):
    """One object, of which something may not be ordinary."""
    true = chance.choice(('"a"', '"b"', "true", "1"))
    predicted = true if chance.random() < 0.8 else chance.choice(('"a"', "1"))
    cells = {
        "id": chance.choice((f'"i{number}"', str(number))),
        "model": f'"{chance.choice("mn")}"',
        "prediction": predicted,
        "label": true,
        "timestamp": chance.choice((str(at_ms), f'"{at_ms}"')),
        "note": chance.choice(('"x y"', "null", "-1.25", "true", '"{"')),
    }
    if chance.random() < oddness:
        name = chance.choice(list(cells))
        match chance.randrange(7):
            case 0:
                del cells[name]
            case 1:
                cells["scores"] = chance.choice(("null", '{"a": 0.5, "b": 0.5}', "1"))
            case 2:
                return chance.choice(("", "{}", "[]", "null", "{", '{"id"}', "  ", '{"id":1,}', "1"))
            case 3:
                cells[f"{name} "] = cells[name]
            case _:
                cells[name] = chance.choice(JSON_VALUES)
    pairs = [(f'"{name}"', value) for name, value in cells.items()]
    if chance.random() < oddness / 4:
        pairs.append(chance.choice(pairs))
    if chance.random() < 0.2:
        chance.shuffle(pairs)
    comma, colon = chance.choice(((",", ":"), (", ", ": "), (" , ", " : "), (",\t", ":")))
    line = "{" + comma.join(f"{name}{colon}{value}" for name, value in pairs) + "}"
    return line + chance.choice(("", "", " ", "\r", " }"[: chance.random() < oddness / 9]))


def written_json(chance, path, *, count, oddness, jumps=False):
    """JSON lines of which a share is not ordinary."""
    at_ms, lines = START_MS, []
    for number in range(count):
        at_ms += chance.choice((0, 1, 40, 1_000, -5))
        far = chance.choice((86_400_000, 10**14)) if jumps and chance.random() < 0.01 else 0
        lines.append(json_line(chance, number, at_ms + far, oddness))
    mark = b"\xef\xbb\xbf" if chance.random() < 0.2 else b""
    path.write_bytes(mark + ("\n".join(lines) + chance.choice(("", "\n"))).encode())


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", SEEDS)
def test_any_json_lines_give_what_they_give_row_by_row(seed, tmp_path, monkeypatch):
    chance = Random(seed)
    path = tmp_path / "outcomes.jsonl"
    oddness = chance.choice((0.0, 0.02, 0.3, 1.0))
    written_json(chance, path, count=chance.choice((0, 1, 30, 400)), oddness=oddness, jumps=seed % 3 == 0)
    assert_equal(*both_ways(path, monkeypatch)[:2])


def test_json_lines_of_outcomes_are_read_in_columns_to_their_end(tmp_path, monkeypatch):
    path = tmp_path / "outcomes.jsonl"
    written_json(Random(3), path, count=5_000, oddness=0.0)
    in_columns, by_rows, taken = both_ways(path, monkeypatch)
    assert_equal(in_columns, by_rows)
    assert taken == in_columns.lines == 5_000


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.usefixtures("small")
def test_times_as_text_are_read_in_columns(ending, tmp_path, monkeypatch):
    chance = Random(8)
    lines = [HEADER] if ending == "csv" else []
    for number in range(300):
        moment = datetime.fromtimestamp(START_MS / 1_000 + number, UTC).isoformat()
        cells = [*row(chance, number, 0)[:4], moment]
        named = dict(zip(HEADER.split(","), cells, strict=True))
        lines.append(",".join(cells) if ending == "csv" else json.dumps({"at": {"x": [1]}, **named}))
    path = tmp_path / f"outcomes.{ending}"
    path.write_text("\n".join(lines))
    topics = default_topics(TopicMapping(timestamp_unit="iso8601"))
    in_columns, by_rows, taken = both_ways(path, monkeypatch, topics=topics)
    assert_equal(in_columns, by_rows)
    assert taken == 300


@pytest.mark.parametrize(
    "line", ['{"topic":"t","partition":0,"offset":3,"payload":"{}"}', '{"id":"a","label":"x"}']
)
def test_lines_that_hold_no_outcome_are_read_row_by_row(line, tmp_path, monkeypatch):
    path = tmp_path / "events.jsonl"
    path.write_text(f"{line}\n" * 30)
    in_columns, by_rows, taken = both_ways(path, monkeypatch)
    assert_equal(in_columns, by_rows)
    assert taken == 0


@pytest.mark.parametrize("oddness", [0.0, 0.01])
def test_a_file_of_outcomes_is_read_in_columns_to_its_end(oddness, tmp_path, monkeypatch):
    path = tmp_path / "outcomes.csv"
    written(Random(7), path, count=5_000, oddness=oddness)
    in_columns, by_rows, taken = both_ways(path, monkeypatch)
    assert_equal(in_columns, by_rows)
    assert taken == in_columns.lines - sum(
        count for reason, count in in_columns.bad.items() if reason == "wrong_number_of_columns"
    )


def test_sparse_times_are_believed_in_columns(tmp_path, monkeypatch):
    path = tmp_path / "outcomes.csv"
    lines = [f"i{k},m,a,{'ab'[k % 3 == 0]},{START_MS + k * 1_800_000}" for k in range(3_000)]
    path.write_text("\n".join([HEADER, *lines]))
    in_columns, by_rows, taken = both_ways(path, monkeypatch)
    assert_equal(in_columns, by_rows)
    assert taken == 3_000


def test_a_time_of_the_year_9999_is_left_to_the_merge_with_all_that_follows(tmp_path, monkeypatch):
    path = tmp_path / "outcomes.csv"
    times = [START_MS + k for k in range(5_000)]
    times[2_500] = 253_402_300_799_999
    path.write_text("\n".join([HEADER, *(f"i{k},m,a,a,{at}" for k, at in enumerate(times))]))
    in_columns, by_rows, taken = both_ways(path, monkeypatch)
    assert_equal(in_columns, by_rows)
    assert taken == 2_500


def test_lines_that_are_no_records_are_not_among_those_asked_about_a_jump(tmp_path, monkeypatch):
    """The 995th record after the jump contradicts it, behind ten lines that are none."""
    path = tmp_path / "outcomes.csv"
    lines = [f"i{k},m,a,{'ab'[k % 3 == 0]},{START_MS + k + 3_600_000 * (k >= 1_047)}" for k in range(5_000)]
    lines[1_050:1_060] = ["too,few"] * 10
    lines[1_047 + 995 + 10] = f"i,m,a,a,{START_MS}"
    path.write_text("\n".join([HEADER, *lines]))
    in_columns, by_rows, taken = both_ways(path, monkeypatch)
    assert_equal(in_columns, by_rows)
    assert taken == 1_047


@pytest.mark.parametrize(
    ("header", "mapping"),
    [
        ("id,model,prediction,label,timestamp,scores", TopicMapping()),
        ("id,model,prediction,label,fold", TopicMapping()),
        ("id,model,prediction,label,scores.a", TopicMapping()),
        ("id,model,prediction,label,country", TopicMapping(segments={"country": "value.country"})),
        ("id,model,prediction,label,pi", TopicMapping(label_probability="value.pi")),
        ("id,model,prediction,label,kind", TopicMapping(when={"value.kind": ("x",)})),
        ("id,model,prediction,timestamp", TopicMapping()),
        ("id,model,prediction", TopicMapping(label="=fraud")),
    ],
)
def test_files_with_more_in_a_row_are_read_row_by_row(header, mapping, tmp_path, monkeypatch):
    path = tmp_path / "outcomes.csv"
    lines = [",".join(f"{name}{k}" for name in header.split(",")) for k in range(20)]
    path.write_text("\n".join([header, *lines]))
    in_columns, by_rows, taken = both_ways(path, monkeypatch, topics=default_topics(mapping))
    assert_equal(in_columns, by_rows)
    assert taken == 0


def test_columns_may_have_other_names_and_a_constant_model(tmp_path, monkeypatch):
    path = tmp_path / "outcomes.csv"
    lines = [f"{k},{'ab'[k % 2]},note {k},{'ab'[k % 3 == 0]},{1_700_000_000 + k}" for k in range(3_000)]
    path.write_text("\n".join(["key,y_hat,remark,y,at", *lines]))
    mapping = TopicMapping(
        id="value.key",
        model="=v3",
        prediction="value.y_hat",
        label="value.y",
        timestamp="value.at",
        timestamp_unit="s",
    )
    given = {"topics": default_topics(mapping), "columns": CsvColumns(("key",), ("y_hat", "y"), ())}
    in_columns, by_rows, taken = both_ways(path, monkeypatch, **given)
    assert_equal(in_columns, by_rows)
    assert taken == 3_000
    assert list(in_columns.details) == ["v3"]


def test_packed_files_and_byte_order_marks_are_read_in_columns(tmp_path, monkeypatch):
    path = tmp_path / "outcomes.csv.gz"
    text = "\r\n".join([HEADER, *(f"i{k},m,a,{'ab'[k % 2]}," for k in range(2_500))])
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    in_columns, by_rows, taken = both_ways(path, monkeypatch)
    assert_equal(in_columns, by_rows)
    assert taken == 2_500


def test_a_packed_file_that_breaks_off_is_refused_with_the_line(tmp_path):
    path = tmp_path / "outcomes.csv.gz"
    chance = Random(0)
    lines = [f"{chance.random()},m,a,{'ab'[k % 2]}," for k in range(20_000)]
    half = gzip.compress("\n".join([HEADER, *lines]).encode())[:100_000]
    path.write_bytes(half)
    whole_lines = zlib.decompressobj(31).decompress(half).count(b"\n")
    with pytest.raises(RecordingError, match=f"breaks off after line {whole_lines}:"):
        replay.replay(ReplaySpec([path]))


def test_comparisons_and_traces_are_made_row_by_row(tmp_path, monkeypatch):
    path = tmp_path / "outcomes.csv"
    lines = [f"i{k // 2},{'mn'[k % 2]},a,{'ab'[k % 4 == 0]}," for k in range(2_000)]
    path.write_text("\n".join([HEADER, *lines]))
    compared = JoinSpec(comparisons=(ComparisonSpec("m", ("n",)),))
    assert both_ways(path, monkeypatch, join=compared)[2] == 0
    assert both_ways(path, monkeypatch, trace=tmp_path / "trace.csv")[2] == 0

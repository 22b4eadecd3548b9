"""The page of speeds shows what was measured."""

from __future__ import annotations

import json

from tests.bench.peers.__main__ import put
from tests.bench.peers.table import MEASURED, PAGE, README, markdown, summary, with_table

DOCUMENT = {
    "date": "2026-01-02",
    "machine": {"processor": "one", "cores": 2, "python": "3.11.7", "load": 0.1},
    "broker": "Apache Kafka",
    "scenarios": [
        {
            "name": "thin",
            "title": "thin",
            "cpu_us": {"bare": [2.0, 1.0], "daemon": [1.5], "quix": [30.0, 40.0]},
        },
    ],
}


def test_a_cell_is_the_lowest_run_beside_the_lowest_of_the_bare_loop():
    last = markdown(DOCUMENT).splitlines()[-1]
    assert last == "| thin | 1.00 µs | – | 1.50× | – | 30.00× |"


def test_a_steady_state_alone_is_a_table_alone():
    last = markdown({"steady": DOCUMENT}).splitlines()[-1]
    assert last == "| thin | 1.00 µs | 1.50× | – |"


def test_a_line_of_the_summary_has_the_multiples_alone():
    assert summary(DOCUMENT).splitlines()[2] == "| 3 models, 85-byte messages | 1.50× | – | 30.00× |"


def test_the_summary_says_what_a_further_message_of_a_long_stream_costs():
    steady = {
        **DOCUMENT,
        "scenarios": [
            {"name": "thin", "title": "thin", "cpu_us": {"bare": [2.0], "daemon": [1.0], "durable": [3.0]}},
            {"name": "iso", "title": "ISO", "cpu_us": {"bare": [2.0], "daemon": [9.0]}},
        ],
    }
    lines = summary({**DOCUMENT, "steady": steady}).splitlines()
    assert lines[3] == "| the third and later millions of 3 models, 85-byte messages | 0.50× | 1.50× | – |"
    assert lines[4:] == ["| worst of 3 rows: ISO | 4.50× | – | – |"]


def test_the_last_line_of_the_summary_is_where_the_daemon_takes_the_largest_multiple():
    worse = {"name": "avro", "title": "Avro", "cpu_us": {"bare": [2.0], "daemon": [3.0], "durable": [3.2]}}
    slow_peer = {"name": "zstd", "title": "zstd", "cpu_us": {"bare": [1.0], "daemon": [1.4], "quix": [90.0]}}
    document = {**DOCUMENT, "scenarios": [*DOCUMENT["scenarios"], worse, slow_peer]}
    assert summary(document).splitlines()[2:] == [
        "| 3 models, 85-byte messages | 1.50× | – | 30.00× |",
        "| worst of 3 rows: Avro | 1.50× | 1.60× | – |",
    ]


def test_the_pages_hold_the_tables_of_what_was_measured():
    document = json.loads(MEASURED.read_text())
    for path, made in ((PAGE, markdown), (README, summary)):
        text = path.read_text()
        assert with_table(text, made(document)) == text


def test_a_second_table_has_the_steady_state():
    steady = {
        **DOCUMENT,
        "scenarios": [{"name": "iso", "title": "ISO", "cpu_us": {"bare": [2.0], "daemon": [1.0]}}],
    }
    lines = markdown({**DOCUMENT, "steady": steady}).splitlines()
    assert lines[-1] == "| ISO | 2.00 µs | 0.50× | – |"
    assert lines[4] == "| thin | 1.00 µs | – | 1.50× | – | 30.00× |"


def test_a_row_measured_again_takes_the_place_of_the_one_before_and_a_new_one_stands_in_order():
    rows = [{"name": "thin"}, {"name": "hundred"}, {"name": "late"}]
    put(rows, {"name": "hundred", "again": True})
    put(rows, {"name": "fat"})
    assert rows == [{"name": "thin"}, {"name": "fat"}, {"name": "hundred", "again": True}, {"name": "late"}]

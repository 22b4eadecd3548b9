"""The page of speeds shows what was measured."""

from __future__ import annotations

import json

from tests.bench.peers.table import MEASURED, PAGE, markdown, page

DOCUMENT = {
    "date": "2026-01-02",
    "machine": {"processor": "one", "cores": 2, "python": "3.11.7", "load": 0.1},
    "broker": "Apache Kafka",
    "scenarios": [
        {"title": "thin", "cpu_us": {"bare": [2.0, 1.0], "daemon": [1.5], "quix": [30.0, 40.0]}},
    ],
}


def test_a_cell_is_the_lowest_run_beside_the_lowest_of_the_bare_loop():
    last = markdown(DOCUMENT).splitlines()[-1]
    assert last == "| thin | 1.00 µs | – | 1.50× | – | – | 30.00× |"


def test_the_page_holds_the_table_of_what_was_measured():
    text = PAGE.read_text()
    assert page(text, json.loads(MEASURED.read_text())) == text

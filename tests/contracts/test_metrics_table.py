"""Nothing is exported that is not in the table of metrics, and nothing is in it that is not exported."""

from __future__ import annotations

import ast
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import streamwatch
from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.pacing import Pacing, PacingSpec
from streamwatch.core.alerting.rules import AlarmsSpec
from streamwatch.core.estimators import catalogue
from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.join.join import CompiledJoin
from streamwatch.core.join.series import counter_families, gauge_families, model_families
from streamwatch.core.merge import Merge, MergeProgress, MergeSpec
from streamwatch.core.merge.merge import held_families, progress_families
from streamwatch.core.metrics import (
    ALARMS,
    COMPARISONS,
    JOIN,
    MERGE,
    PROCESS,
    RESULTS,
    SECTIONS,
    Metric,
    family,
)
from streamwatch.core.metrics.series import Family, Report, exposed
from streamwatch.core.predictions.early_hints import EarlyHints, EarlyHintsSpec
from streamwatch.core.predictions.label_delays import LabelDelays, LabelDelaysSpec
from streamwatch.core.predictions.sampled_labels import SampledLabelsSpec
from streamwatch.core.predictions.sampled_labels.register import SampledLabels
from streamwatch.core.specs import ComparisonSpec, JoinSpec, MonitorsSpec
from streamwatch.daemon.alerting import WatchedFleet
from streamwatch.daemon.deliveries import Deliveries, DeliverySpec
from streamwatch.daemon.results import RunProgress
from streamwatch.daemon.status import process_families
from streamwatch.edge.keys import digest_bytes
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.prometheus import PrometheusExporter
from streamwatch.telemetry import Telemetry

PACKAGE = Path(streamwatch.__file__).parent
BUILDERS = {"core/metrics/table.py", "core/estimators/report.py"}
"""Where series are made from metrics: from the table, and from the catalogue of estimators."""


def calls(*names: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call of functions of these names in the package, with the file it stands in."""
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if not any(f"{name}(" in text for name in names):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                yield file.relative_to(PACKAGE).as_posix(), node


def join_families() -> Sequence[Family]:
    join = CompiledJoin(JoinSpec(), digest_bytes)
    of_predictions = [
        *EarlyHints(EarlyHintsSpec()).families(),
        *LabelDelays(LabelDelaysSpec()).families(),
        *SampledLabels(SampledLabelsSpec()).families(),
    ]
    return [*counter_families(join, {}), *gauge_families(join), *model_families(join, ()), *of_predictions]


def merge_families() -> Sequence[Family]:
    progress = MergeProgress()
    return [*progress_families(progress), *held_families(Merge(MergeSpec(), {}, progress), 0)]


def comparison_families() -> Sequence[Family]:
    compared = replace(MonitorsSpec(), comparisons=(ComparisonSpec("a", ("b",)),), registers=(CohortsSpec(),))
    return ComparisonSet(compared).families()


def alarm_families() -> Sequence[Family]:
    deliveries = Deliveries((), DeliverySpec(), Telemetry(stream=io.StringIO()).emit)
    return [
        *AlarmBook(AlarmsSpec(), "").families(),
        *Pacing(PacingSpec(), (), "").families(),
        *WatchedFleet().families(),
        *deliveries.families(),
    ]


@pytest.mark.slow
def test_series_are_made_from_the_table_alone() -> None:
    assert {file for file, _ in calls("Family")} == BUILDERS


def test_every_name_given_as_a_literal_is_in_the_table() -> None:
    names = {
        node.args[0].value for _, node in calls("family", "single") if isinstance(node.args[0], ast.Constant)
    }
    assert names <= {metric.name for section in SECTIONS for metric in section}
    assert len(names) > 30


def test_a_name_that_is_not_in_the_table_is_an_error() -> None:
    with pytest.raises(KeyError, match="outcomes_imagined_total"):
        family("outcomes_imagined_total", [])


@pytest.mark.parametrize(
    ("section", "families"),
    [
        (JOIN, join_families()),
        (MERGE, merge_families()),
        (ALARMS, alarm_families()),
        (PROCESS, process_families(1.0)),
        (COMPARISONS, comparison_families()),
        (RESULTS, RunProgress().families()),
    ],
    ids=["join", "merge", "alarms", "process", "comparisons", "results"],
)
def test_each_section_is_what_its_part_exports(section: Sequence[Metric], families: Sequence[Family]) -> None:
    assert sorted(f.name for f in families) == sorted(metric.name for metric in section)
    assert all(len(values) == len(f.labels) for f in families for values, _ in f.samples)


def test_no_metric_is_in_the_table_twice() -> None:
    names = [metric.name for metric in (*catalogue.metrics(), *(m for section in SECTIONS for m in section))]
    assert len(names) == len(set(names))


def test_the_process_is_measured_under_the_names_every_exporter_gives() -> None:
    before = _values(process_families(12.5))
    with Path(os.devnull).open("rb"):
        opened = _values(process_families(12.5))
    assert opened["process_open_fds"] == before["process_open_fds"] + 1
    assert before["process_start_time_seconds"] == 12.5
    assert 10e6 < before["process_resident_memory_bytes"] < 100e9
    assert opened["process_cpu_seconds_total"] >= before["process_cpu_seconds_total"] > 0


def _values(families: Sequence[Family]) -> Mapping[str, float]:
    return {f.name: value for f in families for _, value in f.samples if isinstance(value, float)}


def test_metrics_of_the_process_have_no_prefix_and_all_others_have() -> None:
    assert {exposed(metric.name).startswith("streamwatch_") for metric in PROCESS} == {False}
    others = [metric for section in SECTIONS if section is not PROCESS for metric in section]
    assert {exposed(metric.name).startswith("streamwatch_") for metric in others} == {True}
    report = Report([*process_families(1.0), *join_families()], 0, {})
    text = (
        PrometheusExporter()
        .render(Asked(report, media_type="text/plain; version=0.0.4; charset=utf-8"))
        .decode()
    )
    samples = [line for line in text.splitlines() if line.startswith("process_cpu_seconds_total ")]
    assert len(samples) == 1
    assert "streamwatch_labels_joined_total 0\n" in text

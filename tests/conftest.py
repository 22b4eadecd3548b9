"""Tiers of tests (`tests/tiers.py`), and the policy on real components (`tests/real.py`)."""

from __future__ import annotations

import gc
import os
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests import parts, real
from tests.tiers import (
    EXAMPLES,
    HEAVY,
    HEAVY_S,
    LONG_S,
    REPRODUCED,
    SECONDS,
    SLOW_ROOMS,
    TIER,
    TIERS,
    runs,
    too_heavy,
)

ROOT = Path(__file__).parent
for tier in TIERS:
    settings.register_profile(
        tier,
        max_examples=EXAMPLES[tier],
        derandomize=tier in REPRODUCED,
        deadline=None,  # how long an example may take is nobody's matter on a busy machine
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(TIER)
if TIER in REPRODUCED:  # constants of modules imported so far are drawn too, and which these are is chance
    providers._get_local_constants = lambda: providers._local_constants

collect_ignore = list(SLOW_ROOMS) if TIER == "fast" else []  # importing them takes longer than the tier may
_took: dict[str, float] = defaultdict(float)
_cpu: dict[str, float] = {}
WRITES_HEAVY = TIER in HEAVY and os.environ.get("STREAMWATCH_HEAVY") == "write"
WHOLLY_SLOW = re.compile(r"^pytestmark = .*\bpytest\.mark\.(slow|long)\b", re.MULTILINE)
"""What a module says whose every test is slow."""


PART = parts.part()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Do not import a module of which the tier `fast` runs nothing."""
    if TIER != "fast" or collection_path.suffix != ".py":
        return None
    return WHOLLY_SLOW.search(collection_path.read_text(encoding="utf-8")) is not None or None


def pytest_sessionstart() -> None:
    """Load kernels before tests are measured, so that no test is taken for heavy as it came first."""
    if WRITES_HEAVY:
        from tests import layouts  # noqa: PLC0415 - of no use to a single test

        layouts.main()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Measure the processor time of a test with its fixtures, and of processes that it waited for.

    Not of slow ones, nor of the last, after which all that was started ends. What seems heavy is written as
    heavy where it is so again at the end: the first to load something has not taken long itself.
    """
    began = _processor_seconds()
    try:
        return (yield)
    finally:
        if WRITES_HEAVY and nextitem is not None and not item.get_closest_marker("slow"):
            took = _processor_seconds() - began
            if took >= HEAVY_S[TIER] and item.nodeid not in _cpu and isinstance(item, pytest.Function):
                item._initrequest()
                item.session.items.append(item)
            _cpu[item.nodeid] = min(took, _cpu.get(item.nodeid, took))


def _processor_seconds() -> float:
    waited_for = os.times()
    return time.process_time() + waited_for.children_user + waited_for.children_system


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the collector of garbage thousands of modules and tests, of which none goes before the end."""
    gc.collect()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark whole rooms as slow, and leave out what other tiers run."""
    chosen: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        if item.path.relative_to(ROOT).parts[0] in SLOW_ROOMS:
            item.add_marker(pytest.mark.slow)
        named = any(_is_of(item, argument) for argument in config.args)
        due = named or runs(_name(item), {marker.name for marker in item.iter_markers()})
        (chosen if due else left).append(item)
    items[:] = chosen
    config.hook.pytest_deselected(items=left)


def _name(item: pytest.Item) -> str:
    """Name of a test, or of the group that shares something made once."""
    group = item.get_closest_marker("together")
    return item.nodeid if group is None else str(group.args[0])


def _is_of(item: pytest.Item, argument: str) -> bool:
    """Whether a test was asked for by its own name, `file::test`; then it runs in every tier."""
    _, colons, name = argument.partition("::")
    return bool(colons) and item.nodeid.endswith(name)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Draw one seed for hypothesis, which is said, where it draws other examples in every run."""
    if PART is not None:
        config.pluginmanager.register(PART)
    if TIER not in REPRODUCED and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_report_header(config: pytest.Config) -> str:
    """Say which tier this is, and how to draw its examples again."""
    seed = "" if TIER in REPRODUCED else f", again with --hypothesis-seed={config.option.hypothesis_seed}"
    return f"tier of tests: {TIER} (STREAMWATCH_TESTS={'|'.join(TIERS)}){seed}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """`@pytest.mark.real("promtool", "chromium")`: leave the test out where one of them is missing."""
    for marker in item.iter_markers("real"):
        for component in marker.args:
            real.need(item.nodeid, component)


@pytest.fixture
def real_component(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """`real_component("promtool")` is the program's path, or leaves the test out."""
    return lambda name: real.program(request, name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add up how long slow tests take, or groups of them."""
    report = yield
    if item.get_closest_marker("slow"):
        _took[_name(item)] += report.duration
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if WRITES_HEAVY:
        lines = (f"{took:.2g} {name}\n" for name, took in sorted(too_heavy(_cpu, TIER).items()))
        HEAVY[TIER].write_text("".join(lines), encoding="utf-8")
    if os.environ.get("STREAMWATCH_SECONDS"):
        lines = (f"{took:.0f} {name}\n" for name, took in sorted(_took.items()) if took >= LONG_S)
        (SECONDS if PART is None else PART.seconds).write_text("".join(lines), encoding="utf-8")
    for title, tests in (
        ("left out: a real component is missing on this machine", real.left_out),
        ("ran on the embedded broker instead of Apache Kafka", real.on_the_embedded_broker),
    ):
        if tests:
            terminalreporter.section(title)
            for test, reason in sorted(tests.items()):
                terminalreporter.line(f"{test}  ({reason})")

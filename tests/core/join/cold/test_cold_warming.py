"""After warming up nothing of the cold entries is compiled any more: it would hold the event loop."""

from __future__ import annotations

import importlib
import pkgutil
from random import Random

import pytest

from streamwatch.core.jit import CompiledFunction
from streamwatch.core.join import cold
from streamwatch.core.join.warming import warm_up_overflow
from tests.edge.stores.rocksdb.cold_steps import OnDisk


def signatures():
    """Types that each entry point was compiled or loaded for."""
    modules = [
        importlib.import_module(f"{cold.__name__}.{each.name}")
        for each in pkgutil.iter_modules(cold.__path__)
    ]
    functions = {
        f for module in modules for f in vars(module).values() if isinstance(f, CompiledFunction) and f.kept
    }
    return {f.__qualname__: sorted(map(str, f.signatures)) for f in functions}


@pytest.mark.slow
def test_warming_up_leaves_nothing_to_compile(tmp_path):
    warm_up_overflow()
    before = signatures()
    steps = OnDisk(Random(5), tmp_path / "state")
    steps.walk(120)
    steps.database.close()
    assert steps.seen["merges of several"] > 0
    assert steps.seen["taken"] > 0
    own = set(before) - {"_pack", "_unpack", "_measure"}
    assert [name for name in own if not before[name]] == [], "each was called"
    assert {name: signatures()[name] for name in own} == {name: before[name] for name in own}

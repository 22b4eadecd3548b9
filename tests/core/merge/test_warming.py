"""After warming up, the merge has nothing left to compile."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

COMPILED = """
import json
from importlib import import_module
from pkgutil import iter_modules
from streamwatch.core import merge
from streamwatch.core.jit import CompiledFunction
from streamwatch.core.merge.merge import warm_up_merge

warm_up_merge()
modules = [import_module(f"{merge.__name__}.{found.name}") for found in iter_modules(merge.__path__)]
found = [each for module in modules for each in vars(module).values() if isinstance(each, CompiledFunction)]
own = {each for each in found if each.kept and each.__module__.startswith(merge.__name__)}
print(json.dumps({each.__name__: len(each.signatures) for each in own}))
"""


@pytest.mark.slow
def test_every_compiled_function_is_called_while_warming_up() -> None:
    # Another process: in this one, other tests may have had compiled what warming up leaves out.
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert len(found) > 5
    assert [name for name, signatures in found.items() if not signatures] == []

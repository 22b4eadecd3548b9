"""Where compiled functions are kept between runs, and by which sources they are known."""

from __future__ import annotations

import ast
import importlib
import os
import pickle
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from numba.core.registry import cpu_target

import streamwatch
from streamwatch.core.jit.cache import (
    KernelCache,
    cache_directory,
    kernel_hash,
    kernel_sources,
    sources_of_room,
)

COLLECT = """
import sys
import numpy as np
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.kernel.readout import collect
from streamwatch.core.specs import LandmarkSpec, MonitorsSpec
table = ModelTable(MonitorsSpec((LandmarkSpec(),), (), (), max_models=1))
table.totals(np.array([table.add_model()]), 0)
compiler = "numba.cpython.unicode" in sys.modules  # of what it loads to compile, and for nothing else
print(len(collect.signatures) - collect.loaded, collect.loaded, compiler)
"""


def test_the_cache_directory_follows_the_environment(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    directory = cache_directory()
    assert directory == str(tmp_path / "xdg" / "streamwatch" / f"kernel-{kernel_hash()}")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert cache_directory() == str(tmp_path / "numba" / f"kernel-{kernel_hash()}")


def test_without_a_writable_directory_there_is_no_cache(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(occupied))
    assert cache_directory() is None


@pytest.mark.parametrize("left", [0, 1, 500])
def test_a_file_of_which_a_power_cut_left_a_part_is_as_none(tmp_path, left: int) -> None:
    kept, types = KernelCache(cache_directory, str(tmp_path), tmp_path), ()
    context = cpu_target.target_context
    file = tmp_path / kept._name(types, context.codegen())
    file.write_bytes(pickle.dumps(["compiled" * 100])[:left])
    assert kept.load_overload(types, context) is None
    file.write_bytes(bytes(1_000))
    assert kept.load_overload(types, context) is None


@pytest.mark.slow
def test_a_second_process_loads_what_the_first_compiled(tmp_path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}

    def collected() -> str:
        done = subprocess.run(
            [sys.executable, "-c", COLLECT], env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    assert collected() == "1 0 True"
    assert collected() == "0 1 False"
    assert list(tmp_path.glob("kernel-*/readout.collect-*.nbc"))


MOVED = b"""
from streamwatch.core.jit import entry


@entry
def step(n):
    return n + 1
"""


def test_a_compiled_function_that_was_moved_does_not_load_what_names_its_old_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    for room in ("old_room", "new_room"):
        folder = tmp_path / room
        folder.mkdir()
        (folder / "moved_step.py").write_bytes(MOVED)
        module = importlib.import_module(f"{room}.moved_step")
        assert module.step(1) == 2
        assert module.step.loaded == 0
        del sys.modules[f"{room}.moved_step"]
        shutil.rmtree(folder)
    assert len(list(tmp_path.glob("cache/kernel-*/moved_step.step-*.nbc"))) == 2


PACKAGE = Path(streamwatch.__file__).parent
COMPILED = [file for file in PACKAGE.rglob("*.py") if b"core.jit import" in file.read_bytes()]


@pytest.mark.parametrize("source", COMPILED, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_compiled_function_is_known_by_its_own_source(source: Path) -> None:
    """Else what was compiled before a change would be run after it."""
    assert source in {*kernel_sources(), *sources_of_room(source.parent)}


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        ("kernel", {"snapshot.py", "table.py"}),
        ("comparisons", {"measures.py", "set.py", "table.py"}),
    ],
)
def test_no_compiled_function_takes_anything_from_a_file_that_its_key_leaves_out(
    room: str, expected: set[str]
) -> None:
    folder = PACKAGE / "core" / "estimators" / room
    left_out = {*folder.glob("*.py")} - {*kernel_sources()}
    assert {file.name for file in left_out} == expected
    names = [f"streamwatch.core.estimators.{room}.{file.stem}".encode() for file in left_out]
    for source in {*COMPILED, *kernel_sources()}:
        assert not any(name in source.read_bytes() for name in names), source


class Source:
    """What names of a module of the project stand for, as its source has it."""

    def __init__(self, file: Path) -> None:
        self.imported: dict[str, tuple[Path, str]] = {}
        self.defined: dict[str, list[ast.AST]] = {}
        self.compiled: list[str] = []
        for statement in ast.parse(file.read_bytes()).body:
            if isinstance(statement, ast.ImportFrom):
                module = PACKAGE.parent.joinpath(*(statement.module or "").split("."))
                for each in statement.names:
                    if (found := _file_of(module, each.name)) is not None:
                        self.imported[each.asname or each.name] = found
            elif isinstance(statement, ast.FunctionDef):
                self.defined[statement.name] = [*statement.body, *statement.args.defaults]
                decorators = {each.id for each in statement.decorator_list if isinstance(each, ast.Name)}
                if decorators & {"entry", "detached", "inner", "hot"}:
                    self.compiled.append(statement.name)
            elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                for name in (
                    each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
                ):
                    self.defined.setdefault(name, []).append(statement.value)


def _file_of(module: Path, name: str) -> tuple[Path, str] | None:
    """File of the project that a name imported from a module is defined in, and its name there."""
    if not module.is_relative_to(PACKAGE):
        return None
    for file, within in (
        (module / f"{name}.py", ""),
        (module / "__init__.py", name),
        (module.with_suffix(".py"), name),
    ):
        if file.is_file():
            return file, within
    return None


_source = cache(Source)


def _read_by(file: Path, name: str, seen: set[tuple[Path, str]]) -> None:
    """Add what a name of a file is made of, and all that is made of: as files and names there."""
    if (file, name) in seen:
        return
    seen.add((file, name))
    source = _source(file)
    if name in source.imported:
        _read_by(*source.imported[name], seen)
    for part in source.defined.get(name, []):
        for each in ast.walk(part):
            if isinstance(each, ast.Name) and each.id in {*source.imported, *source.defined}:
                _read_by(file, each.id, seen)
            elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
                module = source.imported.get(each.value.id)
                if module is not None and not module[1]:
                    _read_by(module[0], each.attr, seen)


@pytest.mark.parametrize("source", COMPILED, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_everything_that_compiled_functions_of_a_file_read_is_in_their_key(source: Path) -> None:
    """A constant of another module is part of the compiled code."""
    seen: set[tuple[Path, str]] = set()
    for name in _source(source).compiled:
        _read_by(source, name, seen)
    passed = {PACKAGE / "__init__.py"}
    read = {file for file, name in seen if name and name in _source(file).defined} - passed
    assert read <= {*kernel_sources(), *sources_of_room(source.parent)}

"""Each kind of change, which places are changed, and what becomes of mutants."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.__main__ import Result, Room, exit_code, summary, try_all
from tests.mutants.mutate import Mutant, mutants_of
from tests.mutants.pinned import unchanged


def _after(statement: str) -> set[str]:
    """Return what may stand instead of a function's only statement."""
    head = "def f():\n    "
    return {each.text.removeprefix(head) for each in mutants_of(head + statement)}


@pytest.mark.parametrize(
    ("statement", "mutants"),
    [
        ("a += b", {"a -= b", "pass"}),
        ("a <<= b", {"a >>= b", "pass"}),
        ("return min(a, b)", {"return (max(a, b))"}),
        ("return np.maximum(a, b)", {"return (np.minimum(a, b))"}),
        ("return any(a)", {"return (all(a))"}),
        ("return a[2]", {"return a[(3)]", "return a[(1)]"}),
        ("return 0.5", {"return (1.5)", "return (-0.5)"}),
        ("return True", {"return False"}),
        ("return a < b <= c", {"return (a <= b <= c)", "return (a < b < c)"}),
        ("return a is b", {"return (a is not b)"}),
        ("return a is not b", {"return (a is b)"}),
        ("return a in b", {"return (a not in b)"}),
        ("return a not in b", {"return (a in b)"}),
        ("return a if b else c", {"return (c if b else a)"}),
        ("return a and b", {"return (a or b)"}),
        ("return not a", {"return (a)"}),
        ("return a / b", {"return (a * b)"}),
        ("a.b()", {"pass"}),
        ("a.b = c", {"pass"}),
        ("a[b] = c", {"pass"}),
        ("del a", {"pass"}),
        ("raise a", {"pass"}),
        ("a = b", set[str]()),
        ("a: b | None = c", set[str]()),
        ("return f'{a + b}'", set[str]()),
        ("'Say what it does.'", set[str]()),
    ],
)
def test_one_piece_is_changed_at_a_time(statement: str, mutants: set[str]) -> None:
    assert _after(statement) == mutants


def test_loops_lose_their_jumps() -> None:
    assert {each.before for each in mutants_of("def f():\n    for a in b:\n        continue\n")} == {
        "continue"
    }


def test_equal_pieces_of_a_line_are_two_places() -> None:
    found = mutants_of("async def f():\n    return a[1] + a[1]\n")
    assert [each.before for each in found] == ["a[1] + a[1]", "1", "1", "1", "1"]
    assert len({each.text for each in found}) == 5


def test_a_place_behind_other_letters_is_found() -> None:
    (mutant,) = mutants_of("def f():\n    return 'µ', a < b\n")
    assert mutant.text == "def f():\n    return 'µ', (a <= b)\n"


def test_every_mutant_of_these_modules_can_be_read() -> None:
    for name in ("mutate.py", "__main__.py"):
        for mutant in mutants_of((Path(__file__).parent / name).read_text()):
            compile(mutant.text, name, "exec")


def test_results_are_counted_apart(capsys: pytest.CaptureFixture[str]) -> None:
    becomes: dict[str, Result] = {"a": "found", "b": "timed out", "c": "SURVIVES", "d": "found"}
    drawn = [Mutant(1, name, "x", name) for name in becomes]
    results = try_all("m.py", drawn, lambda mutant: becomes[mutant.before])
    assert summary(results, 9) == "tried 4 of 9: 2 found, 1 timed out, 1 survived"
    assert "3 of 4: SURVIVES after 0 s: m.py:1: c -> x" in capsys.readouterr().out


def test_a_survivor_is_nothing_that_tests_tell_apart(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def f(a: int) -> int:\n    return max(a, 2)\n")
    (tmp_path / "test_m.py").write_text("from m import f\n\n\ndef test_it() -> None:\n    assert f(1) == 2\n")
    (tmp_path / "tests").symlink_to(Path(__file__).parents[1])
    (tmp_path / "streamwatch").symlink_to(Path(__file__).parents[2] / "streamwatch")
    room = Room(tmp_path, "m.py", ["test_m.py"])
    assert room.try_unchanged() == "SURVIVES"
    becomes = Counter((each.after, room.try_mutant(each)) for each in mutants_of(room.original))
    assert becomes == Counter([("(min(a, 2))", "found"), ("(3)", "found"), ("(1)", "found")])
    assert room.try_mutant(Mutant(2, "2", "2", room.original + "\n")) == "SURVIVES"
    assert room.path.read_text() == room.original


def test_a_mutant_that_takes_too_long_has_timed_out(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("pass\n")
    room = Room(tmp_path, "m.py", [])
    with pytest.MonkeyPatch.context() as patch:

        def waits(*_: object, **__: object) -> None:
            raise subprocess.TimeoutExpired("pytest", 1.0)

        patch.setattr(subprocess, "run", waits)
        assert room.try_unchanged() == "timed out"


def test_hashes_of_compiled_functions_see_the_original(tmp_path: Path) -> None:
    mutant, other, original = (tmp_path / name for name in ("a.py", "b.py", "original.py"))
    assert unchanged([mutant, other], mutant, original) == [original, other]


@pytest.mark.parametrize(("result", "code"), [("found", 0), ("timed out", 0), ("SURVIVES", 1)])
def test_only_survivors_fail_the_run(result: Result, code: int) -> None:
    assert exit_code(Counter[Result]({"found": 3, result: 1})) == code

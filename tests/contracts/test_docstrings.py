"""Public docstrings begin with a verb or a noun: they tell something before they are read to the end."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "streamwatch"
QUESTIONS = {"What", "How", "Where", "Whether", "Who", "Which", "When", "Why", "It"}


def public(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Every class, function and method without a leading underscore."""
    for node in ast.walk(tree):
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ) and not node.name.startswith("_"):
            yield node


def questions(text: str) -> list[str]:
    """The names of those whose docstring begins with a question word, or with "It"."""
    docstrings = [(node.name, ast.get_docstring(node)) for node in public(ast.parse(text))]
    return [name for name, docstring in docstrings if docstring and docstring.split()[0] in QUESTIONS]


@pytest.mark.slow
def test_public_docstrings_begin_with_a_verb_or_a_noun() -> None:
    found = {str(path): names for path in PACKAGE.rglob("*.py") if (names := questions(path.read_text()))}
    assert found == {}


def test_a_docstring_that_begins_with_a_question_is_found() -> None:
    assert questions('def shown():\n    """What it says."""\n') == ["shown"]
    assert questions('class Told:\n    """Message."""\n    def _hidden(self):\n        """How so."""\n') == []

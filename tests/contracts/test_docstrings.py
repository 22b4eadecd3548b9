"""Public docstrings begin with a verb or a noun, and name their functions' errors and parameters."""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "streamwatch"
QUESTIONS = {"What", "How", "Where", "Whether", "Who", "Which", "When", "Why", "It"}


@cache
def package() -> dict[Path, ast.Module]:
    """Syntax trees of all modules of the package."""
    gc.disable()  # it would look through all trees again and again
    try:
        return {path: ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}
    finally:
        gc.enable()


def public(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Every class, function and method without a leading underscore."""
    for node in statements(tree):
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ) and not node.name.startswith("_"):
            yield node


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The node, and all statements within it; expressions, most of a tree, have no definitions in them."""
    yield node
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        within = getattr(node, name, ())
        for child in within if isinstance(within, list) else ():
            yield from statements(child)


def questions(tree: ast.AST) -> list[str]:
    """The names of those whose docstring begins with a question word, or with "It"."""
    docstrings = [(node.name, ast.get_docstring(node)) for node in public(tree)]
    return [name for name, docstring in docstrings if docstring and docstring.split()[0] in QUESTIONS]


@pytest.mark.slow
def test_public_docstrings_begin_with_a_verb_or_a_noun() -> None:
    assert {str(path): names for path, tree in package().items() if (names := questions(tree))} == {}


def test_a_docstring_that_begins_with_a_question_is_found() -> None:
    assert questions(ast.parse('def shown():\n    """What it says."""\n')) == ["shown"]
    hidden = 'class Told:\n    """Message."""\n    def _hidden(self):\n        """How so."""\n'
    assert questions(ast.parse(hidden)) == []


# Errors that a public function raises itself are named in its docstring, or in that of its class.


BUGS = {"AssertionError", "NotImplementedError", "RuntimeError", "StopIteration", "TypeError"}
"""Errors of the program, not of what it is given."""
FRAMEWORK = re.compile(r"HTTP\w+|Exit|BadParameter|CancelledError")
"""Errors that are answers of aiohttp or Typer."""
UNCHECKED = ("settings",)
"""Rooms left out: validators of settings raise for pydantic, which names the key."""


def raised(node: ast.AST, caught: frozenset[str] = frozenset()) -> Iterator[str]:
    """Names of the errors raised in a body, without those that it catches, and functions within it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(child, ast.Raise) and child.exc is not None:
            name = ast.unparse(child.exc).partition("(")[0].rpartition(".")[2]
            if name[0].isupper() and name not in caught:
                yield name
        elif isinstance(child, ast.Try):
            here = {name for handler in child.handlers for name in caught_by(handler)}
            yield from raised(ast.Module(child.body, []), caught | here)
            rest = [*(line for handler in child.handlers for line in handler.body), *child.orelse]
            yield from raised(ast.Module([*rest, *child.finalbody], []), caught)
        else:
            yield from raised(child, caught)


def caught_by(handler: ast.ExceptHandler) -> list[str]:
    return [] if handler.type is None else re.findall(r"\w+", ast.unparse(handler.type))


def bases_in(trees: Iterable[ast.AST]) -> dict[str, list[str]]:
    """The bases of every class, by name."""
    classes = (node for tree in trees for node in statements(tree) if isinstance(node, ast.ClassDef))
    return {each.name: [ast.unparse(base).rpartition(".")[2] for base in each.bases] for each in classes}


def is_named(error: str, docstring: str, bases: Mapping[str, list[str]]) -> bool:
    """Whether a docstring has an error, or one that it is a kind of."""
    return re.search(rf"\b{error}\b", docstring) is not None or any(
        is_named(base, docstring, bases) for base in bases.get(error, ())
    )


def unnamed(tree: ast.AST, bases: Mapping[str, list[str]]) -> list[str]:
    """Functions with errors that their docstrings leave out, except where these refer to a protocol's."""
    found: list[str] = []
    for owner in statements(tree):
        if not isinstance(owner, ast.Module | ast.ClassDef):
            continue
        for each in owner.body:
            if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            makes = each.name in {"__init__", "__post_init__"}
            docstring = ast.get_docstring(owner if makes else each) or ""
            if (each.name.startswith("_") and not makes) or not docstring or "; see `" in docstring:
                continue
            errors = set(raised(ast.Module(each.body, []))) - BUGS
            found += [
                f"{each.name}: {error}"
                for error in sorted(errors)
                if not FRAMEWORK.fullmatch(error) and not is_named(error, docstring, bases)
            ]
    return found


def test_public_docstrings_name_the_errors_that_are_raised() -> None:
    bases = bases_in(package().values())
    checked = {
        path: tree for path, tree in package().items() if path.relative_to(PACKAGE).parts[0] not in UNCHECKED
    }
    found = {str(path): left for path, tree in checked.items() if (left := unnamed(tree, bases))}
    assert found == {}


def test_an_error_that_is_left_out_is_found() -> None:
    text = """
class Damaged(Refused): ...
def kind():
    \"\"\"Read; raises Refused.\"\"\"
    raise Damaged("here")
def handled():
    \"\"\"Read.\"\"\"
    try:
        raise ValueError
    except (OSError, ValueError):
        raise KeyError from None
"""
    tree = ast.parse(text)
    assert unnamed(tree, bases_in([tree])) == ["handled: KeyError"]


# A docstring with a section of parameters names all of them, in it or, in backticks, before it.


SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", re.MULTILINE | re.DOTALL)


def unlisted(tree: ast.AST) -> list[str]:
    """Parameters that sections leave out, and names in them that are none."""
    found: list[str] = []
    for node in public(tree):
        makes = [each for each in node.body if getattr(each, "name", "") == "__init__"]
        made = node if not isinstance(node, ast.ClassDef) else makes[0] if makes else None
        docstring = ast.get_docstring(node) or ""
        section = SECTION.search(docstring)
        if section is None or not isinstance(made, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        given = made.args
        own = {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)} - {"self", "cls"}
        own |= {each.arg for each in (given.vararg, given.kwarg) if each is not None}
        named = set(re.findall(r"\w+", " ".join(re.findall(r"^\S.*$", section[1], re.MULTILINE))))
        left = set() if "other parameters" in docstring else own - named
        wrong = {name for name in left if f"`{name}`" not in docstring} | (named - own)
        found += [f"{node.name}: {name}" for name in sorted(wrong)]
    return found


def test_a_section_of_parameters_names_all_of_them_and_no_others() -> None:
    assert {str(path): found for path, tree in package().items() if (found := unlisted(tree))} == {}


def test_a_parameter_that_is_left_out_is_found() -> None:
    text = """
def read(file, at, size, most):
    \"\"\"Read `size` bytes.

    Parameters
    ----------
    file, most
        Both.
    start
        Of the past.

    Raises
    ------
    OSError
        Always.
    \"\"\"
"""
    assert unlisted(ast.parse(text)) == ["read: at", "read: start"]


# A public function that may return None says when, or refers to another that does.


REFERENCES = re.compile(r"\bNone\b|; see `|See `|likewise|[Aa]s `")


def silent_on_none(tree: ast.AST) -> list[str]:
    """Functions that may return None and whose docstring does not say so."""
    return [
        node.name
        for node in public(tree)
        if not isinstance(node, ast.ClassDef)
        and isinstance(node.returns, ast.BinOp)
        and ast.unparse(node.returns.right) == "None"
        and (docstring := ast.get_docstring(node))
        and not REFERENCES.search(docstring)
    ]


def test_what_may_be_none_says_when() -> None:
    assert {str(path): found for path, tree in package().items() if (found := silent_on_none(tree))} == {}


def test_a_none_that_is_left_out_is_found() -> None:
    text = """
def first() -> int | None:
    \"\"\"Return the first.\"\"\"
def last() -> int | None:
    \"\"\"Return the last; None without any.\"\"\"
def none() -> list[int | None]:
    \"\"\"Return all.\"\"\"
"""
    assert silent_on_none(ast.parse(text)) == ["first"]

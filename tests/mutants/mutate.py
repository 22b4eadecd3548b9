"""Mutants of a module: each differs from it by one operator, number or condition."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


@dataclass(frozen=True)
class Mutant:
    """One changed piece of a module's text."""

    line: int
    before: str
    after: str
    text: str
    """The whole module with the change."""


def mutants_of(text: str) -> list[Mutant]:
    """Every mutant of the functions of a module, in the order of its lines."""
    found: list[Mutant] = []
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                found += [
                    _mutant(text, node, after) for node in ast.walk(statement) for after in _changed(node)
                ]
    return sorted({(each.line, each.before, each.after): each for each in found}.values(), key=_where)


def _where(mutant: Mutant) -> tuple[int, str, str]:
    return mutant.line, mutant.before, mutant.after


def _changed(node: ast.AST) -> Iterator[str]:
    """Texts of what may stand instead of an expression."""
    match node:
        case ast.Compare(left, [operator], others) if type(operator) in _COMPARISONS:
            yield _text(ast.Compare(left, [_COMPARISONS[type(operator)]()], others))
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            yield _text(ast.BinOp(left, _OPERATORS[type(operator)](), right))
        case ast.BoolOp(operator, values):
            yield _text(ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values))
        case ast.Constant(value) if type(value) is int:
            yield str(value + 1)
        case ast.UnaryOp(ast.Not(), operand):
            yield _text(operand)
        case _:
            return


def _text(node: ast.expr) -> str:
    """Text of an expression, in parentheses so that it may stand anywhere."""
    return f"({ast.unparse(ast.fix_missing_locations(node))})"


def _mutant(text: str, node: ast.AST, after: str) -> Mutant:
    assert isinstance(node, ast.expr)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    lines = text.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    whole = text.encode()
    before = whole[start:end].decode()
    return Mutant(node.lineno, before, after, (whole[:start] + after.encode() + whole[end:]).decode())

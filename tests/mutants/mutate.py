"""Mutants of a module: each differs from it by one operator, constant, condition or statement."""

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
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_CALLS: Final = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
}
_DROPPED: Final = (ast.AugAssign, ast.Delete, ast.Raise, ast.Break, ast.Continue)
"""Statements that `pass` may stand for, besides calls and assignments to attributes and items."""


@dataclass(frozen=True)
class Mutant:
    """One changed piece of a module's text."""

    line: int
    before: str
    after: str
    text: str
    """The whole module with the change."""


def mutants_of(text: str) -> list[Mutant]:
    """Every mutant of the functions of a module, in the order of its text."""
    found: dict[tuple[int, int, str], Mutant] = {}
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in function.body:
                for node in _walk(statement):
                    for after in _changed(node):
                        found[node.lineno, node.col_offset, after] = _mutant(text, node, after)
    return [found[place] for place in sorted(found)]


def _walk(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Statements and expressions below a node, itself among them.

    Left out is what is never evaluated (annotations of local variables), and what is in f-strings, whose
    positions Python 3.11 does not know.
    """
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield node
    for name, value in ast.iter_fields(node):
        if name not in {"annotation", "returns"}:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _walk(child)


def _changed(node: ast.expr | ast.stmt) -> Iterator[str]:
    """Texts of what may stand instead of an expression or statement."""
    if isinstance(node, ast.stmt):
        yield from _changed_statement(node)
        return
    match node:
        case ast.Compare(left, operators, others):
            for at, operator in enumerate(operators):
                changed = [*operators[:at], _COMPARISONS[type(operator)](), *operators[at + 1 :]]
                yield _text(ast.Compare(left, changed, others))
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            yield _text(ast.BinOp(left, _OPERATORS[type(operator)](), right))
        case ast.BoolOp(operator, values):
            yield _text(ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values))
        case ast.Constant(bool(value)):
            yield str(not value)
        case ast.Constant(int(value) | float(value)):
            yield f"({value + 1})"
            yield f"({value - 1})"
        case ast.UnaryOp(ast.Not(), operand):
            yield _text(operand)
        case ast.IfExp(test, body, orelse):
            yield _text(ast.IfExp(test, orelse, body))
        case ast.Call(ast.Name(name), arguments, keywords) if name in _CALLS:
            yield _text(ast.Call(ast.Name(_CALLS[name]), arguments, keywords))
        case ast.Call(ast.Attribute(owner, name), arguments, keywords) if name in _CALLS:
            yield _text(ast.Call(ast.Attribute(owner, _CALLS[name]), arguments, keywords))
        case _:
            return


def _changed_statement(node: ast.stmt) -> Iterator[str]:
    """Texts of what may stand instead of a statement."""
    match node:
        case ast.AugAssign(target, operator, value) if type(operator) in _OPERATORS:
            yield _unparsed(ast.AugAssign(target, _OPERATORS[type(operator)](), value))
            yield "pass"
        case ast.Expr(value) if not isinstance(value, ast.Constant):
            yield "pass"
        case ast.Assign(targets) if not any(isinstance(each, ast.Name | ast.Tuple) for each in targets):
            yield "pass"
        case _ if isinstance(node, _DROPPED):
            yield "pass"
        case _:
            return


def _text(node: ast.expr) -> str:
    """Text of an expression, in parentheses so that it may stand anywhere."""
    return f"({_unparsed(node)})"


def _unparsed(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node))


def _mutant(text: str, node: ast.expr | ast.stmt, after: str) -> Mutant:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    lines = text.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    whole = text.encode()
    before = whole[start:end].decode()
    return Mutant(node.lineno, before, after, (whole[:start] + after.encode() + whole[end:]).decode())

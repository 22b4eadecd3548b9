"""Critical difference diagram (Demšar 2006, figure 1): mean ranks on an axis, as SVG.

Lower ranks, to the left, are better. A bar joins classifiers whose mean ranks differ by less than the
critical difference; every bar is as long as possible. Colours are inherited from the surrounding text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

WIDTH: Final = 760
_LEFT, _RIGHT = 200, WIDTH - 200
_TOP, _LINE = 62, 22
_LONGEST: Final = 26


def groups(ranks: Sequence[float], critical_difference: float) -> list[tuple[int, int]]:
    """Find the maximal runs of classifiers that do not differ significantly, as (first, last) index.

    `ranks` must ascend.
    """
    found: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(i for i, other in enumerate(ranks) if i == first or other - rank < critical_difference)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def rank_diagram(ranks: Mapping[str, float], critical_difference: float) -> str:
    """Draw mean ranks by name as SVG.

    Raises
    ------
    ValueError
        If there are fewer than two names.
    """
    if len(ranks) < 2:
        raise ValueError(f"a diagram of ranks needs 2 or more names, got {len(ranks)}")
    named = sorted(ranks.items(), key=lambda item: (item[1], item[0]))
    values = [rank for _, rank in named]
    bars = groups(values, critical_difference)
    half = (len(named) + 1) // 2
    below = _TOP + 16 + 8 * len(bars)
    height = below + _LINE * half + 16
    shapes = [_axis(len(named)), _scale(critical_difference, len(named))]
    for level, (first, last) in enumerate(bars):
        y = _TOP + 10 + 8 * level
        left, right = _x(values[first], len(named)) - 4, _x(values[last], len(named)) + 4
        shapes.append(_line(left, y, right, y, 4))
    for i, (name, rank) in enumerate(named):
        better = i < half
        y = below + _LINE * (i if better else len(named) - 1 - i) + 8
        shapes.append(_pointer(name, rank, _x(rank, len(named)), y, left=better))
    caption = ", ".join(f"{name} {rank:.2f}" for name, rank in named)
    title = f"Mean ranks: {caption}; critical difference {critical_difference:.2f}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="sans-serif" font-size="13" fill="currentColor" stroke="none">'
        f"<title>{escape(title)}</title>{''.join(shapes)}</svg>"
    )


def _x(rank: float, classifiers: int) -> float:
    return round(_LEFT + (rank - 1) / (classifiers - 1) * (_RIGHT - _LEFT), 2)


def _axis(classifiers: int) -> str:
    ticks = [
        _line(_x(rank, classifiers), _TOP - 6, _x(rank, classifiers), _TOP, 1)
        + _text(str(rank), _x(rank, classifiers), _TOP - 10, "middle")
        for rank in range(1, classifiers + 1)
    ]
    return _line(_LEFT, _TOP, _RIGHT, _TOP, 1) + "".join(ticks)


def _scale(critical_difference: float, classifiers: int) -> str:
    """Draw the critical difference as a length, cut at the end of the axis."""
    right = _x(min(1 + critical_difference, classifiers), classifiers)
    ends = _line(_LEFT, 18, _LEFT, 26, 1) + _line(right, 18, right, 26, 1)
    beyond = " (beyond the axis)" if 1 + critical_difference > classifiers else ""
    text = _text(f"critical difference {critical_difference:.2f}{beyond}", _LEFT, 13, "start")
    return text + ends + _line(_LEFT, 22, right, 22, 2)


def _pointer(name: str, rank: float, x: float, y: float, *, left: bool) -> str:
    end = _LEFT - 10 if left else _RIGHT + 10
    short = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
    line = f'<path d="M{x} {_TOP}V{y}H{end}" fill="none" stroke="currentColor" stroke-width="1"/>'
    words = f"{short} {rank:.2f}" if left else f"{rank:.2f} {short}"
    text = _text(words, end - 4 if left else end + 4, y + 4, "end" if left else "start")
    return f"<g><title>{escape(name)}</title>{line}{text}</g>"


def _line(x1: float, y1: float, x2: float, y2: float, width: int) -> str:
    return f'<path d="M{x1} {y1}L{x2} {y2}" stroke="currentColor" stroke-width="{width}"/>'


def _text(words: str, x: float, y: float, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'

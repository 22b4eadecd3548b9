"""Route of the status page's list of models: filtered, sorted, in pages or groups.

`GET /api/v1/list?sort=attention&filter=fraud&first=0&rows=50&lines=1`::

    {"published_timestamp_seconds": 1760000000.5, "forgetting": "fading:0.999",
     "counts": {"models": 500, "better": 480, "open": 15, "worse": 3, "waiting": 2, "incidents": 2,
                "warnings": 1},
     "warned": [{"model": "fraud-v9", "warning": "no label …", "page": "deploy/runbooks/NothingJoins.md"}],
     "found": 120, "first": 0, "names": ["fraud-v3", …], "rows": {"fraud-v3": {"verdict": "worse", …}},
     "lines": {"timestamps": [1759980000.0, …],
               "models": {"fraud-v3": {"accuracy": [0.91, …], "no_change": [0.85, …], "majority": [0.6, …]}}}}

`names` is the order; rows are those of `/api/v1/overview`. Without `details=1` they have only the fields that
the page shows at first, rounded, as the page requests them often. `lines=1` adds accuracy and both baselines
under `forgetting` over the last hours, as kept since the daemon started. With `group=1` there are `groups`
instead of rows: models by the beginning of their names, up to the first of `- _ . / : #` or a space. `prefix`
selects the models of one group, `model` one model, `label=team=payments` those with that label
(`models.rules` of the settings); `filter` finds texts in names, and in labels of that notation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias, cast

from msgspec import UNSET

from streamwatch.core.metrics.series import Report, detail_at, with_parts
from streamwatch.edge.web import documents
from streamwatch.edge.web.documents import Counts, Group, Lines, Listing, Warned
from streamwatch.edge.web.ports import NAME, Asked, Query, Route, encode
from streamwatch.edge.web.routes.overview import TROUBLES, Row, no_change_of, overview

PAGE: Final = 50
"""Rows of an answer by default."""
WARNED: Final = 5
"""Models whose warnings are listed besides the rows, at most."""
SORTS: Final[Mapping[str, str]] = {
    "attention": "trouble",
    "model": "",
    "accuracy": "accuracy",
    "no_change": "no_change",
    "majority": "majority",
    "last_prediction": "last_prediction_timestamp_seconds",
    "last_label": "last_label_timestamp_seconds",
    "kappa_plus": "kappa_plus",
    "last_alarm": "last_alarm_timestamp_seconds",
    "delay": "delay_median_seconds",
    "pending": "pending",
    "outcomes": "outcomes",
}
"""Value of `sort` → the field of rows to sort by; empty for the name."""
_BRIEF: Final = (
    *("verdict", "verdict_since_timestamp_seconds", "verdict_opponent", "verdict_status"),
    *("verdict_delays_moved_of", "verdict_utility", "verdict_provisional"),
    *("verdict_before", "verdict_changed_timestamp_seconds", "trouble"),
    *("accuracy", "no_change", "majority"),
    *("last_prediction_timestamp_seconds", "last_label_timestamp_seconds"),
    *("waiting", "warning", "warning_page", "labels"),
    *("incidents", "incident_severity", "incident_since_timestamp_seconds"),
    *("first_horizon_ends_timestamp_seconds", "labels_assumed_as", "labels_sampled_ratio"),
    *("evaluation_since_timestamp_seconds", "evaluation_began_anew"),
)
"""Fields of a brief row."""
_SHARES: Final = frozenset({"accuracy", "no_change", "majority", "labels_sampled_ratio"})
"""Those whose numbers keep four decimals; the others keep none."""
WAITING: Final = "waiting"
_KINDS: Final = (*TROUBLES[: TROUBLES.index("better")], WAITING, "better")
"""Kinds of models in a group, the most urgent first: troubles, and models without an outcome yet."""
_BEGINNING: Final = re.compile(r"[^-_./:# ]*[-_./:# ]?")

LinesOf: TypeAlias = "Callable[[Mapping[str, str]], Lines]"
"""Function of model → the baseline that is its no change; returns lines of the last hours."""


def _choice(name: str, choices: Sequence[str], default: str, about: str) -> Query:
    return Query(
        name, "|".join(choices), {"type": "string", "enum": list(choices), "default": default}, about
    )


class ListingExporter:
    """Exporter of `/api/v1/list`.

    Parameters
    ----------
    lines
        Returns lines of models; called in the rendering thread.
    """

    routes: Sequence[Route] = (
        Route(
            "/api/v1/list",
            "Rows of the overview as the status page shows them: found, sorted, in pages or groups",
            "Listing",
            query=(
                _choice("sort", tuple(SORTS), "attention", "Order of rows"),
                _choice(
                    "order",
                    ("ascending", "descending"),
                    "ascending",
                    "Its direction; models without the value come last in both",
                ),
                Query(
                    "filter",
                    ".{1,128}",
                    NAME,
                    "Only models whose name or labels (team=payments) contain this, whatever the case",
                ),
                Query("prefix", ".{1,128}", NAME, "Only models of this group"),
                Query("model", ".{1,128}", NAME, "Only this model"),
                Query(
                    "label",
                    "[a-zA-Z_][a-zA-Z0-9_]*=.{1,128}",
                    NAME,
                    "Only models with this label: team=payments",
                ),
                _choice(
                    "group",
                    ("0", "1"),
                    "0",
                    "1: groups of models by the beginning of their names, instead of rows",
                ),
                Query(
                    "first",
                    "[0-9]{1,7}",
                    {"type": "integer", "minimum": 0, "default": 0},
                    "Index of the first row",
                ),
                Query(
                    "rows",
                    "[1-9][0-9]{0,2}",
                    {"type": "integer", "minimum": 1, "maximum": 999, "default": PAGE},
                    "At most so many",
                ),
                _choice("details", ("0", "1"), "0", "1: whole rows, not rounded"),
                _choice("lines", ("0", "1"), "0", "1: with accuracy and both baselines over the last hours"),
            ),
        ),
    )

    def __init__(self, lines: LinesOf) -> None:
        self._lines = lines
        self._report: Report | None = None
        self._seen = overview(None)

    def render(self, asked: Asked) -> bytes:
        """Render the rows that the query selects, or groups."""
        if asked.report is not self._report:
            self._report, self._seen = asked.report, overview(asked.report)
        rows, values = self._seen.rows, asked.values
        found = [name for name in rows if _is_asked_for(name, rows[name], values)]
        if (label := values.get("label")) is not None:
            found = [name for name in found if _has_label(asked.report, name, label)]
        grouped = values.get("group") == "1"
        names = [] if grouped else _sorted(rows, found, values)
        rows_shown = int(values.get("rows", PAGE))
        first = min(int(values.get("first", 0)), max(0, len(names) - 1) // rows_shown * rows_shown)
        names = names[first : first + rows_shown]
        # Lines are from unweighted outcomes, which differ from the estimates where labels are sampled.
        drawn = [name for name in names if "labels_sampled_ratio" not in rows[name]]
        shown = {name: rows[name] if values.get("details") == "1" else brief(rows[name]) for name in names}
        return encode(
            Listing(
                published_timestamp_seconds=asked.published,
                forgetting=self._seen.forgetting,
                counts=_counts(rows),
                warned=_warned(rows),
                found=len(found),
                first=first,
                names=names,
                rows=cast("dict[str, documents.Row]", shown),
                groups=_groups(rows, found) if grouped else UNSET,
                lines=self._lines({name: no_change_of(rows[name]) for name in drawn})
                if values.get("lines") == "1"
                else UNSET,
            )
        )


def brief(row: Row) -> Row:
    """Reduce a row to the fields that the page shows at first, rounded."""
    return {
        name: value if isinstance(value, str | bool) else round(value, 4 if name in _SHARES else None)
        for name in _BRIEF
        if (value := row.get(name)) is not None
    }


def beginning_of(name: str) -> str:
    """Return the beginning of a name by which models are grouped, with its separator."""
    found = _BEGINNING.match(name)
    return found.group() if found and found.group() else name


@lru_cache(maxsize=20_000)
def name_key(name: str) -> tuple[object, ...]:
    """Make a sort key that puts model-9 before model-10 and ignores case."""
    parts = re.split(r"([0-9]+)", name.casefold())
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part), name


def _is_asked_for(name: str, row: Row, asked: Mapping[str, str]) -> bool:
    wanted = asked.get("filter", "").casefold()
    prefix, model = asked.get("prefix"), asked.get("model")
    labels = str(row.get("labels", ""))
    return (
        (wanted in name.casefold() or wanted in labels.casefold())
        and (prefix is None or beginning_of(name) == prefix)
        and (model is None or name == model)
    )


def _has_label(report: Report | None, model: str, label: str) -> bool:
    """Tell whether settings give a model a label, written as name=value; a value may have commas."""
    name, _, value = label.partition("=")
    return report is not None and detail_at(with_parts(report.details, model, ()), "labels", name) == value


def _sorted(rows: Mapping[str, Row], names: list[str], asked: Mapping[str, str]) -> list[str]:
    """Sort names as the query says; rows without a value are last, equal ones are sorted by name."""
    by_name = sorted(names, key=name_key)
    down = asked.get("order") == "descending"
    field = SORTS[asked.get("sort", "attention")]
    if not field:
        return by_name[::-1] if down else by_name
    if field == "trouble":
        return sorted(by_name, key=lambda name: TROUBLES.index(rows[name][field]), reverse=down)  # type: ignore[arg-type]
    with_value = [name for name in by_name if isinstance(rows[name].get(field), float | int)]
    without = [name for name in by_name if not isinstance(rows[name].get(field), float | int)]
    return [*sorted(with_value, key=lambda name: rows[name][field], reverse=down), *without]


def is_waiting(row: Row) -> bool:
    """Tell whether a model has no outcome yet, so that its open verdict says nothing."""
    return WAITING in row


def _counts(rows: Mapping[str, Row]) -> Counts:
    verdicts = Counter(WAITING if is_waiting(row) else row["verdict"] for row in rows.values())
    return Counts(
        models=len(rows),
        better=verdicts["better"],
        open=verdicts["open"],
        worse=verdicts["worse"],
        waiting=verdicts[WAITING],
        incidents=sum("incidents" in row for row in rows.values()),
        warnings=sum("warning" in row for row in rows.values()),
    )


def _warned(rows: Mapping[str, Row]) -> list[Warned]:
    names = sorted((name for name, row in rows.items() if "warning" in row), key=name_key)
    return [
        Warned(name, str(rows[name]["warning"]), str(rows[name]["warning_page"])) for name in names[:WARNED]
    ]


def _groups(rows: Mapping[str, Row], found: Sequence[str]) -> list[Group]:
    """Make the groups, sorted by the most urgent trouble in each."""
    troubles: dict[str, Counter[str]] = {}
    for name in found:
        trouble = str(rows[name]["trouble"])
        kind = WAITING if trouble == "open" and is_waiting(rows[name]) else trouble
        troubles.setdefault(beginning_of(name), Counter())[kind] += 1
    ordered = sorted(
        troubles,
        key=lambda name: (min(map(_KINDS.index, troubles[name])), name_key(name)),
    )
    return [
        Group(prefix=name, models=troubles[name].total(), **{each: troubles[name][each] for each in _KINDS})
        for name in ordered
    ]

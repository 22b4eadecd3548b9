"""A page for people: every model beside its baselines, and where the rest is.

Plain HTML that needs no script; a few lines of script only refresh it in place. No other host is asked for
anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from string import Template

from streamwatch.core.series import Family, Histogram, Report

_PAGE = files("streamwatch.edge.exporters").joinpath("landing.html").read_text(encoding="utf-8")
_SCRIPT = _PAGE.partition("<script>")[2].partition("</script>")[0]
_SCRIPT_HASH = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
MAX_ROWS = 200
"""Models shown; the API has all of them."""


class LandingPage:
    """`/`: models with accuracy, baselines, kappa-plus and alarms under one forgetting."""

    routes: Sequence[str] = ("/",)
    headers: Mapping[str, str] = {
        "Content-Security-Policy": (
            f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_SCRIPT_HASH}'; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
    }

    def media_type(self, accept: str) -> str:
        """HTML, whatever is asked for."""
        del accept
        return "text/html; charset=utf-8"

    def render(
        self, report: Report | None, live: Sequence[Family], media_type: str, path: Mapping[str, str]
    ) -> bytes:
        """The page as of the last report."""
        del media_type, path
        index = _Index.of((*live, *(report.families if report else ())))
        forgetting = index.forgetting()
        models = sorted({key[0] for key in index.of_model("outcomes_total")})
        rows = "\n".join(_row(index, model, forgetting) for model in models[:MAX_ROWS])
        if not models:
            rows = '<tr><td colspan="7">No outcome yet: no prediction has met its label.</td></tr>'
        elif len(models) > MAX_ROWS:
            rows += f'\n<tr><td colspan="7">… and {len(models) - MAX_ROWS} more in the API</td></tr>'
        page = Template(_PAGE).substitute(
            facts=" · ".join(escape(fact) for fact in _facts(index, report)),
            forgetting=escape(forgetting or "none"),
            rows=rows,
        )
        return page.encode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class _Index:
    """Values by metric and label values, the model first."""

    values: Mapping[str, Mapping[tuple[str, ...], float]]

    @classmethod
    def of(cls, families: Sequence[Family]) -> _Index:
        values: dict[str, dict[tuple[str, ...], float]] = {}
        for family in families:
            if family.name in values:
                continue  # live facts come first
            order = sorted(
                range(len(family.labels)), key=lambda at, names=family.labels: names[at] != "model"
            )
            values[family.name] = {
                tuple(labels[at] for at in order): value
                for labels, value in family.samples
                if not isinstance(value, Histogram)
            }
        return cls(values)

    def of_model(self, metric: str) -> Mapping[tuple[str, ...], float]:
        return self.values.get(metric, {})

    def forgetting(self) -> str | None:
        """The fading one if there is one: the recent past, without the jumps of a window."""
        names = list(dict.fromkeys(key[1] for key in self.of_model("accuracy_ratio")))
        return next((name for name in names if name.startswith("fading:")), names[0] if names else None)


def _row(index: _Index, model: str, forgetting: str | None) -> str:
    accuracy = index.of_model("accuracy_ratio").get((model, forgetting or ""))
    baselines = index.of_model("baseline_accuracy_ratio")
    persistent = baselines.get((model, "persistent", forgetting or ""))
    majority = baselines.get((model, "majority", forgetting or ""))
    kappa_plus = index.of_model("kappa_plus").get((model, forgetting or ""))
    alarms = sum(count for key, count in index.of_model("alarms_total").items() if key[0] == model)
    last = max(
        (at for key, at in index.of_model("last_alarm_timestamp_seconds").items() if key[0] == model),
        default=None,
    )
    worse = [
        name
        for name, baseline in (("persistent", persistent), ("majority", majority))
        if accuracy is not None and baseline is not None and accuracy <= baseline
    ]
    verdict = f'<span class="worse">not above {" or ".join(worse)}</span>' if worse else ""
    cells = (
        f"{index.of_model('outcomes_total').get((model,), 0):,.0f}",
        f"{_ratio(accuracy)} {verdict}",
        _ratio(persistent),
        _ratio(majority),
        _ratio(kappa_plus),
        f"{alarms:,.0f}" + (f" <small>last {_moment(last)}</small>" if last is not None else ""),
    )
    return (
        f'<tr><th scope="row">{escape(model)}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    )


def _facts(index: _Index, report: Report | None) -> Iterator[str]:
    for metric, yes, no in (
        ("kafka_up", "Kafka reachable", "Kafka unreachable"),
        ("caught_up", "caught up", "catching up"),
        ("state_durable", "state durable", "state in memory only"),
    ):
        value = index.of_model(metric).get(())
        if value is not None:
            yield yes if value else no
    pending = index.of_model("pending_predictions")
    if pending:
        yield f"{sum(pending.values()):,.0f} predictions wait for their label"
    yield f"as of {_moment(report.published_ms / 1000)}" if report else "nothing published yet"


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _moment(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # a record may carry any timestamp
        return f"{seconds:.0f} s"

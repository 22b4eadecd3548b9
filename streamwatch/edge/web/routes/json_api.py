"""Routes of all numbers as JSON, by model; and of health and alarms.

`GET /api/v1/models`::

    {"published_timestamp_seconds": 1760000000.5,
     "models": {"m": {"metrics": {"outcomes_total": 1200,
                                  "accuracy_ratio": {"fading:0.999": 0.91, "landmark": 0.9},
                                  "baseline_accuracy_ratio": {"persistent": {"landmark": 0.85}},
                                  "label_delay_seconds": {"count": 9, "sum": 61.5,
                                                          "buckets": {"60.0": 8, "+Inf": 9}}},
                      "details": {"classes": ["down", "up"]}}},
     "stream": {"predictions_accepted_total": 1300, "kafka_up": 1}}

Metric names are those of Prometheus without the prefix. A metric with labels other than `model` is nested by
their values, labels in alphabetical order. `stream` has the metrics without a model. Undefined values are
absent; infinities are the strings `+Inf` and `-Inf`. Bucket counts are cumulative. Before the first report
`published_timestamp_seconds` is null and there are no models.

`GET /api/v1/models/{model}`: `published_timestamp_seconds`, `model`, and that model's `metrics` and
`details`; 404 for an unknown model. Models named `.` and `..` are requested as `%252E` and `%252E%252E`. Only
here `details` has what is large: `early_hints`, `label_delays`, `probabilities`, `revisions` and `segments`;
the model's `confusion` matrix, if one is kept (for models with at most `monitors.shadow_max_classes`
classes)::

    {"forgetting": "fading:0.999", "classes": ["down", "up"], "counts": [[310.2, 40.9], [25.0, 498.7]]}

with one row of `counts` per true class and one number of outcomes per predicted class; and its `recovery`:
the drift under way, and the last that ended, if any. `details` of a model that predicts in folds has `folds`:
accuracies by forgetting and fold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Final, TypeAlias, cast

from msgspec import UNSET, UnsetType
from prometheus_client.utils import floatToGoString

from streamwatch.core.estimators.catalogue import listed
from streamwatch.core.estimators.registers.fleet import VERDICT_WORDS
from streamwatch.core.estimators.registers.late_labels.register import change_document
from streamwatch.core.metrics import COMPARISONS
from streamwatch.core.metrics.series import ClassSamples, Family, Histogram, Report, Sample
from streamwatch.core.records.events import Alarm, ErrorChange, Judgement
from streamwatch.edge.web.details import Details
from streamwatch.edge.web.details import ErrorChange as ErrorChangeDocument
from streamwatch.edge.web.documents import Alarm as AlarmDocument
from streamwatch.edge.web.documents import Alarms, Health, Model, ModelDocument, News
from streamwatch.edge.web.documents import Judgement as JudgementDocument
from streamwatch.edge.web.ports import NAME, Asked, Query, Route, encode, named, number

COMPARISON_NAMES = frozenset(metric.name for metric in COMPARISONS)
_OF_ONE: Final = frozenset(
    {"confusion", "early_hints", "label_delays", "probabilities", "recovery", "revisions", "segments"}
)
Tree: TypeAlias = "dict[str, Tree | float | str]"


class JsonExporter:
    """Exporter of `/api/v1/models`: the numbers of the last report by model, and live facts."""

    routes: Sequence[Route] = (
        Route("/api/v1/models", "Every number of every model", "Models", "models"),
        Route(
            "/api/v1/models/{model:.+}",
            "Every number of one model; `.` and `..` are asked for as `%252E` and `%252E%252E`",
            "Model",
            "models",
        ),
    )

    def render(self, asked: Asked) -> bytes | bytearray | None:
        """Render one model if `asked` names it, else all; None for an unknown model."""
        families, published = asked.families, asked.published
        wanted = asked.values.get("model")
        if wanted is not None:
            wanted = named(wanted, lambda: names_of(families))
        per_class = [family for family in families if isinstance(family.samples, ClassSamples)]
        others = (family for family in families if not isinstance(family.samples, ClassSamples))
        models, stream = by_model(chain(asked.live, others), wanted)

        def document(model: str) -> ModelDocument:
            of_classes, _ = by_model(per_class, model)
            shown = shown_details(asked.details.get(model, {}), whole=wanted is not None)
            return ModelDocument(models[model] | of_classes.get(model, {}), cast("Details", shown))

        if wanted is None:
            # Encoded model by model: a single call would block the event loop until its end, and would need
            # all models in memory before they are text.
            body = bytearray(b'{"published_timestamp_seconds":' + encode(published) + b',"models":{')
            for at, model in enumerate(models):
                body += (b"," if at else b"") + encode(model) + b":" + encode(document(model))
            body += b'},"stream":' + encode(stream) + b"}"
            return body
        if wanted not in models:
            return None
        of_wanted = document(wanted)
        return encode(Model(published, wanted, of_wanted.metrics, of_wanted.details))


def shown_details(details: Mapping[str, object], *, whole: bool) -> Mapping[str, object]:
    """Return details; unless `whole`, without the large ones that only the route of one model has."""
    return details if whole else {name: value for name, value in details.items() if name not in _OF_ONE}


def by_model(families: Iterable[Family], only: str | None = None) -> tuple[dict[str, Tree], Tree]:
    """Nest samples by label values; return the tree of each model (or of `only` one), and of no model.

    Of families with equal names, the first counts. Comparisons of two models are left out (see
    `comparisons`).
    """
    models: dict[str, Tree] = {}
    stream: Tree = {}
    seen: set[str] = set()
    for family in families:
        if family.name in seen or family.name in COMPARISON_NAMES:
            continue
        seen.add(family.name)
        at = family.labels.index("model") if "model" in family.labels else None
        samples: Iterable[Sample] = family.samples
        if only is not None and isinstance(family.samples, ClassSamples):
            samples = family.samples.of_model(only)
        for values, value in samples:
            if not isinstance(value, Histogram) and math.isnan(value):
                continue
            if at is None:
                tree, rest = stream, values
            elif only is not None and values[at] != only:
                continue
            else:
                tree, rest = models.setdefault(values[at], {}), values[:at] + values[at + 1 :]
            *branches, leaf = (family.name, *rest)
            for branch in branches:
                below = tree.setdefault(branch, {})
                assert isinstance(below, dict)  # noqa: S101 - one family has one set of labels
                tree = below
            tree[leaf] = _leaf(family, value)
    return models, stream


def names_of(families: Iterable[Family]) -> set[str]:
    """Return the models that families have samples of."""
    return {
        values[family.labels.index("model")]
        for family in families
        if "model" in family.labels and not isinstance(family.samples, ClassSamples)
        for values, _ in family.samples
    }


def _leaf(family: Family, value: float | Histogram) -> Tree | float | str:
    if not isinstance(value, Histogram):
        return number(value)
    bounds = (*map(floatToGoString, family.bounds), "+Inf")
    buckets: Tree = dict(zip(bounds, value.counts, strict=True))
    return {"count": value.counts[-1], "sum": value.total, "buckets": buckets}


# Health of the daemon: whether it is ready, and every number without a model.
#
# `GET /api/v1/health`::
#
# {"ready": false, "reasons": ["Kafka cannot be reached"], "published_timestamp_seconds": 1760000000.5,
# "stream": {"kafka_up": 0, "caught_up": 0, "consumer_lag_records": {"0": {"labels": 12}}, …}}
#
# `stream` is that of `/api/v1/models`. The status is always 200; `/readyz` has one for probes.


class HealthExporter:
    """Exporter of `/api/v1/health`.

    Parameters
    ----------
    unready
        Returns the reasons why the daemon is not ready; called in the rendering thread.
    """

    routes: Sequence[Route] = (Route("/api/v1/health", "How the daemon itself is", "Health", "daemon"),)

    def __init__(self, unready: Callable[[], Sequence[str]]) -> None:
        self._unready = unready

    def render(self, asked: Asked) -> bytes:
        """Render readiness, and the numbers without a model."""
        families = chain(asked.live, asked.families)
        _, stream = by_model(family for family in families if "model" not in family.labels)
        reasons = list(self._unready())
        return encode(Health(not reasons, reasons, asked.published, stream))


# Recent alarms of all models, newest first.
#
# `GET /api/v1/alarms?limit=20&model=m`::
#
# {"published_timestamp_seconds": 1760000000.5, "alarms": [{"model": "m", "detector": "adwin", "ordinal": 2,
# "outcome": 2464, "timestamp_seconds": 1759999990.0, "statistic": 0.31, "threshold": 0.12, "before": 0.02,
# "after": 0.31, "effective_sample_size": 160.0}]}
#
# `before` and `after` are mean losses (the share of errors) on either side of the change as the detector
# splits it; `timestamp_seconds` is the event time of outcome number `outcome` of the model. Values that are
# undefined or infinite are absent. A change of verdict has, instead of mean losses,
#
# "judgement": {"opponent": "persistent", "verdict": "worse", "since_outcome": 2301,
# "since_timestamp_seconds": 1759999000.0, "quick_labels_only": false, "basis": "labels", "status": "",
# "utility": "accuracy"}
#
# By cohorts of prediction time (`basis` is `cohorts`), `since_timestamp_seconds` is a prediction time, which
# may have an interval (`earliest_timestamp_seconds`, `latest_timestamp_seconds`), `since_outcome` is
# approximate, and `status` is `early`, `confirmed`, `retracted` or empty. Such a verdict is worse than
# `opponent`, better than both no change and the majority, or open.
#
# A detector's alarm may have the time since when *predictions* have another error, which precedes their
# labels:
#
# "predictions": {"since_timestamp_seconds": 1759980000.0, "earliest_timestamp_seconds": 1759978000.0,
# "latest_timestamp_seconds": 1759982000.0, "before": 0.02, "after": 0.31}
#
# An alarm of a detector in prediction time (`monitors.detector_clocks`) has `predicted_timestamp_seconds`,
# the time of the prediction at whose outcome it alarmed; `outcome` and `timestamp_seconds` tell when that was
# detected.


DEFAULT_LIMIT = 100


class AlarmsExporter:
    """Exporter of `/api/v1/alarms`: the alarms that the daemon remembers, notified or not."""

    routes: Sequence[Route] = (
        Route(
            "/api/v1/alarms",
            "Recent alarms of all models, newest first (at most the latest 1,000 are remembered)",
            "Alarms",
            "alarms",
            (
                Query(
                    "limit",
                    "[1-9][0-9]{0,3}",
                    {"type": "integer", "minimum": 1, "maximum": 9_999, "default": DEFAULT_LIMIT},
                    "At most so many",
                ),
                Query("model", ".{1,128}", NAME, "Only this model's"),
            ),
        ),
    )

    def render(self, asked: Asked) -> bytes:
        """Render at most `limit` alarms, of one model if `asked` names it."""
        model = asked.values.get("model")
        newest_first = reversed(asked.report.alarms) if asked.report else iter(())
        chosen = (alarm for alarm in newest_first if model is None or alarm.model == model)
        limit = int(asked.values.get("limit", DEFAULT_LIMIT))
        return encode(Alarms(asked.published, [alarm_document(alarm) for alarm in islice(chosen, limit)]))


def alarm_document(alarm: Alarm) -> AlarmDocument:
    """Make the document of an alarm; undefined and infinite values are absent."""
    of_detector = alarm.judgement is None
    return AlarmDocument(
        model=alarm.model,
        detector=alarm.detector,
        ordinal=alarm.ordinal,
        outcome=alarm.outcome,
        timestamp_seconds=alarm.event_ms / 1000,
        statistic=_finite(alarm.statistic),
        threshold=_finite(alarm.threshold),
        effective_sample_size=_finite(alarm.n_eff),
        before=_finite(alarm.before) if of_detector else UNSET,
        after=_finite(alarm.after) if of_detector else UNSET,
        judgement=UNSET if alarm.judgement is None else judgement_document(alarm.judgement),
        predictions=UNSET if alarm.predictions is None else _change(alarm.predictions),
        predicted_timestamp_seconds=UNSET if alarm.predicted_ms is None else alarm.predicted_ms / 1000,
    )


def judgement_document(judgement: Judgement) -> JudgementDocument:
    """Make the document of a verdict."""
    return JudgementDocument(
        judgement.opponent,
        VERDICT_WORDS[judgement.verdict],
        judgement.since,
        judgement.since_ms / 1000,
        judgement.quick_labels_only,
        judgement.basis,
        judgement.status,
        judgement.utility,
        UNSET if judgement.earliest_ms is None else judgement.earliest_ms / 1000,
        UNSET if judgement.latest_ms is None else judgement.latest_ms / 1000,
    )


def _change(change: ErrorChange) -> ErrorChangeDocument:
    return cast("ErrorChangeDocument", change_document(change))


def _finite(value: float) -> float | UnsetType:
    return float(value) if math.isfinite(value) else UNSET


# Stream of server-sent events that tell open pages of every report, rendered once for all listeners.
#
# `GET /api/v1/stream` sends `event: report` at once, and after every report::
#
#     event: report
#     id: 1760000001500
#     data: {"published_timestamp_seconds": 1760000001.5, "models": 12, "alarms": [{…}]}
#
# `alarms` are those raised since the last event, newest first; none for a new listener. With the first report
# after a start they are all recent ones, also those of earlier runs. The id is the report's
# time in ms. Numbers are not sent: a page requests those that it shows. `Last-Event-ID` is ignored.


class NewsStream:
    """Stream of news for clients that keep listening; used by one thread at a time."""

    route = Route(
        "/api/v1/stream",
        "News of every report, as server-sent events",
        media_types=("text/event-stream",),
        details=(
            "An event `report` (schema News) at once and after every report: its time, the number of models, "
            "and the alarms raised since the event before. The id is the report's time in milliseconds. A "
            "comment every 15 s keeps the connection alive."
        ),
    )

    def __init__(self) -> None:
        self._report: Report | None = None
        self._models = 0

    def events(self, report: Report | None, *, whole: bool) -> tuple[bytes, bytes]:
        """Render the events for new listeners (without alarms, empty unless `whole`) and for earlier ones."""
        changes = b""
        if report is not None and report is not self._report:
            self._models = len(names_of(report.families))
            changes = self._event(report, _news(self._report, report))
            self._report = report
        return self._event(report, ()) if whole else b"", changes

    def _event(self, report: Report | None, alarms: Sequence[Alarm]) -> bytes:
        published_ms = None if report is None else report.published_ms
        identity = b"" if published_ms is None else b"id: %d\n" % published_ms
        published = None if published_ms is None else published_ms / 1000
        news = News(published, self._models, [alarm_document(alarm) for alarm in alarms])
        return b"event: report\n%bdata: %b\n\n" % (identity, encode(news))


def _news(before: Report | None, after: Report) -> list[Alarm]:
    """Return the alarms that the previous report did not have, newest first; all without a previous one."""
    earlier = set(before.alarms[-1:]) if before else set[Alarm]()
    found: list[Alarm] = []
    for alarm in reversed(after.alarms):
        if alarm in earlier:
            break
        found.append(alarm)
    return found


# Route of the catalogue of measures and detectors, as `streamwatch catalogue --json` prints it.
#
# `GET /api/v1/catalogue`::
#
#     {"measures": [{"name": "kappa", "help": "Gain over chance agreement: …", "formula": "…",
#                    "source": "Cohen 1960; …", "cost": "O(K) per report"}], …,
#      "detectors": [{"name": "ddm", …, "parameters": [{"name": "warning", "meaning": "…", …}]}], …}
#
# The page shows the measures, bounds and baselines that are listed here.


class CatalogueExporter:
    """Exporter of `/api/v1/catalogue`."""

    routes: Sequence[Route] = (
        Route("/api/v1/catalogue", "What is computed, by which formula and from whom", "Listed", "models"),
    )

    def render(self, asked: Asked) -> bytes:  # noqa: ARG002 - it never changes
        """Encode the catalogue, which never changes."""
        return encode(listed())

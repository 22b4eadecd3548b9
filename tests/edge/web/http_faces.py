"""A server with every face, over reports that tests make up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import msgspec

from streamwatch.assembly.http import build_server
from streamwatch.core.metrics import LABEL_DELAY_BOUNDS
from streamwatch.core.metrics.series import Family, Histogram, Report
from streamwatch.core.publishing.candidacy import ROLES
from streamwatch.core.records.events import Alarm
from streamwatch.core.specs import MonitorsSpec
from streamwatch.edge.web.server import HttpServer
from streamwatch.settings.http import HttpSection
from streamwatch.telemetry import Telemetry

BEGAN_MS = 1_760_000_000_000
FADING = "fading:0.999"
Samples = list[tuple[tuple[str, ...], float | Histogram]]


AT_PREDICTION_LESS = 0.125
"""By so much the last label known at the prediction is right less often than the previous label."""


@dataclass
class FakeHealth:
    reasons: list[str] = field(default_factory=list)
    facts: dict[str, float] = field(
        default_factory=lambda: {"kafka_up": 1.0, "caught_up": 1.0, "state_durable": 1.0}
    )

    role: str | None = None

    def unready(self) -> Sequence[str]:
        return self.reasons

    def families(self) -> Sequence[Family]:
        version = Family("build_info", "gauge", "h", ("version",), [(("0.1.0",), 1)])
        roles = ROLES if self.role is not None else ()
        parts = [((role,), float(role == self.role)) for role in roles]
        return [
            version,
            Family("standby_role", "gauge", "h", ("role",), parts),
            *(Family(name, "gauge", "h", (), [((), value)]) for name, value in self.facts.items()),
        ]


AT_PREDICTION_LESS = 0.125
"""By so much the last label known at the prediction is right less often than the previous label."""


@dataclass(frozen=True)
class Model:
    """What a test says of a model; everything else follows."""

    outcomes: int = 1_200
    accuracy: float = 0.9
    bound: float = 0.03
    persistent: float = 0.8
    majority: float = 0.6
    kappa_plus: float = 0.5
    alarms: int = 0
    last_alarm: float | None = None
    pending: int = 7

    @property
    def lead(self) -> float:
        return self.accuracy - self.persistent

    @property
    def verdict(self) -> int:
        """Made up so that whoever leads by more than the bound is better, and the other way round."""
        return (self.lead > self.bound) - (self.lead < -self.bound)


def alarm(model: str, ordinal: int = 1, detector: str = "adwin", **changed: object) -> Alarm:
    made = Alarm(model, detector, ordinal, 100 * ordinal, BEGAN_MS, BEGAN_MS, 0.3, 0.1, 0.02, 0.31, 150.0)
    return msgspec.structs.replace(made, **changed)


def on_opponents(
    models: list[tuple[str, Model]], value: Callable[[Model], float], wanted: Callable[[Model], object]
) -> Samples:
    """What is shown of no change, and, where nobody should look, the opposite of another opponent."""
    own: Samples = [((k, "persistent"), value(m)) for k, m in models if wanted(m)]
    return own + [((k, "majority"), -value(m)) for k, m in models]


def families_of(models: dict[str, Model]) -> list[Family]:
    """The families the daemon would report."""
    n = sorted(models.items())
    f, main = ("forgetting", "model"), FADING

    def gauge(name: str, labels: tuple[str, ...], samples: Samples, kind: str = "gauge") -> Family:
        return Family(name, kind, "h", labels, samples)  # type: ignore[arg-type]

    counts = (1, *(9 for _ in LABEL_DELAY_BOUNDS[1:]), 10)
    return [
        gauge("outcomes_total", ("model",), [((k,), m.outcomes) for k, m in n], "counter"),
        gauge("errors_total", ("model",), [((k,), round(m.outcomes * (1 - m.accuracy))) for k, m in n]),
        gauge(
            "accuracy_ratio",
            f,
            [(("landmark", k), m.accuracy / 2) for k, m in n] + [((main, k), m.accuracy) for k, m in n],
        ),
        *(
            gauge(name, ("model", "opponent"), on_opponents(n, value, wanted))
            for name, value, wanted in (
                ("verdict", lambda m: m.verdict, lambda _: True),
                ("verdict_since_timestamp_seconds", lambda _: BEGAN_MS / 1000, lambda m: m.verdict),
                ("verdict_since_outcome", lambda _: 17, lambda m: m.verdict),
                ("lead", lambda m: m.lead, lambda _: True),
                ("lead_lower", lambda m: m.lead - m.bound, lambda _: True),
                ("lead_upper", lambda m: m.lead + m.bound, lambda _: True),
            )
        ),
        gauge("effective_sample_size", f, [((main, k), m.outcomes / 2) for k, m in n]),
        *(
            gauge(kappa, f, [((main, k), m.kappa_plus) for k, m in n])
            for kappa in ("kappa", "kappa_majority", "kappa_persistent", "kappa_plus")
        ),
        gauge(
            "accuracy_bound_ratio",
            ("bound", *f),
            [(("hoeffding", main, k), m.accuracy - m.bound) for k, m in n]
            + [(("hoeffding_upper", main, k), min(1.0, m.accuracy + m.bound)) for k, m in n],
        ),
        gauge(
            "baseline_accuracy_ratio",
            ("baseline", *f),
            [(("persistent", main, k), m.persistent) for k, m in n]
            + [(("persistent_at_prediction", main, k), m.persistent - AT_PREDICTION_LESS) for k, m in n]
            + [(("majority", main, k), m.majority) for k, m in n],
        ),
        gauge("detector_statistic", ("detector", "model"), [(("adwin", k), m.accuracy / 9) for k, m in n]),
        gauge("detector_threshold", ("detector", "model"), [(("adwin", k), 0.2) for k, m in n]),
        gauge("alarms_total", ("detector", "model"), [(("adwin", k), m.alarms) for k, m in n], "counter"),
        gauge(
            "last_alarm_timestamp_seconds",
            ("detector", "model"),
            [(("adwin", k), m.last_alarm) for k, m in n if m.last_alarm is not None],
        ),
        Family(
            "label_delay_seconds",
            "histogram",
            "h",
            ("model",),
            [((k,), Histogram(counts, 40.0)) for k, _ in n],
            LABEL_DELAY_BOUNDS,
        ),
        gauge("pending_predictions", ("model",), [((k,), m.pending) for k, m in n]),
        gauge(
            "recall_ratio",
            ("class", *f),
            [((c, main, k), m.accuracy) for k, m in n for c in ("fraud", "legit")],
        ),
        gauge(
            "class_truth_ratio",
            ("class", *f),
            [((c, main, k), share) for k, _ in n for c, share in (("fraud", 0.1), ("legit", 0.9))],
        ),
        gauge("predictions_accepted_total", (), [((), sum(m.outcomes + m.pending for _, m in n))], "counter"),
    ]


def report_of(models: dict[str, Model], second: float = 0.0, alarms: Sequence[Alarm] = ()) -> Report:
    """A report published so many seconds after the beginning."""
    return Report(families_of(models), BEGAN_MS + round(second * 1000), {}, tuple(alarms))


def worse(model: Model) -> Model:
    return replace(model, accuracy=model.persistent - 2 * model.bound)


@asynccontextmanager
async def serving(
    health: FakeHealth | None = None,
    telemetry: Telemetry | None = None,
    monitors: MonitorsSpec | None = None,
    **section: object,
) -> AsyncIterator[HttpServer]:
    """A started server as the settings would build it, on any free port."""
    settings = HttpSection(**{"listen": "127.0.0.1:0", **section})  # type: ignore[arg-type]
    server = build_server(settings, health or FakeHealth(), telemetry or Telemetry(level="error"), monitors)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()

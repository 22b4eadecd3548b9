"""The HTTP server with all routes of the daemon."""

from __future__ import annotations

from streamwatch.core.metrics.series_budget import Cut, SeriesBudget
from streamwatch.core.metrics.table import StandardSeries
from streamwatch.core.specs import MonitorsSpec
from streamwatch.edge.web.access import Access
from streamwatch.edge.web.connections import HttpLimits
from streamwatch.edge.web.openapi import ApiIndexExporter, OpenApiExporter
from streamwatch.edge.web.page import DOCS, PAGE, StatusPage, docs_page
from streamwatch.edge.web.ports import Health, Route
from streamwatch.edge.web.routes.comparisons import (
    ComparisonsExporter,
    ComparisonVerdictExporter,
    FoldsExporter,
    WorseExporter,
)
from streamwatch.edge.web.routes.history import ComparisonHistoryExporter, HistoryExporter, PastExporter
from streamwatch.edge.web.routes.json_api import (
    AlarmsExporter,
    CatalogueExporter,
    HealthExporter,
    JsonExporter,
    NewsStream,
)
from streamwatch.edge.web.routes.listing import ListingExporter
from streamwatch.edge.web.routes.overview import OverviewExporter
from streamwatch.edge.web.routes.prometheus import PrometheusExporter
from streamwatch.edge.web.server import ALIVE, READY, HttpServer
from streamwatch.settings.http import HttpSection
from streamwatch.telemetry import HttpClientRefused, HttpExposed, SeriesDropped, Telemetry

ROUTES: tuple[Route, ...] = (
    *JsonExporter.routes,
    *WorseExporter.routes,
    *HistoryExporter.routes,
    *PastExporter.routes,
    *OverviewExporter.routes,
    *ListingExporter.routes,
    *ComparisonsExporter.routes,
    *ComparisonVerdictExporter.routes,
    *ComparisonHistoryExporter.routes,
    NewsStream.route,
    *AlarmsExporter.routes,
    *FoldsExporter.routes,
    *CatalogueExporter.routes,
    *HealthExporter.routes,
    *ApiIndexExporter.routes,
    *OpenApiExporter.routes,
    *PrometheusExporter.routes,
    ALIVE,
    READY,
    *PAGE,
    *DOCS,
)
"""Every route of the server, in the order in which they are described."""


def build_server(
    section: HttpSection, health: Health, telemetry: Telemetry, monitors: MonitorsSpec | None = None
) -> HttpServer:
    """Build the server of the settings; emits `HttpExposed` if more clients than intended may have access.

    Parameters
    ----------
    section
        Address, access and limits.
    health
        Answers `/readyz`.
    telemetry
        Receives internal events.
    monitors
        Estimators, which decide the series of a scrape and their budget.
    """
    monitors = monitors or MonitorsSpec()
    budget = SeriesBudget.of(monitors)
    standard = None if monitors.all_series else StandardSeries([each.name for each in monitors.forgetting])
    access = access_of(section)
    for weakness in access.weaknesses(section.host):
        telemetry.emit(HttpExposed(section.listen, weakness))

    def report(cut: Cut) -> None:
        dropped = ", ".join(f"{count} {part}" for part, count in cut.dropped.items()) or "none"
        telemetry.emit(SeriesDropped(sum(cut.dropped.values()), dropped, cut.models, budget.max_series))

    history, comparisons = HistoryExporter(), ComparisonHistoryExporter()
    return HttpServer(
        health,
        (
            PrometheusExporter(budget, report, standard),
            history,  # before JsonExporter, whose route of a model would match its paths
            PastExporter(),
            JsonExporter(),
            WorseExporter(),
            OverviewExporter(),
            ListingExporter(history.lines),
            comparisons,
            ComparisonsExporter(),
            ComparisonVerdictExporter(),
            AlarmsExporter(),
            FoldsExporter(),
            CatalogueExporter(),
            HealthExporter(health.unready),
            OpenApiExporter(ROUTES),
            ApiIndexExporter(ROUTES),
            StatusPage(),
            docs_page(),
        ),
        host=section.host,
        port=section.port,
        access=access,
        stream=NewsStream(),
        observers=(history, comparisons),
        limits=limits_of(section),
        refused=lambda reason: telemetry.emit(HttpClientRefused(reason)),
    )


def access_of(section: HttpSection) -> Access:
    """Build access rules: token, read from its file if it is in one, certificate and host names."""
    tls = section.tls
    return Access(
        token=section.read_token(),
        certificate_file=tls.certificate_file if tls else None,
        key_file=tls.key_file if tls else None,
        hosts=frozenset(name.lower() for name in section.allowed_hosts),
    )


def limits_of(section: HttpSection) -> HttpLimits:
    """Limits of the connections, time and memory that clients may take."""
    return HttpLimits(
        connections=section.max_connections,
        header_seconds=section.header_timeout / 1_000,
        send_seconds=section.send_timeout / 1_000,
        buffered_bytes=section.max_buffered_bytes,
    )

"""The HTTP server with every face the daemon has."""

from __future__ import annotations

from streamwatch.edge.exporters.alarms import AlarmsExporter
from streamwatch.edge.exporters.health import HealthExporter
from streamwatch.edge.exporters.history import HistoryExporter
from streamwatch.edge.exporters.json_api import JsonExporter
from streamwatch.edge.exporters.openapi import OpenApiExporter
from streamwatch.edge.exporters.overview import OverviewExporter
from streamwatch.edge.exporters.page import StatusPage
from streamwatch.edge.exporters.prometheus import PrometheusExporter
from streamwatch.edge.exporters.stream import OverviewStream
from streamwatch.edge.http import Access, Health, HttpServer
from streamwatch.settings.http import HttpSection
from streamwatch.telemetry import AccessLeftOpen, Telemetry


def build_server(section: HttpSection, health: Health, telemetry: Telemetry) -> HttpServer:
    """A server as the settings want it; tells when it can be read by more than was perhaps meant."""
    access = access_of(section)
    for weakness in access.weaknesses(section.host):
        telemetry.emit(AccessLeftOpen(section.listen, weakness))
    history = HistoryExporter()
    return HttpServer(
        health,
        (
            PrometheusExporter(),
            history,  # before the models, whose route would take its path for a name
            JsonExporter(),
            OverviewExporter(),
            AlarmsExporter(),
            HealthExporter(health.unready),
            OpenApiExporter(),
            StatusPage(),
        ),
        host=section.host,
        port=section.port,
        access=access,
        stream=OverviewStream(),
        observers=(history,),
    )


def access_of(section: HttpSection) -> Access:
    """Token and certificate, read from their files where they are given as files."""
    tls = section.tls
    return Access(
        token=section.read_token(),
        certificate_file=tls.certificate_file if tls else None,
        key_file=tls.key_file if tls else None,
    )

"""docker-compose.yml, as far as can be known without running it."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from typer.main import get_command

from streamwatch.assembly import specs
from streamwatch.assembly import topics as topic_properties
from streamwatch.cli import app
from streamwatch.core.estimators.kernel.layout import layout_of
from streamwatch.core.specs import MonitorsSpec
from streamwatch.settings import load
from tests.deploy.repository import DEPLOY, ROOT, version

pytestmark = pytest.mark.slow

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
CARRIES = {
    "apache/kafka": "/opt/kafka/bin/kafka-broker-api-versions.sh",
    "prom/prometheus": "wget",
    "prom/alertmanager": "wget",
    "grafana/grafana": "curl",
    "streamwatch": "python",
}
"""What an image has to check its health with."""
each_service = pytest.mark.parametrize("name", SERVICES)


def binds(service: dict[str, Any]) -> list[tuple[str, str]]:
    """(path in the repository, path in the container) of what is mounted from here."""
    mounts = [volume.split(":") for volume in service.get("volumes", ())]
    return [(source, target) for source, target, *_ in mounts if source.startswith(".")]


def test_every_part_of_the_picture_is_there() -> None:
    assert set(SERVICES) == {"kafka", "simulator", "streamwatch", "prometheus", "alertmanager", "grafana"}


@each_service
def test_images_are_pinned_to_a_release(name: str) -> None:
    _, _, tag = SERVICES[name]["image"].partition(":")
    assert re.fullmatch(r"v?\d+\.\d+\.\d+", tag), SERVICES[name]["image"]


def test_our_image_carries_the_projects_version_and_is_built_once_for_the_first_that_starts() -> None:
    ours = {name for name, service in SERVICES.items() if service["image"] == f"streamwatch:{version()}"}
    assert ours == {"streamwatch", "simulator"}
    (builds,) = (name for name, service in SERVICES.items() if "build" in service)
    assert (ROOT / SERVICES[builds]["build"]["dockerfile"]).is_file()
    (uses,) = ours - {builds}
    assert SERVICES[uses]["pull_policy"] == "never", "no registry has it"
    assert builds in SERVICES[uses]["depends_on"]


@each_service
def test_health_is_checked_with_something_the_image_carries(name: str) -> None:
    kind, program, *_ = SERVICES[name]["healthcheck"]["test"]
    assert kind == "CMD", "no shell in between: the images of Prometheus may lose theirs"
    assert program == CARRIES[SERVICES[name]["image"].partition(":")[0]]


@pytest.mark.parametrize("name", ["streamwatch", "simulator"])
def test_checks_written_in_python_are_python(name: str) -> None:
    *_, flag, script = SERVICES[name]["healthcheck"]["test"]
    assert flag == "-c"
    ast.parse(script)


@each_service
def test_what_a_service_waits_for_can_become_healthy(name: str) -> None:
    for awaited, condition in SERVICES[name].get("depends_on", {}).items():
        assert condition == {"condition": "service_healthy"}
        assert "healthcheck" in SERVICES[awaited]


def test_the_order_of_the_start_has_no_circle_and_begins_with_kafka() -> None:
    started: list[str] = []
    while len(started) < len(SERVICES):
        ready = [
            name
            for name, service in SERVICES.items()
            if name not in started and set(service.get("depends_on", {})) <= set(started)
        ]
        assert ready, f"these wait for each other: {set(SERVICES) - set(started)}"
        started += ready
    order = ["kafka", "simulator", "streamwatch", "prometheus", "grafana"]
    assert sorted(order, key=started.index) == order


@each_service
def test_what_is_mounted_exists(name: str) -> None:
    for source, _ in binds(SERVICES[name]):
        assert (ROOT / source).exists(), source


@each_service
def test_volumes_are_declared(name: str) -> None:
    named = {volume.split(":")[0] for volume in SERVICES[name].get("volumes", ())}
    assert {volume for volume in named if not volume.startswith(".")} <= set(COMPOSE["volumes"])


@each_service
def test_nothing_is_published_beyond_this_machine(name: str) -> None:
    for port in SERVICES[name].get("ports", ()):
        assert port.startswith("127.0.0.1:")


@pytest.mark.parametrize("name", ["streamwatch", "simulator"])
def test_our_containers_can_write_nowhere_but_to_their_state(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_prometheus_and_alertmanager_find_their_configuration_where_it_is_mounted() -> None:
    for name in ("prometheus", "alertmanager"):
        option = next(o for o in SERVICES[name]["command"] if o.startswith("--config.file="))
        folder, _, file = option.removeprefix("--config.file=").rpartition("/")
        source = {target: source for source, target in binds(SERVICES[name])}[folder]
        assert (ROOT / source / file).is_file()


def test_prometheus_scrapes_the_services_under_their_names() -> None:
    scraped = (DEPLOY / "prometheus" / "prometheus.yml").read_text("utf-8")
    for target in ("streamwatch:9877", "alertmanager:9093"):
        assert target in scraped
        assert target.partition(":")[0] in SERVICES


def test_grafana_finds_its_datasource_its_dashboards_and_its_home() -> None:
    mounted = {target: ROOT / source for source, target in binds(SERVICES["grafana"])}
    provisioning = mounted["/etc/grafana/provisioning"]
    sources = [
        s
        for f in provisioning.glob("datasources/*.y*ml")
        for s in yaml.safe_load(f.read_text())["datasources"]
    ]
    assert "http://prometheus:9090" in [source["url"] for source in sources]
    providers = [
        p for f in provisioning.glob("dashboards/*.y*ml") for p in yaml.safe_load(f.read_text())["providers"]
    ]
    assert [provider["options"]["path"] for provider in providers] == ["/var/lib/grafana/dashboards"]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    folder, _, file = home.rpartition("/")
    assert json.loads((mounted[folder] / file).read_text("utf-8"))["panels"]


def test_the_daemon_reads_the_topics_the_simulator_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMWATCH_CONFIG", raising=False)
    settings = load(DEPLOY / "docker" / "streamwatch.yaml")
    sides = topic_properties.sides(settings.topics)
    assert set(sides) == {"predictions", "labels"}  # the simulator's defaults
    assert list(settings.kafka.bootstrap_servers) == ["kafka:9092"]
    assert settings.http.listen == "0.0.0.0:9877"
    assert "/var/lib/streamwatch" in [str(parent) for parent in settings.state.directory.parents]


def test_the_simulator_understands_its_command_line() -> None:
    name, *arguments = SERVICES["simulator"]["command"]
    simulate = get_command(app).commands[name]  # type: ignore[attr-defined]
    given = simulate.make_context(name, arguments).params  # raises for an option there is not
    kafka = SERVICES["kafka"]["environment"]
    (broker,) = re.findall(r"PLAINTEXT://(kafka:\d+)", kafka["KAFKA_ADVERTISED_LISTENERS"])
    assert given["bootstrap_servers"] == broker
    assert given["create_topics"]
    assert kafka["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"
    *_, check = SERVICES["simulator"]["healthcheck"]["test"]
    for topic in (given["predictions"], given["labels"]):
        assert f'"{topic}"' in check


def test_the_daemons_estimators_are_those_compiled_in_the_image() -> None:
    shipped = layout_of(specs.monitors_spec(load(DEPLOY / "docker" / "streamwatch.yaml")))
    default = layout_of(MonitorsSpec())
    assert (shipped.model, shipped.ring) == (default.model, default.ring)


@pytest.mark.real("docker-compose")
def test_docker_compose_accepts_it(real_component: Callable[[str], str]) -> None:
    done = subprocess.run(
        [real_component("docker-compose"), "-f", "docker-compose.yml", "config"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(yaml.safe_load(done.stdout)["services"]) == set(SERVICES)


def test_what_a_person_must_change_first_is_not_tried_for_ever() -> None:
    """Compose knows no exit codes: a daemon that ended with 2 is tried a few times more."""
    assert SERVICES["streamwatch"]["restart"] == "on-failure:5"

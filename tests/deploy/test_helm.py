"""The Helm chart: linted, rendered by Helm, valid by schemas, and the same pod as the plain manifests'."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from streamwatch.settings import load
from tests.deploy.operator_schemas import SCHEMAS
from tests.deploy.repository import DEPLOY, documents, version
from tests.real import helm, need

pytestmark = pytest.mark.slow

CHART = DEPLOY / "helm" / "streamwatch"
PLAIN = DEPLOY / "kubernetes"
EVERYTHING = (
    "podMonitor.enabled=true",
    "podMonitor.labels.release=prometheus",
    "prometheusRule.enabled=true",
    "dashboards.enabled=true",
    "secrets.kafka=my-kafka-secret",
    "persistence.storageClassName=fast",
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture(name="helm")
def built_helm(request: pytest.FixtureRequest) -> str:
    need(request.node.nodeid, "helm")
    return helm() or ""


def run(helm: str, *arguments: str | Path, succeeds: bool = True) -> str:
    done = subprocess.run([helm, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is succeeds, done.stderr
    return done.stdout if succeeds else done.stderr


def rendered(helm: str, *values: str, release: str = "fraud") -> list[dict[str, Any]]:
    options = [part for value in values for part in ("--set", value)]
    text = run(helm, "template", release, CHART, "--kube-version", "1.31.0", "--namespace", "watch", *options)
    return [document for document in yaml.safe_load_all(text) if document]


def of_kind(kind: str, manifests: list[dict[str, Any]]) -> dict[str, Any]:
    return next(manifest for manifest in manifests if manifest["kind"] == kind)


def test_it_is_linted_and_of_the_projects_version(helm: str) -> None:
    run(helm, "lint", CHART, "--strict", "--kube-version", "1.31.0")
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert (chart["version"], chart["appVersion"]) == (version(), version())


@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["defaults", "everything"])
def test_manifests_are_valid(helm: str, values: tuple[str, ...]) -> None:
    manifests = rendered(helm, *values)
    kinds = [manifest["kind"] for manifest in manifests]
    assert {"StatefulSet", "Service", "ServiceAccount", "ConfigMap"} <= set(kinds)
    assert ("PrometheusRule" in kinds) is bool(values)
    for manifest in manifests:
        if manifest["apiVersion"].startswith("monitoring.coreos.com/"):
            jsonschema.validate(manifest, SCHEMAS[manifest["kind"]])
        else:
            kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def test_the_pod_is_that_of_the_plain_manifests(helm: str) -> None:
    ours = of_kind("StatefulSet", rendered(helm, release="streamwatch"))["spec"]
    (plain,) = documents(PLAIN / "statefulset.yaml")
    theirs = plain["spec"]
    assert ours["template"]["spec"] == theirs["template"]["spec"]
    assert ours["volumeClaimTemplates"][0]["spec"] == theirs["volumeClaimTemplates"][0]["spec"]


def test_settings_are_those_of_the_plain_manifests_whatever_helm_makes_of_numbers(
    helm: str, tmp_path: Path
) -> None:
    maps = [of_kind("ConfigMap", rendered(helm)), documents(PLAIN / "configmap.yaml")[0]]
    for number, config_map in enumerate(maps):
        (tmp_path / f"{number}.yaml").write_text(config_map["data"]["streamwatch.yaml"], "utf-8")
    assert load(tmp_path / "0.yaml") == load(tmp_path / "1.yaml")


def test_rules_and_dashboards_arrive_as_they_are(helm: str) -> None:
    manifests = rendered(helm, *EVERYTHING)
    (plain,) = documents(PLAIN / "prometheusrule.yaml")
    assert of_kind("PrometheusRule", manifests)["spec"] == plain["spec"]
    shown = {k: json.loads(v) for m in manifests for k, v in m.get("data", {}).items() if k.endswith(".json")}
    files = (DEPLOY / "grafana" / "dashboards").glob("*.json")
    assert shown == {file.name: json.loads(file.read_text("utf-8")) for file in files}


def test_everything_selects_the_pod_of_its_release_only(helm: str) -> None:
    manifests = rendered(helm, *EVERYTHING)
    pod = of_kind("StatefulSet", manifests)["spec"]["template"]["metadata"]["labels"]
    for selector in (
        of_kind("StatefulSet", manifests)["spec"]["selector"]["matchLabels"],
        of_kind("Service", manifests)["spec"]["selector"],
        of_kind("PodMonitor", manifests)["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= pod.items()
        assert selector["app.kubernetes.io/instance"] == "fraud"


def test_what_asks_the_daemon_speaks_https_where_it_does(helm: str) -> None:
    tls = (
        "config.http.tls.certificate_file=/run/secrets/http/crt",
        "config.http.tls.key_file=/run/secrets/http/key",
    )
    asked = ("podMonitor.enabled=true", "podMonitor.tlsConfig.serverName=watch.example.com")
    for given, scheme in ((), "HTTP"), (tls, "HTTPS"):
        manifests = rendered(helm, *given, *asked)
        (container,) = of_kind("StatefulSet", manifests)["spec"]["template"]["spec"]["containers"]
        probes = [container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")]
        assert [probe.get("scheme", "HTTP") for probe in probes] == 3 * [scheme]
        monitor = of_kind("PodMonitor", manifests)
        jsonschema.validate(monitor, SCHEMAS["PodMonitor"])
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint.get("scheme", "http") == scheme.lower()
        assert endpoint["tlsConfig"] == {"serverName": "watch.example.com"}


def test_a_scrape_may_have_as_many_series_as_the_settings_allow(helm: str) -> None:
    for given, limit in ((), 210_000), (("config.monitors.max_series=400000",), 420_000):
        manifests = rendered(helm, *given, "podMonitor.enabled=true")
        assert of_kind("PodMonitor", manifests)["spec"]["sampleLimit"] == limit


def test_new_settings_restart_the_pod(helm: str) -> None:
    before, after = (
        of_kind("StatefulSet", rendered(helm, f"config.join.horizon={horizon}"))["spec"]["template"]
        for horizon in ("7d", "8d")
    )
    assert before["metadata"]["annotations"] != after["metadata"]["annotations"]


def test_a_standby_is_a_second_pod_on_another_node_of_which_one_stays(helm: str) -> None:
    manifests = rendered(helm, *EVERYTHING, "config.standby.enabled=true", release="streamwatch")
    for manifest in manifests:
        if not manifest["apiVersion"].startswith("monitoring.coreos.com/"):
            kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
    spec = of_kind("StatefulSet", manifests)["spec"]
    budget = of_kind("PodDisruptionBudget", manifests)["spec"]
    pod = spec["template"]["metadata"]["labels"]
    [rule] = spec["template"]["spec"]["affinity"]["podAntiAffinity"][REQUIRED]
    assert (spec["replicas"], spec["podManagementPolicy"], budget["maxUnavailable"]) == (2, "Parallel", 1)
    assert budget["selector"]["matchLabels"].items() <= pod.items()
    assert rule["labelSelector"]["matchLabels"].items() <= pod.items()
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    (patch,) = documents(PLAIN / "standby" / "statefulset.yaml")
    (plain,) = documents(PLAIN / "standby" / "poddisruptionbudget.yaml")
    [theirs] = patch["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"][REQUIRED]
    assert (patch["spec"]["replicas"], patch["spec"]["podManagementPolicy"]) == (2, "Parallel")
    assert (plain["spec"]["maxUnavailable"], theirs["topologyKey"]) == (1, rule["topologyKey"])


def test_affinity_that_is_given_is_the_one_that_counts(helm: str) -> None:
    given = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution=null"
    manifests = rendered(helm, "config.standby.enabled=true", given, "affinity.podAffinity={}")
    assert "podAntiAffinity" not in of_kind("StatefulSet", manifests)["spec"]["template"]["spec"]["affinity"]


def test_without_a_standby_there_is_one_pod_and_nothing_that_keeps_its_node(helm: str) -> None:
    manifests = rendered(helm, *EVERYTHING)
    assert of_kind("StatefulSet", manifests)["spec"]["replicas"] == 1
    assert "PodDisruptionBudget" not in [manifest["kind"] for manifest in manifests]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("config.http.listen=0.0.0.0:80", "config.http"),
        ("config.state.kind=memory", "config.state"),
        ("persistence.size=much", "persistence.size"),
        ("replicas=2", "replicas"),
    ],
)
def test_values_that_would_break_it_are_refused_by_name(helm: str, value: str, named: str) -> None:
    reported = run(helm, "template", "x", CHART, "--kube-version", "1.31.0", "--set", value, succeeds=False)
    assert named in reported

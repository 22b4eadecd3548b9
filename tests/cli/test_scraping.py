"""The scrape job that settings ask for: Prometheus takes it, and it is the shipped one by default."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamwatch.cli.config import rounded, scrape_job
from streamwatch.settings import Settings
from tests.assembly.lives import DOCUMENT
from tests.deploy.repository import DEPLOY


def job(**sections: Any) -> dict[str, Any]:
    """The element, read back."""
    [found] = yaml.safe_load(scrape_job(Settings(**{**DOCUMENT, **sections})))
    return found


def test_by_default_it_limits_as_the_shipped_file_does() -> None:
    shipped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text("utf-8"))
    [known] = [each for each in shipped["scrape_configs"] if each["job_name"] == "streamwatch"]
    found = job()
    for key in ("job_name", "sample_limit", "scrape_timeout"):
        assert found[key] == known[key]
    assert found["scrape_interval"] == shipped["global"]["scrape_interval"]


def test_its_limit_follows_the_series_that_the_daemon_shows_at_most() -> None:
    assert job(monitors={"max_series": 1_000_000})["sample_limit"] == 1_050_000
    assert [rounded(number) for number in (9, 999, 1_001, 123_400)] == [9, 999, 1_010, 124_000]


@pytest.mark.parametrize(
    ("listen", "target"),
    [("0.0.0.0:9877", "streamwatch:9877"), ("[::1]:80", "[::1]:80"), ("10.0.0.1:99", "10.0.0.1:99")],
)
def test_its_target_is_where_the_daemon_listens(listen: str, target: str) -> None:
    assert job(http={"listen": listen})["static_configs"] == [{"targets": [target]}]


@pytest.mark.slow
@pytest.mark.real("promtool")
def test_prometheus_takes_it_with_a_token_and_tls(
    real_component: Callable[[str], str], tmp_path: Path
) -> None:
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("")
    http = {
        "listen": "0.0.0.0:9877",
        "token": "x" * 32,
        "tls": {"certificate_file": str(tmp_path / "cert.pem"), "key_file": str(tmp_path / "key.pem")},
    }
    found = job(http=http)
    assert found["scheme"] == "https"
    assert "x" * 32 not in str(found)
    found["tls_config"]["ca_file"] = str(tmp_path / "cert.pem")
    found["authorization"]["credentials_file"] = str(tmp_path / "key.pem")
    file = tmp_path / "prometheus.yml"
    file.write_text(yaml.safe_dump({"scrape_configs": [found]}))
    ran = subprocess.run(
        [real_component("promtool"), "check", "config", str(file)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr

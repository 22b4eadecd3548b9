"""Scrape job for Prometheus that fits a daemon's settings."""

from __future__ import annotations

from typing import Any, Final

from streamwatch.edge.yaml_text import block
from streamwatch.settings import Settings

JOB: Final = "streamwatch"
"""Name of the job, by which the shipped rules select the daemon's series."""
ROOM: Final = 1.05
"""`sample_limit` of the job as a multiple of `monitors.max_series`, which the daemon does not exceed."""
SAMPLE_BYTES: Final = 200
"""Allowed mean bytes of a sample in a scrape; they are about 95 with names of 20 characters."""
MEMORY_BYTES: Final = 4_000
"""Memory of Prometheus for each series (its own rule of thumb)."""
INTERVAL: Final = "15s"
TIMEOUT: Final = "10s"


def scrape_job(settings: Settings, target: str | None = None) -> str:
    """Write an element of `scrape_configs` as YAML, with a comment on the memory that Prometheus needs.

    Parameters
    ----------
    settings
        Settings of the daemon.
    target
        `host:port` at which Prometheus reaches the daemon; None: that of `http.listen`, with the host
        `streamwatch` if it listens on all interfaces.
    """
    most = settings.monitors.max_series
    limit = rounded(round(most * ROOM))
    http = settings.http
    host = JOB if http.host in {"0.0.0.0", "::", ""} else http.host  # noqa: S104 - compared only
    shown = f"[{host}]" if ":" in host else host
    job: dict[str, Any] = {
        "job_name": JOB,
        "sample_limit": limit,
        "body_size_limit": f"{max(1, -(-limit * SAMPLE_BYTES // 1_000_000))}MB",
        "scrape_interval": INTERVAL,
        "scrape_timeout": TIMEOUT,
    }
    if http.tls is not None:
        job["scheme"] = "https"
        job["tls_config"] = {"ca_file": "/etc/prometheus/streamwatch-ca.pem"}
    if http.read_token() is not None:
        job["authorization"] = {"credentials_file": "/etc/prometheus/streamwatch.token"}
    job["static_configs"] = [{"targets": [target or f"{shown}:{http.port}"]}]
    return "\n".join(
        (
            "# An element of scrape_configs in prometheus.yml. The shipped rules ask for this job by name.",
            f"# The daemon shows at most {most:,} series (monitors.max_series); so many take",
            f"# about {most * MEMORY_BYTES / 1e6:,.0f} MB of Prometheus' memory. What models need is what",
            "# streamwatch check --verbose says.",
            "# The rules read buckets of histograms: where `global` sets convert_classic_histograms_to_nhcb",
            "# (Prometheus 3), set it to false in this job. Prometheus 2 does not know the key.",
            block([job]),
        )
    )


def rounded(number: int) -> int:
    """Round up to three significant digits."""
    unit = 10 ** max(0, len(str(number)) - 3)
    return -(-number // unit) * unit

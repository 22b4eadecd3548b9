"""The systemd unit: systemd's own verdict where it is there, and what must hold anyway."""

from __future__ import annotations

import configparser
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from streamwatch.cli.options import EXIT_CONFIG
from tests.deploy.repository import DEPLOY, ROOT

FILE = DEPLOY / "systemd" / "streamwatch.service"
MOST_EXPOSED = 1.5
"""systemd's measure: 0 is locked in, 10 is free to do anything. Left are sockets, the root directory, JIT."""


def unit() -> configparser.RawConfigParser:
    """The unit; of a key that is repeated, the last value."""
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(FILE, encoding="utf-8")
    return parser


SERVICE = unit()["Service"]


@pytest.fixture
def runnable(tmp_path: Path) -> Path:
    """The unit with a program that is installed here."""
    copy = tmp_path / FILE.name
    copy.write_text(FILE.read_text("utf-8").replace("/opt/streamwatch/bin/streamwatch", "/bin/true"), "utf-8")
    return copy


@pytest.mark.real("systemd-analyze")
def test_systemd_finds_nothing_wrong(real_component: Callable[[str], str], runnable: Path) -> None:
    done = subprocess.run(
        [real_component("systemd-analyze"), "verify", runnable], capture_output=True, text=True, check=False
    )
    # It looks at every unit of the machine on the way; only what it says of this one counts.
    assert [line for line in done.stderr.splitlines() if FILE.name in line] == []
    assert done.returncode == 0


@pytest.mark.real("systemd-analyze")
def test_little_of_the_machine_is_in_reach(real_component: Callable[[str], str], runnable: Path) -> None:
    done = subprocess.run(
        [real_component("systemd-analyze"), "security", "--offline=yes", "--no-pager", runnable],
        capture_output=True,
        text=True,
        check=True,
    )
    exposure = re.search(r"Overall exposure level.*: (\d+\.\d+)", done.stdout)
    assert exposure
    assert float(exposure[1]) <= MOST_EXPOSED


def test_the_daemon_notifies_systemd_of_its_status_and_is_watched() -> None:
    assert SERVICE["Type"] == "notify"
    assert SERVICE["NotifyAccess"] == "main"
    assert int(SERVICE["WatchdogSec"]) >= 30


def test_a_crash_is_followed_by_a_start_and_a_wrong_setting_is_not() -> None:
    assert SERVICE["Restart"] == "on-failure"
    assert SERVICE["RestartPreventExitStatus"] == str(EXIT_CONFIG)


def test_estimators_can_be_compiled() -> None:
    assert SERVICE["MemoryDenyWriteExecute"] == "no"
    environment = FILE.read_text("utf-8")
    assert "Environment=NUMBA_CACHE_DIR=%C/streamwatch\n" in environment
    assert SERVICE["CacheDirectory"] == "streamwatch"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("DynamicUser", "yes"),
        ("StateDirectory", "streamwatch"),
        ("NoNewPrivileges", "yes"),
        ("ProtectSystem", "strict"),
        ("ProtectHome", "yes"),
        ("PrivateTmp", "yes"),
        ("ProtectKernelTunables", "yes"),
        ("ProtectKernelModules", "yes"),
        ("ProtectKernelLogs", "yes"),
        ("CapabilityBoundingSet", ""),
        ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX"),
    ],
)
def test_it_is_locked_in(key: str, value: str) -> None:
    assert SERVICE[key] == value


def test_system_calls_are_those_of_services() -> None:
    assert re.findall(r"^SystemCallFilter=(.*)$", FILE.read_text("utf-8"), re.MULTILINE) == [
        "@system-service",
        "~@privileged",
    ]


def test_the_way_to_install_it_is_that_of_this_repository_and_of_the_unit() -> None:
    shown = FILE.read_text("utf-8")
    assert f"install -m 0644 {FILE.relative_to(ROOT)} /etc/systemd/system/" in shown
    program, *_, config = SERVICE["ExecStart"].split()
    assert f"-m venv {Path(program).parents[1]} && {Path(program).parent}/pip install ." in shown
    assert f"streamwatch.yaml {config} " in shown


def test_a_stop_has_longer_than_the_daemon_takes() -> None:
    assert int(SERVICE["TimeoutStopSec"]) > 10

"""A port is given to one test of one process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import ports


def test_a_port_is_given_once() -> None:
    given = [*ports.free_ports(20), *ports.free_ports(20), ports.free_port()]
    assert len(set(given)) == 41
    assert not any(map(ports.claim, given))


@pytest.mark.slow
def test_a_port_is_nobody_else_s_until_the_process_it_was_given_to_ends() -> None:
    script = "from tests import ports; print(*ports.free_ports(5), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        given = [int(port) for port in other.stdout.readline().split()]
        assert len(given) == 5
        assert not any(map(ports.claim, given))
        other.communicate("\n")
    assert all(map(ports.claim, given))

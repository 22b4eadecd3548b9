"""Roles of folds in Java and Go, as trainers may copy them, against the published vectors."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests import real

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parents[1] / "docs/folds"
VECTORS = json.loads((FOLDER / "test-vectors.json").read_text("utf-8"))


def answers(command: list[str], environment: dict[str, str]) -> list[str]:
    """Lines that a program prints for the vectors."""
    given = "".join(
        "\t".join(
            [
                vector["validation"],
                str(vector["folds"]),
                str(vector["prequential"]).lower(),
                str(vector["fold"]),
                vector["id"],
            ]
        )
        + "\n"
        for vector in VECTORS
    )
    done = subprocess.run(
        command, input=given.encode(), capture_output=True, env=os.environ | environment, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


def expected() -> list[str]:
    return [f"{v['digest']}\t{str(v['tests']).lower()}\t{v['weight']}" for v in VECTORS]


def test_some_vectors_are_longer_than_one_block_of_the_hash() -> None:
    assert max(len((v["validation"] + v["id"]).encode()) for v in VECTORS) > 128


def test_the_roles_in_java_are_the_published_ones(request: pytest.FixtureRequest) -> None:
    java = real.program(request, "java")
    real.need(request.node.nodeid, "javac")
    assert answers([java, str(FOLDER / "Folds.java")], {}) == expected()


def test_the_roles_in_go_are_the_published_ones(request: pytest.FixtureRequest) -> None:
    go = real.program(request, "go")
    # No module, no download of another toolchain: one file and the standard library.
    alone = {"GO111MODULE": "off", "GOTOOLCHAIN": "local", "GOFLAGS": ""}
    assert answers([go, "run", str(FOLDER / "folds.go")], alone) == expected()

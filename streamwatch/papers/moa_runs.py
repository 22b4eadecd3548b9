"""Running of MOA by Java, from a folder with MOA's jar files."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path


class MoaError(RuntimeError):
    """MOA that cannot be run; the message has the reason."""


def refuse_without(jars: Path) -> None:
    """Check that a folder has MOA.

    Raises
    ------
    MoaError
        If the folder has no jar file of MOA's.
    """
    if not any(jars.glob("moa-*.jar")):
        raise MoaError(f"expected a folder with moa-*.jar and what it needs, found none in {jars}")


def lines_of(jars: Path, program: Path, arguments: Sequence[str], given: bytes, expected: int) -> list[bytes]:
    """Run a program of one Java file on an input, and return the lines of its output.

    Parameters
    ----------
    jars
        Folder with MOA's jar files.
    program
        Source file, which Java compiles itself.
    arguments
        Arguments of the program.
    given
        Text for its standard input.
    expected
        Number of lines that it must write.

    Raises
    ------
    MoaError
        If Java cannot be started, fails, or writes another number of lines.
    """
    command = ["java", "-cp", f"{jars}/*", str(program), *arguments]
    try:
        done = subprocess.run(command, input=given, capture_output=True, check=False)  # noqa: S603
    except OSError as error:
        raise MoaError(f"java cannot be started: {error.strerror or error}") from error
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != expected:
        why = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
        raise MoaError(f"MOA answered {len(lines)} of {expected} lines: {why[-1]}")
    return lines

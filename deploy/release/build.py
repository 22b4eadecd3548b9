"""Build what a release consists of, and try each wheel as somebody who installs it.

    make release
    python -m deploy.release.build --out dist --only 3.11 --unchecked

Everything is built from the last commit, in a copy of it. If the commit has the tag `v` + version, that is
the version; otherwise the number of commits and the commit are part of it (`0.2.0.dev1630+g1a2b3c4`), so that
no two builds are called alike. Results:

- a source distribution, and a wheel for any platform, which compiles at its first start;
- for each version of Python that is installed here, a wheel that has the compiled functions of default
  settings with it, for processors of the level x86-64-v3. Elsewhere it compiles, like the wheel for any
  platform. Installed with the extra `fast-start`, it starts without compiling;
- the bill of materials of the locked dependencies (CycloneDX), and SHA-256 sums of all files.

Each wheel with compiled functions is installed in a clean environment with no home of its own, where
`streamwatch compile` must have nothing to do and the demo must raise its alarm.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from streamwatch.core.jit.shipped import SHIPPED, compiling_for_level

ROOT: Final = Path(__file__).parents[2]
VERSION_FILE: Final = "streamwatch/__init__.py"
PYTHONS: Final = ("3.11", "3.12", "3.13")
PLATFORM: Final = "manylinux_2_28_x86_64"
"""What the compiled functions need is less than what NumPy and Numba, which are installed beside, do."""
_START_SECONDS: Final = 60
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


def main() -> None:
    """Build and check; the exit code is that of the first command that fails."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.release.build",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the results")
    parser.add_argument("--only", choices=PYTHONS, help="version of Python of the only compiled wheel")
    parser.add_argument("--unchecked", action="store_true", help="leave out installing and trying the wheels")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    if found := sorted(asked.out.iterdir()):
        raise SystemExit(f"{asked.out}: expected an empty folder, found {found[0].name}")
    with tempfile.TemporaryDirectory() as work:
        version = build(Path(work), asked.out, [asked.only] if asked.only else PYTHONS)
        if not asked.unchecked:
            for wheel in sorted(asked.out.glob(f"*-{PLATFORM}.whl")):
                check(wheel, version, Path(work) / f"check-{wheel.stem}")
    sums = "".join(f"{_sum(file)}  {file.name}\n" for file in sorted(asked.out.iterdir()))
    (asked.out / "SHA256SUMS").write_text(sums)
    _say(f"{version}: {len(sums.splitlines())} files in {asked.out}")


def build(work: Path, out: Path, pythons: Sequence[str]) -> str:
    """Build all files but the sums; return the version."""
    source = work / "source"
    source.mkdir()
    with tarfile.open(fileobj=io.BytesIO(_run(["git", "archive", "HEAD"], ROOT))) as archive:
        archive.extractall(source, filter="data")
    version = set_version(source)
    _say(f"building {version}")
    uv = _uv()
    _run([uv, "build", "--quiet", "--out-dir", str(out)], source)
    bill = _run(
        [uv, "export", "--quiet", "--frozen", "--no-dev", "--all-extras", "--format", "cyclonedx1.5"], source
    )
    (out / f"streamwatchd-{version}.cdx.json").write_bytes(bill)
    (plain,) = out.glob("*-none-any.whl")
    for python in pythons:
        found = interpreter(uv, python)
        if found is None:
            _say(f"Python {python} is not installed here: no wheel with compiled functions for it")
        elif platform.machine() != "x86_64":
            _say(f"{platform.machine()}: compiled functions are shipped for x86-64 only")
        else:
            with_compiled(plain, found, python, work / f"compile-{python}", out)
    return version


def set_version(source: Path) -> str:
    """Write the version of this commit into a copy of it.

    Raises
    ------
    SystemExit
        If the commit is tagged as a release of another version than its sources say.
    """
    file = source / VERSION_FILE
    text = file.read_text()
    match = _VERSION.search(text)
    if match is None:
        raise SystemExit(f"{VERSION_FILE}: expected a line __version__ = …")
    tags = _run(["git", "tag", "--points-at", "HEAD", "v*"], ROOT).decode().split()
    if tags and f"v{match[1]}" not in tags:
        raise SystemExit(f"{VERSION_FILE} says {match[1]}, but this commit has the tag {', '.join(tags)}")
    version = match[1]
    if not tags:
        number = _run(["git", "rev-list", "--count", "HEAD"], ROOT).decode().strip()
        commit = _run(["git", "rev-parse", "--short=7", "HEAD"], ROOT).decode().strip()
        version = f"{version}.dev{number}+g{commit}"
    file.write_text(text.replace(match[0], f'__version__ = "{version}"'))
    return version


def with_compiled(plain: Path, interpreter: str, python: str, work: Path, out: Path) -> None:
    """Write a wheel like the plain one with the compiled functions of default settings for one Python."""
    environment = _installed(f"{plain}[fast-start]", interpreter, work / "venv")
    kept = work / "kept"
    began = time.monotonic()
    _run(
        [str(environment / "streamwatch"), "compile"],
        work,
        compiling_for_level() | {"NUMBA_CACHE_DIR": str(kept)},
    )
    _say(f"Python {python}: compiled in {time.monotonic() - began:.0f} s")
    wheel = [_uv(), "run", "--quiet", "--no-sync", "--project", str(ROOT), "wheel"]
    _run([*wheel, "unpack", "--dest", str(work), str(plain)], work)
    (unpacked,) = (each for each in work.glob("streamwatchd-*") if each.is_dir())
    kept.rename(unpacked / "streamwatch" / SHIPPED.name)
    _run([*wheel, "pack", "--dest-dir", str(work), str(unpacked)], work)
    (packed,) = work.glob("*.whl")
    tag = f"cp{python.replace('.', '')}"
    tagged = ["--python-tag", tag, "--abi-tag", tag, "--platform-tag", PLATFORM, "--remove"]
    _run([*wheel, "tags", *tagged, str(packed)], work)
    (named,) = work.glob("*.whl")
    named.rename(out / named.name)


def check(wheel: Path, version: str, work: Path) -> None:
    """Install a wheel as a user would, and see that it compiles nothing and that the demo raises its alarm.

    Raises
    ------
    SystemExit
        If it does not.
    """
    python = re.sub(r"cp(\d)(\d+)", r"\1.\2", wheel.stem.split("-")[-3])
    found = interpreter(_uv(), python)
    if found is None:
        raise SystemExit(f"{wheel.name}: Python {python} is gone")
    commands = _installed(f"{wheel}[demo,fast-start]", found, work / "venv")
    home = {"HOME": str(work / "home"), "XDG_CACHE_HOME": str(work / "home" / "cache")}
    streamwatch = str(commands / "streamwatch")
    said = _run([streamwatch, "--version"], work, home).decode()
    if version not in said:
        raise SystemExit(f"{wheel.name}: expected the version {version}, --version says {said.strip()}")
    compiled = _run([streamwatch, "compile"], work, home).decode()
    if not compiled.startswith("nothing to compile"):
        raise SystemExit(f"{wheel.name}: {compiled.strip()}")
    demo = [sys.executable, "-m", "tests.demo_check", "--command", f"{streamwatch} demo"]
    told = _run(demo, ROOT, home).decode()
    _say(f"{wheel.name}: {compiled.strip()}; {told.strip()}")


def _installed(requirement: str, interpreter: str, folder: Path) -> Path:
    """Make an environment with a wheel and the locked versions of what it needs; return its commands."""
    uv = _uv()
    _run([uv, "venv", "--quiet", "--python", interpreter, str(folder)], ROOT)
    locked = ["--quiet", "--frozen", "--no-dev", "--no-emit-project", "--no-hashes"]
    constraints = folder / "locked.txt"
    constraints.write_bytes(_run([uv, "export", *locked, "--extra", "demo", "--extra", "fast-start"], ROOT))
    python = str(folder / "bin" / "python")
    _run([uv, "pip", "install", "--quiet", "--python", python, "-c", str(constraints), requirement], ROOT)
    return folder / "bin"


def interpreter(uv: str, python: str) -> str | None:
    """Interpreter of a version, as uv finds it, else the first of `candidates` that starts.

    uv gives up at the first command on PATH of that name that does not start, as pyenv's for a version that
    is installed and not chosen.
    """
    found = subprocess.run([uv, "python", "find", python], capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return found.stdout.strip()
    return next((str(each) for each in candidates(python) if _version_of(each) == python), None)


def candidates(python: str) -> list[Path]:
    """Files that may be an interpreter of a version: those on PATH, then those that pyenv has installed."""
    folders = [Path(each) for each in os.get_exec_path()]
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders += sorted(each / "bin" for each in root.glob("versions/*"))
    return [file for each in folders if os.access(file := each / f"python{python}", os.X_OK)]


def _version_of(file: Path) -> str | None:
    """Version of an interpreter, such as 3.11; None if it does not start."""
    asked = [str(file), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=_START_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.strip() if said.returncode == 0 else None


def _uv() -> str:
    return str(ROOT / ".cache" / "tools" / "bin" / "uv")


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> bytes:
    """Run a command in a folder, and return what it prints; what it says of errors is shown."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "VIRTUAL_ENV"))
    }
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command, cwd=folder, env=kept | dict(environment or {}), stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout.decode()}")
    return done.stdout


def _sum(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()

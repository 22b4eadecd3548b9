"""The page's files: all there, from nowhere else, and nothing inline that the policy would have to allow."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files
from pathlib import Path

import pytest

from streamwatch.edge.web.page import StatusPage
from streamwatch.edge.web.ports import Asked

FOLDER = files("streamwatch.edge.web.page").joinpath("files")
OURS = sorted(item.name for item in FOLDER.iterdir() if item.is_file())
VENDORED = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot.LICENSE.txt": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}


def text(name: str) -> str:
    return FOLDER.joinpath(name).read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "digest"), VENDORED.items())
def test_what_others_wrote_is_as_they_published_it(name: str, digest: str) -> None:
    content = FOLDER.joinpath("vendor", name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == digest
    assert f"{digest}  {name}" in FOLDER.joinpath("vendor", "README.md").read_text(encoding="utf-8")


def test_nothing_else_is_vendored_and_its_licence_is_there() -> None:
    assert {item.name for item in FOLDER.joinpath("vendor").iterdir()} == {*VENDORED, "README.md"}
    assert "MIT License" in FOLDER.joinpath("vendor", "uPlot.LICENSE.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", OURS)
def test_no_other_host_is_asked_for_anything(name: str) -> None:
    urls = set(re.findall(r"""(?:https?:)?//[\w.-]+\.\w+[^\s"']*""", text(name)))
    linked = (
        {"https://github.com/streamwatch/streamwatch/blob/main/"} if name == "remedies.js" else set[str]()
    )
    assert urls <= {"http://www.w3.org/2000/svg", *linked}


def test_every_page_of_the_documentation_that_a_remedy_links_to_is_there() -> None:
    source = text("remedies.js")
    named = set(re.findall(r"^  (\w+): \"", source, re.MULTILINE))
    assert len(named) > 8
    runbooks = Path(__file__).parents[3] / "deploy" / "runbooks"
    assert {name for name in named if not (runbooks / f"{name}.md").is_file()} == set()
    asked = {
        name
        for each in OURS
        if each.endswith(".js")
        for name in re.findall(r'runbook\("(\w+)"\)', text(each))
    }
    assert asked <= named


@pytest.mark.parametrize("name", ["index.html", "docs.html"])
def test_the_page_has_no_inline_script_or_style(name: str) -> None:
    page = text(name)
    assert not re.findall(r"<script(?![^>]*\bsrc=)", page)
    assert not re.findall(r"<style|\bstyle=|\bon\w+=|javascript:", page)


def test_every_file_the_page_names_is_served_with_its_type() -> None:
    page = StatusPage()
    pages = text("index.html") + text("docs.html")
    named = set(re.findall(r"""(?:src|href)="page/([^"]+)\"""", pages))
    for name in OURS:
        if name.endswith(".js"):
            named |= set(re.findall(r"""from "\./([^"]+)\"""", text(name)))
    assert len(named) > 12
    for name in named:
        assert page.render(Asked(None, {"file": name})), name
        kind = page.media_type("*/*", {"file": name})
        assert kind.partition("/")[0] in {"text", "image"}, name
    scripts = {name for name in OURS if name.endswith(".js")}
    assert scripts <= named  # and none is left over


def test_nothing_of_a_name_is_ever_parsed_as_markup() -> None:
    for name in OURS:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", text(name)
        ), name


def test_only_files_of_the_page_are_served() -> None:
    page = StatusPage()
    for name in ("../__init__.py", "/etc/passwd", "", "vendor", "vendor/../index.html", "INDEX.HTML"):
        assert page.render(Asked(None, {"file": name})) is None, name
    (policy,) = {route.headers["Content-Security-Policy"] for route in page.routes}
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy

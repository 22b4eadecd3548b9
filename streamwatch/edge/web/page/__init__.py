"""A page for people: static files that ask the API, so they hold no number and need no token.

`/` is the page itself, `/docs` the API's description for people, `/page/{file}` their parts. Nothing is asked
of another host, nothing is built, and the content security policy allows no inline script or style. `vendor/`
holds uPlot as its authors published it (see `vendor/README.md`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable

from streamwatch.core.metrics.series import Family, Report
from streamwatch.edge.web.ports import Route

_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "md": "text/plain; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_INDEX = "index.html"
_DOCS = "docs.html"


_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}


def _route(path: str, about: str, media_type: str = "text/html") -> Route:
    return Route(path, about, tag="page", media_types=(media_type,), public=True, headers=_HEADERS)


PAGE = (_route("/", "The status page"), _route("/page/{file:.+}", "A part of the status page", "*/*"))
DOCS = (_route("/docs", "This description as a page"),)


class StatusPage:
    """`/`, or `/docs`, and what they load."""

    def __init__(self, first: str = _INDEX, routes: Sequence[Route] = PAGE) -> None:
        self.routes = routes
        self._first = first
        self._files = dict(_read(files("streamwatch.edge.web.page").joinpath("files")))

    def media_type(self, accept: str, asked: Mapping[str, str]) -> str:
        """Media type by the file's name."""
        del accept
        return _TYPES.get(asked.get("file", self._first).rpartition(".")[2], "application/octet-stream")

    def render(
        self, report: Report | None, live: Sequence[Family], media_type: str, asked: Mapping[str, str]
    ) -> bytes | None:
        """The file; None for one that is not part of the page."""
        del report, live, media_type
        return self._files.get(asked.get("file", self._first))


def docs_page() -> StatusPage:
    """`/docs`: the OpenAPI document, as a page."""
    return StatusPage(_DOCS, DOCS)


def _read(folder: Traversable, prefix: str = "") -> list[tuple[str, bytes]]:
    """Every file below, by its path: only these are ever served."""
    found: list[tuple[str, bytes]] = []
    for item in folder.iterdir():
        name = f"{prefix}{item.name}"
        found += _read(item, f"{name}/") if item.is_dir() else [(name, item.read_bytes())]
    return found

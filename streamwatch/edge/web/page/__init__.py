"""The status page: static files whose scripts use the API, so that they are served without a token.

`/` is the page, `/docs` the API's description for people, `/page/{file}` their parts. Nothing is loaded from
other hosts, there is no build step, and the content security policy allows no inline script or style.
`vendor/` has uPlot as its authors published it (see `vendor/README.md`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable

from streamwatch.edge.web.ports import Asked, Route

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
    """Exporter of `/` and the files it loads; or of `/docs`."""

    def __init__(self, first: str = _INDEX, routes: Sequence[Route] = PAGE) -> None:
        self.routes = routes
        self._first = first
        self._files = dict(_read(files("streamwatch.edge.web.page").joinpath("files")))

    def media_type(self, accept: str, asked: Mapping[str, str]) -> str:
        """Return the media type by the file's suffix."""
        del accept
        return _TYPES.get(asked.get("file", self._first).rpartition(".")[2], "application/octet-stream")

    def render(self, asked: Asked) -> bytes | None:
        """Return the file; None for one that is not part of the page."""
        return self._files.get(asked.values.get("file", self._first))


def docs_page() -> StatusPage:
    """Make the exporter of `/docs`, which shows the OpenAPI document."""
    return StatusPage(_DOCS, DOCS)


def _read(folder: Traversable, prefix: str = "") -> list[tuple[str, bytes]]:
    """List (path, content) of all files in a folder and below; no others are ever served."""
    found: list[tuple[str, bytes]] = []
    for item in folder.iterdir():
        name = f"{prefix}{item.name}"
        found += _read(item, f"{name}/") if item.is_dir() else [(name, item.read_bytes())]
    return found

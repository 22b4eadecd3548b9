"""Route of the catalogue of measures and detectors, as `streamwatch catalogue --json` prints it.

`GET /api/v1/catalogue`::

    {"measures": [{"name": "kappa", "help": "Gain over chance agreement: …", "formula": "…",
                   "source": "Cohen 1960; …", "cost": "O(K) per report"}], …,
     "detectors": [{"name": "ddm", …, "parameters": [{"name": "warning", "meaning": "…", …}]}], …}

The page shows the measures, bounds and baselines that are listed here.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.core.estimators.catalogue import listed
from streamwatch.edge.web.json_text import encode
from streamwatch.edge.web.ports import Asked, Route


class CatalogueExporter:
    """Exporter of `/api/v1/catalogue`."""

    routes: Sequence[Route] = (
        Route("/api/v1/catalogue", "What is computed, by which formula and from whom", "Listed", "models"),
    )

    def render(self, asked: Asked) -> bytes:  # noqa: ARG002 - it never changes
        """Encode the catalogue, which never changes."""
        return encode(listed())

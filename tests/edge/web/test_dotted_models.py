"""Models named `.` and `..`, which no client leaves in a path, are found all the same."""

from __future__ import annotations

import aiohttp
import pytest
from yarl import URL

from streamwatch.edge.web.ports import named
from tests.edge.web.http_faces import Model, report_of, serving


@pytest.mark.parametrize(("model", "segment"), [(".", "%252E"), ("..", "%252E%252E"), ("...", "...")])
async def test_a_model_of_dots_is_found(model: str, segment: str) -> None:
    async with serving() as server, aiohttp.ClientSession() as session:
        server.publish(report_of({model: Model(), "other": Model()}))
        for path, key in ((segment, "metrics"), (f"{segment}/history", "series")):
            async with session.get(URL(f"{server.url}/api/v1/models/{path}", encoded=True)) as answer:
                assert answer.status == 200, path
                document = await answer.json()
                assert document["model"] == model
                assert document[key]


def test_a_model_that_is_named_like_the_escape_comes_first() -> None:
    assert named("%2E", lambda: {"%2E", "."}) == "%2E"
    assert named("%2e%2e", lambda: {"."}) == ".."
    assert named("a", lambda: {"."}) == "a"

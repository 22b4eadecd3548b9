"""Link-local addresses are never spoken to, however they are written and whoever names them."""

from __future__ import annotations

import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from streamwatch.core.alerting.outbox import Delivered, Failed
from streamwatch.edge.outgoing import refused
from streamwatch.edge.receivers import EndpointSpec
from streamwatch.edge.receivers.http import HttpReceiver
from streamwatch.edge.receivers.slack import Slack
from tests.edge.receivers.endpoint import endpoint
from tests.edge.receivers.notifications import NOW_MS, firing

METADATA = [
    "169.254.169.254",
    "169.254.0.1",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "::169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "fe80::1",
    "fe80::1%eth0",
    "febf::1",
    "fd00:ec2::254",
    "[fe80::1]",
    "::ffff:0:169.254.169.254",
    "::ffff:0:a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "64:ff9b:1:a9fe:a9:fe00::",
    "64:ff9b:1:a9:fe:a9fe::",
    "64:ff9b:1:0:a9:fea9:fe00:0",
    "2001:0:a9fe:a9fe::1",
    "2001:0:4136:e378:8000:63bf:5601:5601",
    "2001:db8::5efe:169.254.169.254",
]


class Names(AbstractResolver):
    """Resolves every name to given addresses."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=a,
                port=port,
                family=socket.AF_INET6 if ":" in a else family,
                proto=0,
                flags=0,
            )
            for a in self.addresses
        ]

    async def close(self) -> None:
        pass


async def reported(url: str, resolver: AbstractResolver | None = None) -> object:
    receiver = HttpReceiver(EndpointSpec("chat", url, timeout_seconds=300), Slack(), resolver=resolver)
    await receiver.open()
    try:
        return await receiver.deliver(firing(), NOW_MS)
    finally:
        await receiver.close()


@pytest.mark.parametrize("address", METADATA)
def test_link_local_addresses_are_refused(address: str) -> None:
    assert refused(address)


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.7",
        "192.168.1.1",
        "127.0.0.1",
        "::1",
        "fd00::1",
        "8.8.8.8",
        "::ffff:10.0.0.7",
        "a.example",
        "::ffff:0:10.0.0.7",
        "64:ff9b:1::a00:7",
        "64:ff9b:1:a00:0:700::",
        "2001:db8::1",
    ],
)
def test_private_and_public_addresses_and_names_are_not(address: str) -> None:
    assert not refused(address)


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "[fd00:ec2::254]"]
)
async def test_a_url_that_names_one_is_not_posted_to(host: str) -> None:
    assert await reported(f"http://{host}:9/latest") == Failed("address_refused")


@pytest.mark.parametrize("address", METADATA[:-1])
async def test_a_name_that_resolves_to_one_is_not_posted_to(address: str) -> None:
    assert await reported("http://innocent.example:9/", Names(address)) == Failed("address_refused")


async def test_one_refused_address_among_good_ones_is_enough() -> None:
    async with endpoint() as receiver:
        url = receiver.url.replace("127.0.0.1", "innocent.example")
        assert await reported(url, Names("127.0.0.1", "169.254.169.254")) == Failed("address_refused")
        assert receiver.posts == []
        assert await reported(url, Names("127.0.0.1")) == Delivered(), "the same name with a private address"


@pytest.mark.parametrize("host", ["2852039166", "0xa9fea9fe", "169.254.43518", "0251.0376.0251.0376"])
async def test_other_spellings_of_the_metadata_address_reach_nothing(host: str) -> None:
    assert await reported(f"http://{host}:9/") != Delivered()
    answer = await reported(f"http://{host}:9/")
    assert isinstance(answer, Failed)
    assert answer.reason in {"address_refused", "invalid_url", "dns"}

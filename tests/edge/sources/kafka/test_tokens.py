"""Tokens for brokers: granted, kept, renewed, refused, and the errors then."""

from __future__ import annotations

import base64
import builtins
import hashlib
import hmac
import importlib
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
import trustme
from aiokafka.conn import AIOKafkaConnection

from streamwatch.edge.sources.kafka import KafkaSource, ReadingEnded, tokens
from streamwatch.edge.sources.kafka.client import security_options
from streamwatch.edge.sources.kafka.refusals import TokenSourceMissing, explanation, not_let_in, of_token
from streamwatch.edge.sources.kafka.spec import KafkaSpec, OAuthSpec
from streamwatch.edge.sources.kafka.tokens import (
    TokenDenied,
    TokenProvider,
    TokenUnavailable,
    token_provider,
)
from tests.edge.sources.kafka.token_endpoint import CLIENT, SECRET, Endpoint, endpoint
from tests.ports import free_ports

REGION = "eu-central-1"


@pytest.fixture(autouse=True)
def none_is_kept() -> Iterator[None]:
    tokens._kept.clear()
    yield
    tokens._kept.clear()


def spec_of(here: Endpoint | str, **oauth: Any) -> KafkaSpec:
    url = here if isinstance(here, str) else here.url
    given = {"client_id": CLIENT, "client_secret": SECRET} | oauth
    return KafkaSpec(
        security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", oauth=OAuthSpec(token_url=url, **given)
    )


async def test_a_token_is_asked_for_with_the_clients_credentials_and_shared_by_all_connections():
    async with endpoint() as here:
        spec = spec_of(here, scope="kafka read", extensions=(("logicalCluster", "lkc-1"),))
        provider = token_provider(spec)
        token = await provider.token()
        assert await provider.token() == await token_provider(spec).token() == token
    assert here.asked == [{"grant_type": "client_credentials", "scope": "kafka read"}]
    assert provider.extensions() == {"logicalCluster": "lkc-1"}


async def test_a_token_is_renewed_after_four_fifths_of_its_life_and_one_without_a_life_each_time():
    async with endpoint() as here:
        spec = spec_of(here)
        now = [1_000.0]
        assert spec.oauth is not None
        provider = TokenProvider(spec.oauth, tokens._Endpoint(spec.oauth), monotonic=lambda: now[0])
        for now[0], asked in [(1_000.0, 1), (1_239.0, 1), (1_240.0, 2), (1_400.0, 2)]:
            await provider.token()
            assert len(here.asked) == asked
        here.lasts = None
        for now[0], asked in [(1_600.0, 3), (1_600.1, 4)]:
            await provider.token()
            assert len(here.asked) == asked


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (
            (401, {"error": "invalid_client"}),
            TokenDenied,
            r"check kafka\.security\.oauth\.client_id and its secret",
        ),
        ((401, "who are you?"), TokenDenied, r"check kafka\.security\.oauth\.client_id and its secret"),
        ((403, ""), TokenDenied, r"check kafka\.security\.oauth\.client_id and its secret"),
        ((400, {"error": "invalid_scope"}), TokenDenied, r"check kafka\.security\.oauth\.scope"),
        ((400, {"error": "unauthorized_client"}), TokenDenied, r"allow the grant client_credentials"),
        ((400, {"error": "surprise"}), TokenDenied, r"answers 400: check kafka\.security\.oauth\.token_url"),
        ((404, "no such page"), TokenDenied, r"answers 404: check kafka\.security\.oauth\.token_url"),
        ((302, ""), TokenDenied, r"answers 302: check kafka\.security\.oauth\.token_url"),
        ((200, "<html>"), TokenDenied, r"no token: check kafka\.security\.oauth\.token_url"),
        ((200, {"token": "x"}), TokenDenied, r"no token: check kafka\.security\.oauth\.token_url"),
        (
            (200, {"access_token": "a\x01b"}),
            TokenDenied,
            r"cannot be sent: check kafka\.security\.oauth",
        ),
        ((200, {"access_token": ""}), TokenDenied, r"cannot be sent"),
        ((200, {"access_token": "x", "expires_in": "soon"}), TokenDenied, r"no token"),
        ((200, {"access_token": "x", "expires_in": "inf"}), TokenDenied, r"no token"),
        ((200, {"access_token": "x", "expires_in": "nan"}), TokenDenied, r"no token"),
        ((200, "x" * (tokens.MAX_BYTES + 1)), TokenUnavailable, r"no answer that is understood"),
        ((429, ""), TokenUnavailable, r"answers 429"),
        ((503, ""), TokenUnavailable, r"answers 503"),
    ],
)
async def test_an_endpoint_that_grants_no_token_is_reported_by_the_setting_to_look_at(
    answer: tuple[int, Any], error: type[Exception], message: str
):
    async with endpoint() as here:
        here.answer = answer
        spec = spec_of(here)
        with pytest.raises(error, match=message) as raised:
            await token_provider(spec).token()
    line = f'Unable connect to "127.0.0.1:9092": {raised.value}'
    assert of_token(line) is not None
    assert (not_let_in(line, spec) is not None) == (error is TokenDenied), (
        "only what waiting cannot cure ends a start"
    )
    assert SECRET not in str(raised.value)
    assert "/token" not in str(raised.value)


async def test_a_wrong_secret_is_denied():
    async with endpoint() as here:
        with pytest.raises(TokenDenied, match="does not accept this client"):
            await token_provider(spec_of(here, client_secret="wrong")).token()  # noqa: S106


async def test_an_endpoint_that_cannot_be_reached_is_waited_for():
    [port] = free_ports(1)
    with pytest.raises(TokenUnavailable, match=r"cannot be reached: check kafka\.security\.oauth\.token_url"):
        await token_provider(spec_of(f"http://127.0.0.1:{port}/token")).token()
    with pytest.raises(TokenDenied, match="link-local"):
        await token_provider(spec_of("http://169.254.169.254/token")).token()


async def test_an_endpoint_is_trusted_by_its_certificate(tmp_path: Path):
    authority = trustme.CA()
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(ca_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with endpoint(context=context) as here:
        with pytest.raises(TokenUnavailable, match=r"not trusted, .* check kafka\.security\.oauth\.ca_file"):
            await token_provider(spec_of(here)).token()
        assert await token_provider(spec_of(here, cafile=str(ca_file))).token()


async def test_a_refused_token_is_forgotten_and_the_broker_is_let_say_why():
    async with endpoint() as here:
        provider = token_provider(spec_of(here))
        connection = AIOKafkaConnection(
            "127.0.0.1",
            1,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=provider,
        )
        authenticator: Any = connection.authenticator_oauth()
        sent = await authenticator.step(None)
        assert sent[0].startswith(b"n,,\x01auth=Bearer ")
        assert await authenticator.step(b"") is None, "an empty answer is a success"
        refused: Any = connection.authenticator_oauth()
        await refused.step(None)
        assert await refused.step(b'{"status":"invalid_token"}') == (b"\x01", True)
        await provider.token()
    assert len(here.asked) == 2


def test_a_refused_token_is_reported_with_what_brokers_look_at():
    spec = spec_of("https://login/token")
    line = 'Unable connect to "b:9093": [Error 58] SaslAuthenticationFailed: {"status":"invalid_token"}'
    assert "refuse the token: check kafka.security.oauth.scope" in str(explanation(line, spec))
    assert "check kafka.security.oauth.scope" in str(not_let_in(line, spec))
    amazon = replace(spec, sasl_mechanism="AWS_MSK_IAM", aws_region=REGION, oauth=None)
    assert "kafka-cluster:Connect" in str(explanation(line, amazon))
    plain = KafkaSpec(security_protocol="SASL_SSL", username="me", password="wrong")  # noqa: S106
    assert "kafka.security.username" in str(not_let_in(line, plain))


# Amazon MSK: what the library signs, verified by AWS's published procedure (Signature Version 4).

KEY_ID, KEY = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def amazon() -> KafkaSpec:
    return KafkaSpec(security_protocol="SASL_SSL", sasl_mechanism="AWS_MSK_IAM", aws_region=REGION)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials but those of the test, and nobody outside is asked for any."""
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def signature_of(query: dict[str, str], host: str) -> str:
    """The signature by hand."""
    date, stamp = query["X-Amz-Date"][:8], query["X-Amz-Date"]
    scope = f"{date}/{REGION}/kafka-cluster/aws4_request"
    signed = {name: text for name, text in query.items() if name not in ("X-Amz-Signature", "User-Agent")}
    canonical = "&".join(f"{quote(n, safe='~')}={quote(t, safe='~')}" for n, t in sorted(signed.items()))
    empty = hashlib.sha256(b"").hexdigest()
    request = f"GET\n/\n{canonical}\nhost:{host}\n\nhost\n{empty}"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{KEY}".encode()
    for part in (date, REGION, "kafka-cluster", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), "sha256").hexdigest()


@pytest.mark.usefixtures("alone")
async def test_a_token_for_msk_is_a_signed_request_to_connect(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    options = security_options(replace(amazon(), security_protocol="SASL_PLAINTEXT"))
    assert options["sasl_mechanism"] == "OAUTHBEARER"
    provider: TokenProvider = options["sasl_oauth_token_provider"]
    token = await provider.token()
    assert await provider.token() == token
    assert tokens.is_token(token)
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    query = dict(parse_qsl(url.query))
    assert (url.scheme, url.netloc) == ("https", f"kafka.{REGION}.amazonaws.com")
    assert query["Action"] == "kafka-cluster:Connect"
    assert query["X-Amz-Credential"].startswith(f"{KEY_ID}/")
    assert query["X-Amz-Expires"] == "900"
    assert query["X-Amz-Signature"] == signature_of(query, url.netloc)
    [kept] = tokens._kept.values()
    assert 700 < kept.renew_at - tokens.time.monotonic() <= 720


@pytest.mark.usefixtures("alone")
async def test_without_aws_credentials_the_error_has_where_they_are_looked_for():
    with pytest.raises(
        TokenDenied, match=r"no AWS credentials are found .* a profile \(AWS_PROFILE\)"
    ) as raised:
        await token_provider(amazon()).token()
    assert not_let_in(str(raised.value), amazon()) is not None


async def test_without_the_package_the_error_has_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    found = importlib.import_module

    def absent(name: str, *more: Any) -> Any:
        if name.startswith("aws_msk"):
            raise builtins.ImportError(name)
        return found(name, *more)

    monkeypatch.setattr(importlib, "import_module", absent)
    message = r"install it with .*streamwatchd\[msk\]"
    with pytest.raises(TokenSourceMissing, match=message):
        security_options(amazon())
    source = KafkaSource(amazon(), ["any"], lambda _: None, offset_metadata=lambda: "")
    with pytest.raises(ReadingEnded, match=message):
        await source.start({})
    await source.stop()

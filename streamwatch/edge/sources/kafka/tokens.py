"""Tokens for SASL/OAUTHBEARER: granted by an endpoint for a client's credentials, or signed for Amazon MSK.

A client of aiokafka asks its provider for a token at each connection that it opens. All connections of the
process share a token for four fifths of its life, as endpoints count tokens, and some bill them. Brokers
check a token when a connection is opened; where `connections.max.reauth.ms` is set, they close the connection
when it expires (KIP-368), and the next connection gets a new token.
"""

from __future__ import annotations

import asyncio
import base64
import importlib
import math
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import quote_plus

import aiohttp
import msgspec
from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import AIOKafkaConnection, OAuthAuthenticator
from aiokafka.errors import KafkaError
from yarl import URL

from streamwatch import __version__
from streamwatch.edge.extras import command_for
from streamwatch.edge.outgoing import AddressRefusedError, GuardedResolver, SystemResolver, refused
from streamwatch.edge.sources.kafka.refusals import TokenSourceMissing
from streamwatch.edge.sources.kafka.spec import KafkaSpec, OAuthSpec

MAX_BYTES: Final = 2**18
"""Bytes of an endpoint's answer at most."""
MAX_TOKEN: Final = 65_536
"""Characters of a token at most; brokers refuse requests that are much larger."""
USED_SHARE: Final = 0.8
"""Share of a token's life after which the next connection gets a new one."""
_CONNECT_SECONDS: Final = 5.0
_KEY: Final = "kafka.security.oauth"


class TokenUnavailable(KafkaError):  # noqa: N818 - it names what is the case
    """No token is available for now; waiting may help."""


class TokenDenied(KafkaError):  # noqa: N818 - it names what is the case
    """No token is granted to this client, and waiting does not help; the message says what to change."""


class Token(msgspec.Struct, frozen=True):
    """A token, and the time from which a new one is requested (monotonic seconds)."""

    text: str
    renew_at: float


_kept: Final[dict[OAuthSpec | str, Token]] = {}
"""Tokens of this process, by the endpoint's settings or the region."""


def token_provider(spec: KafkaSpec) -> TokenProvider:
    """Build the provider of tokens for a client of aiokafka.

    Raises
    ------
    TokenSourceMissing
        The package that signs tokens for Amazon MSK is not installed.
    ValueError
        Neither an endpoint nor a region is given.
    """
    _install()
    if spec.sasl_mechanism == "AWS_MSK_IAM" and spec.aws_region is not None:
        return TokenProvider(spec.aws_region, _Signer(spec.aws_region))
    if spec.oauth is None:
        raise ValueError(f"mechanism {spec.sasl_mechanism} needs a source of tokens")
    return TokenProvider(spec.oauth, _Endpoint(spec.oauth), dict(spec.oauth.extensions))


class TokenProvider(AbstractTokenProvider):
    """aiokafka's provider of a token for each connection.

    Parameters
    ----------
    source
        Endpoint's settings, or region; clients with equal ones share a token.
    grant
        Requests a new token, given the present time.
    extensions
        SASL extensions sent to brokers with each token.
    monotonic
        Monotonic clock in seconds.
    """

    def __init__(
        self,
        source: OAuthSpec | str,
        grant: Callable[[float], Any],
        extensions: Mapping[str, str] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._grant = grant
        self._extensions = dict(extensions or {})
        self._monotonic = monotonic
        self._asking = asyncio.Lock()

    async def token(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]  # it is untyped
        """Return a token of whose lifetime less than `USED_SHARE` has passed, a new one if need be.

        Raises
        ------
        TokenUnavailable
            The source cannot be reached, is overloaded or has an internal error.
        TokenDenied
            The source grants this client no token.
        """
        async with self._asking:
            kept = _kept.get(self._source)
            if kept is None or self._monotonic() >= kept.renew_at:
                kept = _kept[self._source] = await self._grant(self._monotonic())
        return kept.text

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions sent to brokers with the token."""
        return self._extensions

    def forget(self) -> None:
        """Drop the shared token, after brokers refused it."""
        _kept.pop(self._source, None)


# Client credentials.


class Granted(msgspec.Struct, frozen=True):
    """Answer of an endpoint that grants a token (RFC 6749, section 5.1)."""

    access_token: str
    expires_in: float | str | None = None


class _Fault(msgspec.Struct, frozen=True):
    error: str = ""


_FAULTS: Final = {
    "invalid_client": f"does not accept this client: check {_KEY}.client_id and its secret",
    "unauthorized_client": "does not let this client ask with its credentials alone: allow the grant "
    f"client_credentials there, or check {_KEY}.client_id",
    "unsupported_grant_type": "grants no tokens for client credentials: allow the grant client_credentials "
    f"there, or check {_KEY}.token_url",
    "invalid_scope": f"does not know the scope: check {_KEY}.scope",
    "invalid_target": f"does not know what the token is for: check {_KEY}.scope",
    "access_denied": f"denies this client a token: check {_KEY}.client_id and {_KEY}.scope",
}
"""Error code of an endpoint (RFC 6749, section 5.2; RFC 8707) → its meaning, and what to check."""
_BUSY: Final = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """Requests a token from an endpoint, in bounded time and size, without redirects or proxies."""

    spec: OAuthSpec

    async def __call__(self, now: float) -> Token:
        spec = self.spec
        endpoint = f"the token endpoint at {URL(spec.token_url).host}"
        if refused(URL(spec.token_url).host or ""):
            raise TokenDenied(f"{endpoint} is a link-local address, never spoken to: check {_KEY}.token_url")
        try:
            async with asyncio.timeout(spec.timeout_seconds):
                status, body = await self._ask()
        except TimeoutError:
            raise TokenUnavailable(
                f"{endpoint} does not answer within {spec.timeout_seconds:g} s: check {_KEY}.token_url"
            ) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise TokenUnavailable(f"{endpoint} {_problem(error)}") from None
        return _understood(endpoint, status, body, now)

    async def _ask(self) -> tuple[int, bytes]:
        spec = self.spec
        asked = {"grant_type": "client_credentials"} | ({"scope": spec.scope} if spec.scope else {})
        trusted = ssl.create_default_context(cafile=spec.cafile) if spec.cafile else True
        connector = aiohttp.TCPConnector(resolver=GuardedResolver(SystemResolver()), ssl=trusted)
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(sock_connect=_CONNECT_SECONDS),
            headers={
                "User-Agent": f"streamwatch/{__version__}",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "Authorization": _basic(spec.client_id, spec.client_secret),
            },
            auto_decompress=False,  # the limit of size counts bytes as they arrive
            trust_env=False,
        )
        async with session, session.post(spec.token_url, data=asked, allow_redirects=False) as answer:
            body = bytearray()
            async for chunk in answer.content.iter_chunked(16_384):
                body += chunk
                if len(body) > MAX_BYTES:
                    raise ValueError("too long")
            return answer.status, bytes(body)


def _basic(client_id: str, secret: str) -> str:
    """Make the header of HTTP Basic by RFC 6749, section 2.3.1, which form-encodes both parts first."""
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


def _understood(endpoint: str, status: int, body: bytes, now: float) -> Token:
    """Parse an answer to a token; raises TokenDenied or TokenUnavailable."""
    if status == 200:
        try:
            granted = msgspec.json.decode(body, type=Granted)
            lasts = float(granted.expires_in or 0.0)
            if not math.isfinite(lasts):
                raise ValueError(lasts)  # noqa: TRY301 - it is as little a token as one without a number
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
            raise TokenDenied(
                f"{endpoint} answers something that is no token: check {_KEY}.token_url"
            ) from None
        if not is_token(granted.access_token):
            raise TokenDenied(f"{endpoint} answers a token that cannot be sent: check {_KEY}.token_url")
        return Token(granted.access_token, now + max(0.0, USED_SHARE * lasts))
    if status in _BUSY or status >= 500:
        raise TokenUnavailable(f"{endpoint} answers {status}")
    try:
        fault = msgspec.json.decode(body, type=_Fault).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        fault = ""
    if not fault and status in (401, 403):
        fault = "invalid_client"
    if words := _FAULTS.get(fault):
        raise TokenDenied(f"{endpoint} {words} ({status}{f', {fault}' if fault else ''})")
    raise TokenDenied(f"{endpoint} answers {status}: check {_KEY}.token_url")


def is_token(text: str) -> bool:
    """Tell whether a text is valid as a bearer token: visible ASCII, up to `MAX_TOKEN` (RFC 6750)."""
    return 0 < len(text) <= MAX_TOKEN and all("!" <= character <= "~" for character in text)


def _problem(error: BaseException) -> str:
    """Describe a failed request, without credentials or path."""
    seen: Any = error
    while seen is not None:
        if isinstance(seen, AddressRefusedError):
            return f"is a link-local address, which is never spoken to: check {_KEY}.token_url"
        seen = seen.__cause__ or seen.__context__
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"has a name that cannot be resolved: check {_KEY}.token_url"
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return f"has a certificate that is not trusted, or speaks no TLS: check {_KEY}.ca_file"
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ServerTimeoutError):
        return f"cannot be reached: check {_KEY}.token_url"
    return f"gives no answer that is understood: check {_KEY}.token_url"


# Amazon MSK with IAM.


class _Signer:
    """Makes tokens by signing with AWS credentials, through Amazon's library, in a thread.

    Credentials are found by AWS's default chain: environment, profile, web identity, container, instance.

    Parameters
    ----------
    region
        Region of the cluster.

    Raises
    ------
    TokenSourceMissing
        If Amazon's library is not installed.
    """

    def __init__(self, region: str) -> None:
        try:
            self._signer: Any = importlib.import_module("aws_msk_iam_sasl_signer.MSKAuthTokenProvider")
            self._session: Any = importlib.import_module("botocore.session").Session()
            self._errors: Any = importlib.import_module("botocore.exceptions")
            self._provider: Any = _credential_provider(self._session, self._errors)
        except ImportError:
            raise TokenSourceMissing(
                f"mechanism AWS_MSK_IAM needs a package that is missing: install it with {command_for('msk')}"
            ) from None
        self._region = region

    async def __call__(self, now: float) -> Token:
        wall = time.time()
        try:
            text, expires_ms = await asyncio.to_thread(
                self._signer.generate_auth_token_from_credentials_provider, self._region, self._provider
            )
        except self._errors.NoCredentialsError:
            raise TokenDenied(
                "no AWS credentials are found for kafka.security.mechanism AWS_MSK_IAM: give the process a "
                "role, a profile (AWS_PROFILE) or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            ) from None
        except (self._errors.BotoCoreError, self._errors.ClientError) as error:
            raise TokenUnavailable(f"AWS credentials cannot be had: {type(error).__name__}") from None
        return Token(text, now + USED_SHARE * (expires_ms / 1_000 - wall))


def _credential_provider(session: Any, errors: Any) -> Any:
    """Wrap AWS's default chain of credentials as a provider; the session caches them until they expire."""
    base: Any = importlib.import_module("botocore.credentials").CredentialProvider

    class Chain(base):  # type: ignore[misc]  # the library's class is untyped
        METHOD = "streamwatch"

        def load(self) -> Any:
            found = session.get_credentials()
            if found is None:
                raise errors.NoCredentialsError
            return found

    return Chain()


# The client's final message after a refused token, which aiokafka lacks.


class AnsweringAuthenticator(OAuthAuthenticator):
    """Ends a refused authentication by RFC 7628, section 3.2.3.

    A broker that refuses a token first sends the reason in an answer without an error code, and expects one
    more message before it reports an error. The library takes the first answer for a success and sends its
    next request; the broker then closes the connection, and the reason is lost.
    """

    async def step(self, payload: bytes | None) -> tuple[bytes, Literal[True]] | None:
        """Return the next message to send; None where the broker has accepted the token."""
        if self._token_sent and payload:
            if isinstance(self._sasl_oauth_token_provider, TokenProvider):
                self._sasl_oauth_token_provider.forget()
            return b"\x01", True
        return await super().step(payload)


def _install() -> None:
    """Make all connections of this process use `AnsweringAuthenticator`."""

    def authenticator(self: AIOKafkaConnection) -> AnsweringAuthenticator:
        provider: Any = self._sasl_oauth_token_provider  # pyright: ignore[reportPrivateUsage]
        return AnsweringAuthenticator(sasl_oauth_token_provider=provider)

    AIOKafkaConnection.authenticator_oauth = authenticator

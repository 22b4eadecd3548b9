"""An endpoint that grants tokens to a client by its credentials, on the loopback, and the tokens it signs."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import BasicAuth, web
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT, SECRET = "streamwatch", "open sesame: ü"
AUDIENCE = "kafka"


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


class Signer:
    """A key by which tokens are signed (RFC 7515, RS256)."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)

    def token(self, seconds: float = 300, **claims: Any) -> str:
        """A signed JWT that is valid for so long."""
        now = time.time()
        stands = {"iss": "test", "sub": CLIENT, "aud": AUDIENCE, "iat": now - 1, "exp": now + seconds}
        parts = ({"alg": "RS256", "kid": "one", "typ": "JWT"}, stands | claims)
        text = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
        signature = self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{text}.{_encoded(signature)}"

    def write_keys(self, file: Path) -> None:
        """Write the public key as a set of keys (RFC 7517), from which brokers read it."""
        numbers = self._key.public_key().public_numbers()
        parts = {"n": numbers.n.to_bytes(256, "big"), "e": numbers.e.to_bytes(3, "big")}
        key = {"kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256"}
        key |= {name: _encoded(value) for name, value in parts.items()}
        file.write_text(json.dumps({"keys": [key]}))


@dataclass
class Endpoint:
    """What it was asked, and what it answers."""

    signer: Signer
    answer: tuple[int, Any] | None = None
    """Status and body that it answers instead of a token."""
    lasts: float | None = 300
    claims: dict[str, Any] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.asked.append(form)
        if self.answer is not None:
            status, body = self.answer
            if isinstance(body, str):
                return web.Response(status=status, text=body)
            return web.json_response(body, status=status)
        who = BasicAuth.decode(request.headers["Authorization"], "utf-8")
        if (who.login, who.password) != (CLIENT, "open+sesame%3A+%C3%BC"):
            return web.json_response({"error": "invalid_client"}, status=401)
        granted = {
            "access_token": self.signer.token(self.lasts or 300, **self.claims),
            "token_type": "Bearer",
        }
        return web.json_response(granted | ({} if self.lasts is None else {"expires_in": self.lasts}))


@asynccontextmanager
async def endpoint(
    signer: Signer | None = None, context: ssl.SSLContext | None = None
) -> AsyncIterator[Endpoint]:
    """One that listens."""
    here = Endpoint(signer or Signer())
    app = web.Application()
    app.router.add_post("/token", here.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = runner.addresses[0][1]
        here.url = f"{'http' if context is None else 'https'}://127.0.0.1:{port}/token"
        yield here
    finally:
        await runner.cleanup()

"""Send requests with httpx, which keeps connections, and supports TLS, trio and asyncio."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from pulsarium.client import errors
from pulsarium.client.admin.errors import AdminConnectError, AdminError, NotAuthorized, UnexpectedAnswer, refusal
from pulsarium.client.connection import wrong_port
from pulsarium.client.connection.authentication import Authentication
from pulsarium.client.connection.tls import Tls
from pulsarium.proto.errors import look_for
from pulsarium.rest.exchange import NO_HTTP, Exchange, RestReply, origin, places

if TYPE_CHECKING:
    import httpx


MOST_BODY = 64 * 1024 * 1024  # most bytes of an answer


class _NotConnected(AdminConnectError, code="AdminConnectError"):
    """The call was not sent: another broker may take it."""


class Transport(Exchange):
    """Send requests to the broker, or one of several, at a URL. The first call connects."""

    unreachable: type[Exception] = _NotConnected

    def __init__(
        self,
        url: str,
        *,
        authentication: Authentication | None,
        tls: Tls,
        connection_timeout: float = 10.0,
        redirects: int = 10,
    ) -> None:
        """Raise `InvalidUrl` for a URL other than HTTP's, and `ImportError` without the extra `client`."""
        look_for("HTTP", "client", "httpx")
        super().__init__(places(url), redirects)
        self._authentication = authentication
        self._tls = tls
        self._timeout = connection_timeout
        self._http: dict[bool, httpx.AsyncClient] = {}  # by whether they use TLS
        for place in self.urls:
            _check(place)

    async def aclose(self) -> None:
        """Close all connections. A later call connects again."""
        while self._http:
            await self._http.popitem()[1].aclose()

    async def _send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> RestReply:
        import httpx

        try:
            async with self._opened(url).stream(method, url, content=body, headers=dict(headers)) as answer:
                content = await _whole(answer)
        except httpx.ConnectTimeout:
            raise _NotConnected(f"{origin(url)}: no connection within {self._timeout:g} s") from None
        except httpx.ConnectError as error:
            reason = wrong_port.over_http(origin(url), error)
            raise _NotConnected(*reason.args) from reason
        except (httpx.RemoteProtocolError, httpx.ReadError) as error:
            raise AdminConnectError(
                f"{origin(url)}: {str(error).rstrip('.') or 'connection broken'}; {NO_HTTP}"
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise AdminConnectError(f"{origin(url)}: {str(error) or type(error).__name__}") from None
        return RestReply(answer.status_code, {name.lower(): value for name, value in answer.headers.items()}, content)

    async def _credentials(self) -> Mapping[str, str]:
        authentication = self._authentication
        if authentication is None or authentication.certificate is not None:
            return {}
        try:
            data = await authentication.auth_data()
        except Exception as error:  # of the application: its text may contain secrets
            raise NotAuthorized(f"the authentication failed to give credentials ({type(error).__name__})") from error
        if authentication.auth_method_name == "token":
            return {"Authorization": f"Bearer {data.decode()}"}
        return {"Authorization": f"Basic {base64.b64encode(data).decode()}"} if data else {}

    def refused(self, reply: RestReply) -> AdminError:
        """Return the error for a reply that is not a success."""
        return refusal(reply.status, reply.reason)

    def failed(self, message: str) -> AdminError:
        """Return the error for an answer that cannot be read."""
        return UnexpectedAnswer(message)

    def invalid(self, error: ValueError) -> errors.InvalidTopicName:
        """Return the error for an invalid name of a topic."""
        return errors.InvalidTopicName(*error.args)

    def _opened(self, url: str) -> httpx.AsyncClient:
        secure = urlsplit(url).scheme == "https"
        if secure not in self._http:
            import httpx

            self._http[secure] = httpx.AsyncClient(
                # To load the system's authorities takes 80 ms. The other context trusts none.
                verify=self._tls.context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                timeout=httpx.Timeout(None, connect=self._timeout),
                trust_env=False,
            )
        return self._http[secure]


async def _whole(answer: httpx.Response) -> bytes:
    """Return the body of an answer. Raise `ValueError` for more than MOST_BODY bytes."""
    body = bytearray()
    with anyio.CancelScope() as reading:
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > MOST_BODY:
                reading.cancel()  # an exception here would leave httpx's generators open
    if reading.cancelled_caught:
        raise ValueError(f"the answer has more than {MOST_BODY} bytes")
    return bytes(body)


def _check(url: str) -> None:
    """Raise `InvalidUrl` unless the URL is of HTTP, with a host and without a user, which httpx would log."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and parts.username is None
    except ValueError:
        sound = False
    if not sound:
        raise errors.InvalidUrl(f"{origin(url)}: must be http://host:port or https://host:port")

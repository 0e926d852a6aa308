"""The HTTP site of a proxy: its own lab below /lab, and the admin API of the broker behind it."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import h11
import trio

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config.listeners import Listener
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.proxy.proxy import Proxy
from pulsarium.broker.lab.proxy.rewriting import BrokerUrls
from pulsarium.broker.logs import PartLog
from pulsarium.broker.net.dialling import why
from pulsarium.broker.web.forwarding import FAILURES, SWITCHED, Answer, Question, Servers, place_of
from pulsarium.broker.web.http.browser import HARMLESS, PROXY
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.live import EVENTS
from pulsarium.broker.web.http.owner import HOST
from pulsarium.broker.web.http.registry import declared
from pulsarium.broker.web.http.reply import Headers, HttpReply, Upgrade, reason
from pulsarium.broker.web.http.request import BodyTooLarge, BodyTooSlow, HttpRequest
from pulsarium.broker.web.http.site import Site
from pulsarium.broker.web.lab import capture, clients, faults, live
from pulsarium.broker.web.proxy_page import page_of_proxy

log = PartLog("proxy")

MODULES: Final = (capture, clients, faults, live)
"""The parts of the lab that need the wire, and no state of the broker."""
ONLY_A_BROKER: Final = "{path} is not here, because only a broker of Pulsarium has its state: {instead}"
STATE: Final = "create what a test needs with `pulsarium admin`, in a namespace of its own, and delete it afterwards"
INSTEAD: Final = {
    "/lab/why": "`pulsarium why TOPIC SUBSCRIPTION --stats` explains what the stats of the broker tell",
    "/lab/wait": "ask `pulsarium admin topics stats TOPIC` until it shows the state",
    "/lab/expect": "receive the messages with a client",
    "/lab/clock": "the time of another broker cannot be set; delay frames with `pulsarium fault add SEND delay`",
    "/lab/reset": STATE,
    "/lab/snapshot": STATE,
    "/lab/restore": STATE,
    "/lab/seed": STATE,
    "/lab/namespaces": "create a namespace with `pulsarium admin namespaces create`",
    "/pulsarium/": "ask `pulsarium admin topics stats TOPIC` for numbers, `pulsarium why TOPIC` for what is stuck, and "
    "`pulsarium client read TOPIC -m earliest` for messages",
    "/lab/": "a proxy has /lab/faults, /lab/masks, /lab/captures, /lab/violations and /lab/live",
}
"""What helps in front of a broker that is not Pulsarium, by the beginning of the path. The first that fits counts."""
CONSOLE: Final = "/pulsarium/"
MOST_BODY: Final = 1 << 30  # bytes of a request that is forwarded; they wait in a file
WHOLE: Final = 64 << 10  # bytes of a body that is forwarded as a whole; a longer one goes piece by piece
MOST_REDIRECTS: Final = 5
_OF_THE_HOP: Final = "connection content-length transfer-encoding host keep-alive trailer upgrade expect"
OF_THE_HOP: Final = frozenset(_OF_THE_HOP.split())
"""Headers of one connection, which are not forwarded, as those that Connection names."""
TO_READ: Final = OF_THE_HOP | {"accept-encoding"}
"""Headers that are not forwarded when the proxy changes the answer, which must not come compressed."""
_REDIRECTS: Final = (301, 302, 307, 308)
LOOKUP: Final = "/lookup/"
WEBSOCKET: Final = "websocket"
UPGRADED: Final = [("connection", "Upgrade"), ("upgrade", WEBSOCKET)]


class ProxySite(Site):
    """The lab of the proxy, and everything else from the broker at `admin_url`, or nothing without one."""

    def __init__(
        self, stand_in: Broker, admin_url: str | None, proxy: Proxy, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(stand_in, declared(MODULES), guarded=PROXY)
        self._admin_url = admin_url
        self._proxy = proxy
        self._servers = Servers(tls)

    def stop(self) -> None:
        self._servers.close()
        super().stop()

    async def routed(self, request: HttpRequest, until_sent: ExitStack) -> HttpReply:
        if request.path.startswith("/lab/") and self._resources.find(request.path) is not None:
            return await super().routed(request, until_sent)
        try:
            if request.path.startswith("/lab/"):
                await request.drop(MOST_BODY)
                return _only_a_broker(request.path)
            body = await _body(request, until_sent)
        except BodyTooLarge:
            return reason(413, f"the body has more than {MOST_BODY} bytes")
        except BodyTooSlow:
            return reason(408, "the body did not come")
        except AdminError as error:
            return reason(error.status, error.reason)
        is_of_server = request.method == "OPTIONS" and request.target == "*"
        if not (is_of_server or request.target.startswith("/")):  # it would be part of the broker's address
            return reason(400, f"{request.target} is no path: a path begins with /")
        if self._admin_url is None:
            if request.path == "/":
                return self._first_page(request, "a broker whose HTTP it does not know")
            return reason(503, "this proxy knows no HTTP of the broker: start it with pulsarium proxy --admin-url URL")
        return await self._forwarded(self._admin_url, request, body, until_sent)

    async def _forwarded(
        self, admin_url: str, request: HttpRequest, body: bytes | Path, until_sent: ExitStack
    ) -> HttpReply:
        headers = _kept(request.all_headers, TO_READ if request.path.startswith(LOOKUP) else OF_THE_HOP)
        if request.headers.get("upgrade", "").lower() == WEBSOCKET:
            headers = [*headers, *UPGRADED]
        try:
            url = admin_url.rstrip("/") + request.target.lstrip("*")
            answer = await self._asked(url, Question(request.method, headers, body), until_sent)
            begin = _Begin(b"", more=False) if answer.status == SWITCHED else await _begin(answer)
        except AdminError as error:
            return reason(error.status, error.reason)
        except FAILURES as error:
            said = why(error)
            if isinstance(error, h11.ProtocolError) and admin_url.startswith("http:"):
                said = f"{said}; if its port is for TLS, name it as https://HOST:PORT"
            log.warning("the broker did not answer over HTTP", url=admin_url, reason=said)
            if request.path == "/":
                return self._first_page(request, f"{admin_url}, which does not answer ({said})")
            return reason(502, f"the broker at {admin_url} did not answer: {said}")
        if answer.status == 404 and request.method in HARMLESS:  # so the broker is not Pulsarium
            if request.path == "/":
                return self._first_page(request, admin_url)
            if request.method == "GET" and request.path.startswith(CONSOLE) and b'"reason"' not in begin.data:
                return _only_a_broker(request.path)
        headers = _kept(answer.headers, OF_THE_HOP - {"trailer"})
        if answer.status == SWITCHED:
            return Upgrade(SWITCHED, serve=partial(answer.carry, _head_of_upgrade(headers)))
        length = "" if answer.header("transfer-encoding") else answer.header("content-length")
        sized = [*headers, ("content-length", length)] if length else headers
        is_head = request.method == "HEAD"
        if begin.more or answer.trailers or (is_head and not length):
            trailers = None if _is_told_at_once(answer) else lambda: _kept(answer.trailers)
            pieces = self._pieces(answer, begin.data)
            return HttpReply(answer.status, raw_headers=sized, stream=pieces, trailers=trailers)
        if is_head:
            return HttpReply(answer.status, raw_headers=sized)
        if request.path.startswith(LOOKUP) and answer.status == 200:
            return HttpReply(answer.status, self._led(request, begin.data), raw_headers=headers)
        return HttpReply(answer.status, begin.data, raw_headers=headers)

    async def _asked(self, url: str, question: Question, until_sent: ExitStack) -> Answer:
        """Ask the broker, and then the broker to which it leads, which owns the topic of the request."""
        for left in reversed(range(MOST_REDIRECTS)):
            until_read = until_sent.enter_context(ExitStack())
            answer = await self._servers.ask(url, question, until_read)
            location = answer.header("location")
            if not left or answer.status not in _REDIRECTS or not location.startswith(("http://", "https://")):
                return answer
            until_read.close()
            _check_redirect(url, location)
            url = location
        raise AssertionError

    async def _pieces(self, answer: Answer, piece: bytes) -> AsyncGenerator[bytes, None]:
        """Yield a body whose first piece was read. Break the connection when the broker does."""
        try:
            while piece:
                yield piece
                piece = await answer.piece()
        except FAILURES as error:
            log.warning("the broker broke off its answer over HTTP", url=self._admin_url, reason=why(error))
            raise trio.BrokenResourceError from error

    def _first_page(self, request: HttpRequest, broker: str) -> HttpReply:
        _, urls = self._known_as(request)
        cluster = self.broker.cluster
        shown = None if cluster.authentication else cluster.attached(Lab)  # a browser opens the page without a role
        return page_of_proxy(shown, broker, urls, self._proxy.brokers())

    def _known_as(self, request: HttpRequest) -> tuple[str, Listener]:
        """Return the name by which a client knows the proxy, and the URLs of the proxy with that name."""
        named = HOST.fullmatch(request.headers.get("host", ""))
        host, at = (named[1], named[0]) if named else (self.broker.config.bindAddress, "")
        own = self.broker.listener_at(host)
        scheme = "https" if request.caller.secure else "http"
        return host, own._replace(**{scheme: f"{scheme}://{at}"}) if at else own

    def _led(self, request: HttpRequest, body: bytes) -> bytes:
        """Return the answer of a lookup with the URLs of the proxy."""
        try:
            told = json.loads(body)
        except ValueError:
            return body
        if not isinstance(told, dict) or told.keys().isdisjoint(("brokerUrl", "brokerUrlTls")):
            return body
        host, own = self._known_as(request)
        urls = BrokerUrls(told.get("brokerUrl") or "", told.get("brokerUrlTls") or "")
        plain, secure = self._proxy.through(host.strip("[]"), urls)
        changed: dict[str, Any] = {"brokerUrl": plain or None, "brokerUrlTls": secure or None}
        changed |= {"httpUrl": own.http, "httpUrlTls": own.https or None}
        changed |= {"nativeUrl": plain or secure} if told.get("nativeUrl") else {}
        return json.dumps({**told, **changed}).encode()


def _check_redirect(url: str, location: str) -> None:
    """Refuse an address that is none, and one that would get the client's credentials without TLS."""
    try:
        secure, _, _ = place_of(location)
    except ValueError:
        raise AdminError(502, "the broker redirects to an invalid address") from None
    if url.startswith("https:") and not secure:
        place = urlsplit(location).netloc.rpartition("@")[2]
        raise AdminError(
            502,
            f"the broker redirects to http://{place}, where credentials would travel without TLS: give all brokers "
            "a webServicePortTls",
        )


def _only_a_broker(path: str) -> HttpReply:
    """Return the refusal of a path that only a broker of Pulsarium answers."""
    instead = next(text for begin, text in INSTEAD.items() if path.startswith(begin))
    return reason(501, ONLY_A_BROKER.format(path=path, instead=instead))


class _Begin(NamedTuple):
    """The beginning of a body, or all of it."""

    data: bytes
    more: bool


async def _begin(answer: Answer) -> _Begin:
    """Read a body that is short, or its beginning. What a server tells from time to time goes on at once."""
    at_once = _is_told_at_once(answer)
    data = bytearray()
    while piece := await answer.piece():
        data += piece
        if at_once or len(data) > WHOLE:
            return _Begin(bytes(data), more=True)
    return _Begin(bytes(data), more=False)


def _is_told_at_once(answer: Answer) -> bool:
    return answer.header("content-type").startswith(EVENTS)


async def _body(request: HttpRequest, until_sent: ExitStack) -> bytes | Path:
    """Return the body of a request: a long one, or one of unknown length, in a file, because it may be sent twice."""
    length = request.headers.get("content-length", "" if "transfer-encoding" in request.headers else "0")
    if length.isdecimal() and int(length) <= WHOLE:
        return await request.read(WHOLE)
    path = Path(until_sent.enter_context(TemporaryDirectory(prefix="pulsarium-"))) / "body"
    await request.spool(MOST_BODY, path)
    return path


def _kept(headers: Headers, without: frozenset[str] = OF_THE_HOP) -> Headers:
    """Return the headers that are forwarded."""
    named = [value.split(",") for name, value in headers if name.lower() == "connection"]
    without |= {name.strip().lower() for names in named for name in names}
    return [(name, value) for name, value in headers if name.lower() not in without]


def _head_of_upgrade(headers: Headers) -> bytes:
    """Return the answer that begins a WebSocket."""
    lines = [f"{name}: {value}\r\n" for name, value in [*UPGRADED, *headers]]
    return f"HTTP/1.1 {SWITCHED} Switching Protocols\r\n{''.join(lines)}\r\n".encode("latin-1")

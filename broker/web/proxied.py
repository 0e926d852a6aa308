"""The HTTP site of a proxy: its own lab below /lab, and the admin API of the broker behind it."""

from __future__ import annotations

import http.client
import json
from contextlib import ExitStack
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import trio

from pulsarium.broker.cluster import Broker
from pulsarium.broker.lab.proxy.rewriting import BrokerUrls, Through
from pulsarium.broker.logs import PartLog
from pulsarium.broker.web.http.registry import declared
from pulsarium.broker.web.http.reply import HttpReply, reason
from pulsarium.broker.web.http.request import BodyTooLarge, BodyTooSlow, HttpRequest
from pulsarium.broker.web.http.site import Site
from pulsarium.broker.web.lab import capture, clients, faults, live

log = PartLog("proxy")

MODULES: Final = (capture, clients, faults, live)
"""The parts of the lab that need the wire, and no state of the broker."""
ONLY_A_BROKER: Final = (
    "{path} is not here: only a broker of Pulsarium has its state. A proxy has /lab/faults, /lab/masks, /lab/captures, "
    "/lab/violations and /lab/live"
)
MOST_BODY: Final = 256 << 20  # bytes of a request that is forwarded
MOST_REDIRECTS: Final = 5
PATIENCE: Final = 120.0  # seconds for the broker to answer
OF_THE_HOP: Final = frozenset(
    ("connection", "content-length", "transfer-encoding", "host", "keep-alive", "trailer", "upgrade", "date")
)
"""Headers of one connection, which are not forwarded."""
_REDIRECTS: Final = (301, 302, 307, 308)
LOOKUP: Final = "/lookup/"


class ProxySite(Site):
    """The lab of the proxy, and everything else from the broker at `admin_url`, or nothing without one."""

    def __init__(self, stand_in: Broker, admin_url: str | None, through: Through, *, insecure: bool = False) -> None:
        super().__init__(stand_in, declared(MODULES))
        self._admin_url = admin_url
        self._through = through
        self._insecure = insecure

    async def routed(self, request: HttpRequest, until_sent: ExitStack) -> HttpReply:
        if request.path.startswith("/lab/"):
            found = self._resources.find(request.path)
            if found is None:
                return reason(501, ONLY_A_BROKER.format(path=request.path))
            return await super().routed(request, until_sent)
        if self._admin_url is None:
            return reason(503, "this proxy knows no HTTP of the broker: start it with pulsarium proxy --admin-url URL")
        try:
            body = await request.read(MOST_BODY)
        except BodyTooLarge:
            return reason(413, f"the body has more than {MOST_BODY} bytes")
        except BodyTooSlow:
            return reason(408, "the body did not come")
        fetch = partial(_fetched, request, body, self._admin_url, self._insecure)
        try:
            answer = await trio.to_thread.run_sync(fetch, abandon_on_cancel=True)
        except (OSError, http.client.HTTPException) as error:
            log.warning("the broker did not answer over HTTP", url=self._admin_url, reason=error)
            return reason(502, f"the broker at {self._admin_url} did not answer: {error}")
        if request.path.startswith(LOOKUP) and answer.status == 200:
            return HttpReply(answer.status, self._led(request, answer.body), raw_headers=answer.raw_headers)
        return answer

    def _led(self, request: HttpRequest, body: bytes) -> bytes:
        """Return the answer of a lookup with the URLs of the proxy."""
        try:
            told = json.loads(body)
        except ValueError:
            return body
        if not isinstance(told, dict) or "brokerUrl" not in told:
            return body
        plain, secure = self._through(BrokerUrls(told.get("brokerUrl") or "", told.get("brokerUrlTls") or ""))
        own = f"http://{request.headers.get('host', '')}"
        changed: dict[str, Any] = {"brokerUrl": plain or None, "brokerUrlTls": secure or None}
        changed |= {name: own for name in ("httpUrl", "httpUrlTls") if told.get(name)}
        changed |= {"nativeUrl": plain or secure} if told.get("nativeUrl") else {}
        return json.dumps({**told, **changed}).encode()


def _fetched(request: HttpRequest, body: bytes, admin_url: str, insecure: bool) -> HttpReply:
    """Send a request to a broker, follow it to the broker that owns its topic, and return the answer."""
    base = urlsplit(admin_url)
    target = urlsplit(request.url)
    path = f"{base.path.rstrip('/')}{target.path}" + (f"?{target.query}" if target.query else "")
    place, secure = base.netloc, base.scheme == "https"
    headers = {name: value for name, value in request.headers.items() if name.lower() not in OF_THE_HOP}
    for left in reversed(range(MOST_REDIRECTS)):
        connection = _connection(place, secure, insecure)
        try:
            connection.request(request.method, path, body or None, headers)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        location = answer.getheader("location", "")
        if not left or answer.status not in _REDIRECTS or not location.startswith(("http://", "https://")):
            kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in OF_THE_HOP]
            return HttpReply(answer.status, data, raw_headers=kept)
        leads = urlsplit(location)
        place, secure = leads.netloc, leads.scheme == "https"
        path = leads.path + (f"?{leads.query}" if leads.query else "")
    raise AssertionError


def _connection(place: str, secure: bool, insecure: bool) -> http.client.HTTPConnection:
    if not secure:
        return http.client.HTTPConnection(place, timeout=PATIENCE)
    import ssl

    context = ssl._create_unverified_context() if insecure else ssl.create_default_context()
    return http.client.HTTPSConnection(place, timeout=PATIENCE, context=context)

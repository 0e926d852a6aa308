"""Upgrade HTTP requests below /ws to WebSockets."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection
from wsproto.events import Request as Asked
from wsproto.utilities import RemoteProtocolError

from pulsarium.broker.cluster import Broker
from pulsarium.broker.logs import PartLog
from pulsarium.broker.web.http.errors import ContainerError
from pulsarium.broker.web.http.permission import principal_of
from pulsarium.broker.web.http.reply import NAMES, HttpReply, Upgrade, page
from pulsarium.broker.web.http.request import BodyTooLarge, BodyTooSlow, HttpRequest
from pulsarium.broker.web.websocket.consumer import Consumer
from pulsarium.broker.web.websocket.link import BrokerFailure, BrokerLinks, LinkIdentity
from pulsarium.broker.web.websocket.options import (
    RefusedUpgrade,
    SocketTopics,
    WrongPath,
    consumer_options,
    of_topic,
    of_topics,
    producer_options,
    reader_options,
)
from pulsarium.broker.web.websocket.producer import Producer
from pulsarium.broker.web.websocket.socket import Handler, Socket, open_sockets
from pulsarium.proto.generated import PulsarApi_pb2 as pb

log = PartLog("websocket")

STATUS: Final[Mapping[int, int]] = {
    pb.TopicNotFound: 404,
    pb.ProducerBusy: 409,
    pb.ConsumerBusy: 409,
    pb.ProducerFenced: 409,
    pb.IncompatibleSchema: 409,
    pb.TooManyRequests: 429,
    pb.ProducerBlockedQuotaExceededError: 503,
    pb.ProducerBlockedQuotaExceededException: 503,
    pb.TopicTerminatedError: 503,
}
NOT_AUTHENTICATED: Final = RefusedUpgrade(401, "Failed to authenticate")
NOT_AUTHORIZED: Final = RefusedUpgrade(403, "Not authorized")
OPENING_SECONDS: Final = 30.0  # for the broker's answer, as long as Pulsar's client waits
NO_BODY: Final = "The request of a WebSocket has no body"
BEARER, BASIC = "Bearer ", "Basic "

Make = Callable[[HttpRequest, BrokerLinks, Socket], Handler]


def _producer(request: HttpRequest, links: BrokerLinks, socket: Socket) -> Handler:
    return Producer(links, of_topic(request.path), producer_options(request.query), socket)


def _consumer(request: HttpRequest, links: BrokerLinks, socket: Socket) -> Handler:
    place = of_topic(request.path)
    return Consumer(links, place, consumer_options(request.query, place), socket)


def _reader(request: HttpRequest, links: BrokerLinks, socket: Socket) -> Handler:
    place, options = of_topic(request.path), reader_options(request.query)
    return Consumer(links, SocketTopics(place.topics, subscription=reader_name()), options, socket, reads=True)


def _topics_consumer(request: HttpRequest, links: BrokerLinks, socket: Socket) -> Handler:
    place = of_topics(request.path, request.query)
    return Consumer(links, place, consumer_options(request.query, place), socket)


def reader_name() -> str:
    """Return a name for the subscription of a reader."""
    return f"reader-{secrets.token_hex(5)}"


KINDS: Final[Mapping[str, Make]] = {
    "/ws/v2/producer": _producer,
    "/ws/v2/consumer": _consumer,
    "/ws/v2/reader": _reader,
    "/ws/v3/consumer": _topics_consumer,
}


class WebSocketService:
    """The WebSocket API of one broker. `upgrade` answers requests to its paths."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def serves(self, path: str) -> bool:
        """Return whether a path is one of the WebSocket API."""
        return self._broker.config.webSocketServiceEnabled and any(_is_at(path, kind) for kind in KINDS)

    async def upgrade(self, request: HttpRequest) -> HttpReply:
        """Open what a request asks for, and answer with the upgrade or with the reason to refuse."""
        kind = next(each for each in KINDS if _is_at(request.path, each))
        try:
            await request.drop(0)
        except (BodyTooLarge, BodyTooSlow):
            return page(400, NO_BODY, request.path, request.headers.get("accept", ""), {"Connection": "close"})
        protocol = WSConnection(ConnectionType.SERVER)
        try:
            headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers.items()]
            if request.method != "GET" or request.headers.get("upgrade", "").lower() != "websocket":
                return self._page(request, 405, NAMES[405])
            protocol.initiate_upgrade_connection(headers, request.path)
            (asked,) = protocol.events()
            assert isinstance(asked, Asked)
        except RemoteProtocolError as error:
            return self._page(request, 400, str(error))
        try:
            socket = await self._open(request, protocol, KINDS[kind])
        except RefusedUpgrade as refused:
            status = refused.status
            if isinstance(refused, WrongPath) and not self._broker.profile.own_faults_are_shown:
                status = 400
            log.warning("refused a WebSocket", peer=request.caller, path=request.path, reason=refused.text)
            return self._page(request, status, refused.text)
        return Upgrade(101, serve=partial(self._serve, socket, protocol.send(AcceptConnection())))

    async def _open(self, request: HttpRequest, protocol: WSConnection, make: Make) -> Socket:
        """Open the producer or consumer of a request. Raise `RefusedUpgrade`."""
        broker = self._broker
        socket = Socket(broker, protocol, str(request.caller))
        try:
            principal_of(broker, request)
        except ContainerError:
            raise NOT_AUTHENTICATED from None
        handler = socket.handler = make(request, BrokerLinks(broker, identity_of(request), socket), socket)
        answered = trio.Event()
        results: list[BrokerFailure | None] = []

        def opened(failed: BrokerFailure | None) -> None:
            results.append(failed)
            answered.set()

        broker.turn.begin()
        try:
            handler.open(opened)
        finally:
            broker.turn.finish()
        with trio.move_on_after(OPENING_SECONDS):
            try:
                await answered.wait()
            except trio.Cancelled:
                handler.close()
                raise
        failed = results[0] if results else BrokerFailure(pb.ServiceNotReady, "The broker did not answer in time")
        if failed is not None:
            handler.close()
            raise _refused(failed)
        return socket

    async def _serve(self, socket: Socket, accepted: bytes, stream: trio.abc.Stream, first: bytes) -> None:
        open_now = open_sockets(self._broker)
        open_now.add(socket)
        log.info("WebSocket opened", peer=socket.address)
        try:
            await socket.serve(stream, accepted, first)
        finally:
            open_now.discard(socket)
            log.info("WebSocket closed", peer=socket.address)

    def _page(self, request: HttpRequest, status: int, text: str) -> HttpReply:
        return page(status, text, request.path, request.headers.get("accept", ""))


def _is_at(path: str, kind: str) -> bool:
    return path == kind or path.startswith(f"{kind}/")


def _refused(failed: BrokerFailure) -> RefusedUpgrade:
    if failed.code == pb.AuthorizationError:
        return NOT_AUTHORIZED
    if failed.code == pb.AuthenticationError:
        return NOT_AUTHENTICATED
    return RefusedUpgrade(STATUS.get(failed.code, 500), f"Failed to create producer/consumer: {failed.text}")


def identity_of(request: HttpRequest) -> LinkIdentity:
    """Return the client of a request, with the credentials of the request in the form of CONNECT."""
    headers, caller = request.headers, request.caller
    given, query = headers.get("authorization", ""), request.query.get("token", "")
    method = headers.get("x-pulsar-auth-method-name", "")
    proof = b""
    if given.startswith(BEARER) or (query and not given):
        method = method or "token"
        proof = (given.removeprefix(BEARER) if given else query.removeprefix(BEARER)).encode()
    elif given.startswith(BASIC):
        method = method or "basic"
        with suppress(ValueError):
            proof = base64.b64decode(given.removeprefix(BASIC))
    elif caller.certificate is not None:
        method = method or "tls"
    original = headers.get("x-original-principal")
    return LinkIdentity(str(caller), method, proof, original, caller.certificate, caller.secure)

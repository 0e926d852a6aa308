"""Run a broker for the length of a block, with the options of `pulsarium serve`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType

import trio

from pulsarium.broker.auth.authentication import check
from pulsarium.broker.config import Durability, ServeOptions, load, profile_of
from pulsarium.broker.server import RunningCluster, open_broker
from pulsarium.broker.testing.broker import PulsarBroker
from pulsarium.broker.testing.thread import LoopThread


def running(
    *,
    set: Mapping[str, object] | None = None,
    profile: str = "pip",
    max_protocol_version: int | None = None,
    separate_publish_times: bool | None = None,
    pip: Iterable[int] = (),
    brokers: int = 1,
    config: str | Path | None = None,
    data: str | Path | None = None,
    durability: Durability = "os",
    port: int = 0,
    http_port: int = 0,
    toxiproxy_port: int | None = None,
) -> Running:
    """Run a broker for the length of a block, by default on free ports and in memory.

    Plain code receives the broker in its own thread, and may call it from any thread:

        with pulsarium.broker.running() as broker:
            client = pulsar.Client(broker.service_url)

    Code on trio receives the broker in its own loop, and the lab directly (`broker.lab.faults`, ...):

        async with pulsarium.broker.running() as broker:
            async with pulsarium.client.connect(broker.service_url) as client: ...

    The options are those of `pulsarium serve`. `set` has broker.conf keys: `set={"maxMessageSize": 1024}`. `pip` has
    numbers of proposals: `pip=[490]`. Raise `ConfigError` for invalid options. Entering the block raises `PortInUse` or
    `StorageError`.
    """
    return Running(
        options_of(
            config=config,
            set=set,
            profile=profile,
            max_protocol_version=max_protocol_version,
            separate_publish_times=separate_publish_times,
            pip=pip,
            port=port,
            http_port=http_port,
            toxiproxy_port=toxiproxy_port,
            data=data,
            durability=durability,
            brokers=brokers,
        )
    )


class Running:
    """The result of `running`. Enter it once, by `with` or by `async with`."""

    def __init__(self, options: ServeOptions) -> None:
        # The HTTP port is open from the start, but its modules are imported at the first request.
        self._open = partial(open_broker, options, web_when_asked=True)
        self._thread: LoopThread[RunningCluster]
        self._here: AbstractAsyncContextManager[RunningCluster]

    def __enter__(self) -> PulsarBroker:
        self._thread = LoopThread(self._open, "pulsarium broker")
        return PulsarBroker(self._thread.start(), self._thread)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._thread.stop()

    async def __aenter__(self) -> RunningCluster:
        if not trio.lowlevel.in_trio_task():
            raise RuntimeError(
                "`async with running()` works on trio only: use `with running()`, which has a thread of its own"
            )
        self._here = self._open()
        return await self._here.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._here.__aexit__(kind, error, traceback)


LOOPBACK = "127.0.0.1"


def options_of(
    *,
    config: str | Path | None = None,
    set: Mapping[str, object] | None = None,
    profile: str = "pip",
    max_protocol_version: int | None = None,
    separate_publish_times: bool | None = None,
    pip: Iterable[int] = (),
    port: int = 0,
    http_port: int = 0,
    toxiproxy_port: int | None = None,
    data: str | Path | None = None,
    durability: Durability = "os",
    brokers: int = 1,
) -> ServeOptions:
    """Return the options of `running` as the broker takes them. Raise `ConfigError` for invalid ones."""
    behavior = profile_of(profile, max_protocol_version, separate_publish_times, pip)
    overrides = [f"{key}={_text(value)}" for key, value in (set or {}).items()]
    given = load(None if config is None else Path(config), overrides, behavior)
    settings = given.config
    if port or "brokerServicePort" not in (set or {}):  # the ports of a broker.conf file are for another broker
        settings = replace(settings, brokerServicePort=port)
    if http_port or "webServicePort" not in (set or {}):
        settings = replace(settings, webServicePort=http_port)
    if settings.advertisedAddress is None and settings.bindAddress == LOOPBACK:
        settings = replace(settings, advertisedAddress=LOOPBACK)  # as in service_url: clients need one connection
    check(settings)
    return ServeOptions(
        config=settings,
        profile=behavior,
        data=None if data is None else Path(data),
        durability=durability,
        brokers=brokers,
        toxiproxy_port=toxiproxy_port,
    )


def _text(value: object) -> str:
    """Return a value as broker.conf writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)

"""A broker for the length of a block, with options in the words of `pulsarium serve`."""

from __future__ import annotations

from collections.abc import Mapping
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
    brokers: int = 1,
    config: str | Path | None = None,
    data: str | Path | None = None,
    durability: Durability = "os",
    port: int = 0,
    http_port: int = 0,
) -> Running:
    """A broker that runs while a block does, on free ports and in memory unless told otherwise.

    Plain code gets it in a thread of its own, and may call it from any thread:

        with pulsarium.broker.running() as broker:
            client = pulsar.Client(broker.service_url)

    Code on trio gets it in its own loop, and its lab as it is (`broker.lab.faults`, ...):

        async with pulsarium.broker.running() as broker:
            async with pulsarium.client.connect(broker.service_url) as client: ...

    The options are those of `pulsarium serve`. `set`: broker.conf keys, `set={"maxMessageSize": 1024}`.
    Raises ConfigError for options that cannot be, and when the block is entered PortInUse or StorageError.
    """
    return Running(
        options_of(
            config=config,
            set=set,
            profile=profile,
            max_protocol_version=max_protocol_version,
            port=port,
            http_port=http_port,
            data=data,
            durability=durability,
            brokers=brokers,
        )
    )


class Running:
    """What `running` returns: to be entered once, by `with` or by `async with`."""

    def __init__(self, options: ServeOptions) -> None:
        # HTTP is there from the beginning too, but who never asks need not wait until it is imported
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
                "`async with running()` is for code on trio; elsewhere `with running()` has a thread for it"
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
    port: int = 0,
    http_port: int = 0,
    data: str | Path | None = None,
    durability: Durability = "os",
    brokers: int = 1,
) -> ServeOptions:
    """What `running` takes, as the broker takes it. Raises ConfigError for what cannot be."""
    behavior = profile_of(profile, max_protocol_version)
    overrides = [f"{key}={_text(value)}" for key, value in (set or {}).items()]
    given = load(None if config is None else Path(config), overrides, behavior)
    settings = given.config
    if port or "brokerServicePort" not in (set or {}):  # what a file has is for a broker of its own
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
    )


def _text(value: object) -> str:
    """As broker.conf writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)

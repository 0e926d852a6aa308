"""A proxy for tests, in this process or in another one: the part of the lab that any Pulsar can have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from pulsarium.broker.lab.proxy.upstream import Upstream
from pulsarium.broker.proxying import ProxyOptions, open_proxy
from pulsarium.broker.testing.remote_lab import RemoteTaps
from pulsarium.broker.testing.thread import LoopThread


class PulsarProxy(RemoteTaps):
    """A proxy that runs. Its faults, masks and captures are those of `PulsarBroker`."""

    def __init__(self, service_url: str, admin_url: str) -> None:
        super().__init__(admin_url)
        self.service_url = service_url
        """The URL for clients. `admin_url` has the lab of the proxy, and the broker's admin API."""

    def __repr__(self) -> str:
        return f"<proxy at {self.service_url} and {self.admin_url}>"


def proxy_options(url: str, admin_url: str | None = None, *, yes_not_production: bool = False) -> ProxyOptions:
    """Return options of a proxy in front of the broker at `url`. Raise `ValueError` for a URL of another form."""
    return ProxyOptions(upstream=Upstream.of(url), admin_url=admin_url, sure=yes_not_production)


@contextmanager
def proxying(url: str, admin_url: str | None = None, *, yes_not_production: bool = False) -> Iterator[PulsarProxy]:
    """Run a proxy in front of the broker at `url` until the block ends, on free ports of this machine.

    Faults and masks in front of a broker that is not in a private network need `yes_not_production`. Raise
    `ValueError` for a URL that is not pulsar://HOST:PORT or pulsar+ssl://HOST:PORT.
    """
    options = proxy_options(url, admin_url, yes_not_production=yes_not_production)
    thread = LoopThread(partial(open_proxy, options), "proxy")
    running = thread.start()
    try:
        yield PulsarProxy(running.service_url, running.admin_url)
    finally:
        thread.stop()

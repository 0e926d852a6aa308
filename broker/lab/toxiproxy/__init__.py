"""Toxiproxy's control API, and the proxies and toxics that the API controls.

A suite that drives Toxiproxy drives a broker instead. `toxics.py` has the kinds of toxics, `link.py` carries one
direction of a connection through its toxics, `proxy.py` listens, and `api.py` answers HTTP.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import trio

from pulsarium.broker.http.server import serve_http
from pulsarium.broker.lab.toxiproxy.api import ControlApi
from pulsarium.broker.logs import Log

if TYPE_CHECKING:
    from pulsarium.broker.broker import Broker

log = Log("toxiproxy")


async def serve_toxiproxy(
    broker: Broker, sock: socket.socket, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Answer the control API on a listening socket until canceled. Then close all proxies."""
    host, port, *_ = sock.getsockname()
    log.info("Toxiproxy's control API answers", host=host, port=port)
    async with trio.open_nursery() as nursery:
        await serve_http(ControlApi(broker, nursery), sock, task_status)

"""Run an application once, or again and again for `pulsarium explore --persistent`."""

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import TypeVar

import pulsar

T = TypeVar("T")


class Broken(Exception):
    """An invariant of the application does not hold."""


def again(call: Callable[[], T]) -> T:
    """Repeat a call that may fail while the broker is not ready."""
    for _ in range(9):
        try:
            return call()
        except pulsar.PulsarException:
            continue
    return call()


def main(application: Callable[[pulsar.Client, bool], None]) -> None:
    """Run `application(client, mended)`. It raises `Broken` when its invariant does not hold."""
    mended = "--mended" in sys.argv
    if "--persistent" not in sys.argv:
        reason = run(application, os.environ.get("PULSAR_SERVICE_URL", "pulsar://localhost:6650"), mended)
        sys.exit(reason)
    for line in sys.stdin:
        reason = run(application, json.loads(line)["serviceUrl"], mended)
        print(f"failed {reason}" if reason else "ok", flush=True)


def run(application: Callable[[pulsar.Client, bool], None], url: str, mended: bool) -> str | None:
    """Return the reason why the application failed, or None."""
    client = pulsar.Client(url, operation_timeout_seconds=2, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        application(client, mended)
    except Broken as broken:
        return str(broken)
    except Exception as error:
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    finally:
        client.close()
    return None

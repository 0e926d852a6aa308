"""`bin/pulsar-admin` and `bin/pulsar-client`: `pulsarium admin` and `pulsarium client`, with conf/client.conf."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def admin(home: Path, arguments: Sequence[str]) -> None:
    """Run bin/pulsar-admin of the folder `home`."""
    from pulsarium.cli.admin.main import admin

    _take_client_conf(home)
    admin.main(arguments, prog_name="pulsar-admin")


def client(home: Path, arguments: Sequence[str]) -> None:
    """Run bin/pulsar-client of the folder `home`."""
    from pulsarium.cli.client.main import client

    _take_client_conf(home)
    client.main(arguments, prog_name="pulsar-client")


def _take_client_conf(home: Path) -> None:
    os.environ.setdefault("PULSAR_CLIENT_CONF", str(home / "conf/client.conf"))

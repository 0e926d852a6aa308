"""--auth-plugin and --auth-params: what to send with each call so that the broker knows who calls."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click

_PREFIX = "org.apache.pulsar.client.impl.auth.Authentication"


@dataclass(frozen=True, slots=True)
class Credentials:
    """`headers` go with each call; `certificate` is (certificate file, key file) for mutual TLS."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificate: tuple[str, str] | None = None


def credentials(plugin: str | None, params: str | None) -> Credentials:
    """Of Pulsar's plugins by class name, or by `token`, `basic`, `tls`. click.UsageError never shows a secret."""
    kind, params = kind_of(plugin, params)
    if kind == "token":
        return Credentials({"Authorization": f"Bearer {token(params)}"})
    if kind == "basic":
        pair = ":".join(basic(params)).encode()
        return Credentials({"Authorization": f"Basic {base64.b64encode(pair).decode()}"})
    return Credentials(certificate=certificate(params)) if kind == "tls" else Credentials()


def kind_of(plugin: str | None, params: str | None) -> tuple[str, str]:
    """`token`, `basic`, `tls` or "" for none, and its parameters. Raises as `credentials`."""
    kind = (plugin or "").removeprefix(_PREFIX).lower()
    if not kind and params:
        raise click.UsageError("--auth-params needs --auth-plugin: token, basic or tls")
    if kind in ("", "disabled"):
        return "", ""
    if kind not in ("token", "basic", "tls"):
        raise click.UsageError(f"--auth-plugin {plugin} is not known here; there are token, basic and tls")
    if not params:
        raise click.UsageError(f"--auth-plugin {plugin} needs --auth-params")
    return kind, params


def basic(params: str) -> tuple[str, str]:
    """User and password."""
    given = _parameters(params, "userId", "password")
    return given["userId"], given["password"]


def certificate(params: str) -> tuple[str, str]:
    """The files of certificate and private key."""
    given = _parameters(params, "tlsCertFile", "tlsKeyFile")
    return given["tlsCertFile"], given["tlsKeyFile"]


def token(params: str) -> str:
    """`token:TEXT`, `file:///path`, `{"token": TEXT}` or the token itself."""
    if params.startswith("token:"):
        return params.removeprefix("token:").strip()
    if params.startswith("file:"):
        path = unquote(urlsplit(params).path)
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise click.UsageError(f"The token file {path} cannot be read: {error.strerror}") from None
    if params.lstrip().startswith("{"):
        return _parameters(params, "token")["token"]
    return params.strip()


def _parameters(params: str, *names: str) -> dict[str, str]:
    """JSON, or `name:value,name:value`."""
    given: Any
    if params.lstrip().startswith("{"):
        try:
            given = json.loads(params)
        except ValueError:
            raise click.UsageError("--auth-params: this is no JSON") from None
    else:
        given = dict(pair.split(":", 1) for pair in params.split(",") if ":" in pair)
    if missing := [name for name in names if not isinstance(given.get(name), str)]:
        raise click.UsageError(f"--auth-params lacks {' and '.join(missing)}")
    return {name: given[name].removeprefix("file://") for name in names}

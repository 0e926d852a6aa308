"""Write the .conf files of the image: every key that has an effect here, with its default and its meaning.

python -m pulsarium.cli.pulsar.conf FOLDER writes standalone.conf, broker.conf and client.conf there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from pulsarium.broker.config.keys import Key, documented_keys
from pulsarium.broker.config.profile import PIP
from pulsarium.broker.config.pulsar_keys import PULSAR_KEYS

# Others than the container itself are to reach it. What a profile has a default of its own for stays unset.
IN_THE_IMAGE = {"bindAddress": "0.0.0.0", **dict.fromkeys(dict(PIP.defaults), "")}

CLIENT = {
    "webServiceUrl": ("http://localhost:8080/", "Where the broker answers HTTP"),
    "brokerServiceUrl": ("pulsar://localhost:6650/", "Where the broker answers Pulsar clients"),
    "authPlugin": ("", "Who calls: token, basic or tls, or the Java class of one"),
    "authParams": ("", "For it: token:..., file:///..., or JSON with its fields"),
    "tlsTrustCertsFilePath": ("", "Certificates of authorities to trust, in PEM"),
    "tlsAllowInsecureConnection": ("false", "Trust any certificate"),
    "tlsEnableHostnameVerification": ("false", "Look at the name in it too"),
}


def broker_conf() -> str:
    """Return the text of standalone.conf and broker.conf."""
    return "\n".join((*_lines("Settings of the broker.", _broker_keys()), *_without_effect()))


def client_conf() -> str:
    """Return the text of client.conf."""
    keys = ((key, value, meaning) for key, (value, meaning) in CLIENT.items())
    return "\n".join(_lines("Settings of pulsar-admin and pulsar-client.", keys))


def _lines(head: str, keys: Iterator[tuple[str, str, str]]) -> Iterator[str]:
    yield f"# {head} A blank value leaves the default."
    for key, value, meaning in keys:
        yield from ("", f"# {meaning}", f"{key}={value}")
    yield ""


def _broker_keys() -> Iterator[tuple[str, str, str]]:
    for key in documented_keys().values():
        unit = f" ({key.meaning.unit})" if key.meaning.unit else ""
        yield key.name, IN_THE_IMAGE.get(key.name, default_text(key)), f"{key.meaning.doc}{unit}"


def _without_effect() -> Iterator[str]:
    """Name Pulsar's other keys, so that variables of their names are put here, and the log says what has no effect."""
    yield "# Pulsar has these keys too; they have no effect here."
    yield from (f"#{key}=" for key in sorted(PULSAR_KEYS - documented_keys().keys()))
    yield ""


def default_text(key: Key) -> str:
    """Return a key's default as it is written in a .conf file."""
    if key.default is None:
        return ""
    if isinstance(key.default, bool):
        return str(key.default).lower()
    if isinstance(key.default, frozenset):
        return ",".join(sorted(key.default))
    return ",".join(key.default) if isinstance(key.default, tuple) else str(key.default)


def main(folder: str) -> None:
    """Write the files."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("standalone.conf", broker_conf()),
        ("broker.conf", broker_conf()),
        ("client.conf", client_conf()),
    ):
        (place / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])

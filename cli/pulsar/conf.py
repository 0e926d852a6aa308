"""Write the .conf files of the image: every key that has an effect, with its default and its meaning.

`python -m pulsarium.cli.pulsar.conf FOLDER` writes the files of the broker, of its tools, and of the services of a
cluster form.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pulsarium.broker.config.keys import Key, documented_keys
from pulsarium.broker.config.profile import PIP
from pulsarium.broker.config.pulsar_keys import PULSAR_KEYS

# Clients outside the container must reach the broker. A key whose default depends on the profile stays unset.
IN_THE_IMAGE = {"bindAddress": "0.0.0.0", **dict.fromkeys(dict(PIP.defaults), "")}

CLIENT = {
    "webServiceUrl": ("http://localhost:8080/", "URL of the broker's HTTP port"),
    "brokerServiceUrl": ("pulsar://localhost:6650/", "URL of the broker for Pulsar clients"),
    "authPlugin": ("", "Authentication plugin: token, basic or tls, or its Java class"),
    "authParams": ("", "Parameters of the plugin: token:..., file:///..., or JSON with its fields"),
    "tlsTrustCertsFilePath": ("", "Certificates of authorities to trust, in PEM"),
    "tlsAllowInsecureConnection": ("false", "Trust any certificate"),
    "tlsEnableHostnameVerification": ("false", "Check the host name in the certificate too"),
}

_STORE = "Address of `bin/pulsar zookeeper`"
# The files of the services of a cluster form. Keys of Pulsar that are not here have no effect.
SERVICES = {
    "zookeeper.conf": {
        "clientPort": ("2181", "Port of the metadata store"),
        "dataDir": ("data/zookeeper", "Folder of the data of clusters"),
    },
    "global_zookeeper.conf": {
        "clientPort": ("2184", "Port of the configuration store"),
        "dataDir": ("data/global-zookeeper", "Folder of the data of clusters"),
    },
    "bookkeeper.conf": {
        "bookiePort": ("3181", "Port of the bookie"),
        "advertisedAddress": ("", "Host of the bookie in `bin/bookkeeper shell listbookies`"),
        "httpServerEnabled": ("false", "Answer /heartbeat over HTTP"),
        "httpServerPort": ("8000", "Port of HTTP"),
        "zkServers": ("localhost:2181", _STORE),
        "metadataServiceUri": ("", f"{_STORE}, in BookKeeper's form"),
    },
    "proxy.conf": {
        "brokerServiceURL": ("", "URL of the broker for Pulsar clients; blank asks the metadata store"),
        "brokerWebServiceURL": ("", "URL of the broker's HTTP port; blank asks the metadata store"),
        "metadataStoreUrl": ("", _STORE),
        "zookeeperServers": ("", f"{_STORE}, by its older key"),
        "servicePort": ("6650", "Port for Pulsar clients"),
        "webServicePort": ("8080", "Port of HTTP"),
        "servicePortTls": ("", "Refused: the proxy has no TLS"),
        "webServicePortTls": ("", "Refused: the proxy has no TLS"),
    },
}


def broker_conf() -> str:
    """Return the text of standalone.conf and broker.conf."""
    return "\n".join((*_lines("Settings of the broker.", _broker_keys()), *_without_effect()))


def client_conf() -> str:
    """Return the text of client.conf."""
    return _conf("Settings of pulsar-admin and pulsar-client.", CLIENT)


def _conf(head: str, described: Mapping[str, tuple[str, str]]) -> str:
    return "\n".join(_lines(head, ((key, value, meaning) for key, (value, meaning) in described.items())))


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
    """Return lines for Pulsar's other keys, so that variables can set them, and the log names those without effect."""
    yield "# Keys of Pulsar that have no effect in Pulsarium."
    yield from (f"#{key}=" for key in sorted(PULSAR_KEYS.keys() - documented_keys().keys()))
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
    """Write the files to `folder`."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("standalone.conf", broker_conf()),
        ("broker.conf", broker_conf()),
        ("client.conf", client_conf()),
        *((name, _conf("Settings of a service beside the broker.", keys)) for name, keys in SERVICES.items()),
    ):
        (place / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])

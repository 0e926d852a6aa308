"""`bin/pulsar initialize-cluster-metadata`: tell the metadata store the name and the URLs of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from pulsarium.cli.pulsar import metadata
from pulsarium.cli.pulsar.metadata import ForeignStore, place_of
from pulsarium.cli.refusal import RequestRefused, RunRefused

_URLS: Final = {
    "web_service_url": "serviceUrl",
    "web_service_url_tls": "serviceUrlTls",
    "broker_service_url": "brokerServiceUrl",
    "broker_service_url_tls": "brokerServiceUrlTls",
    "proxy_url": "proxyServiceUrl",
    "proxy_protocol": "proxyProtocol",
}
_WITHOUT_EFFECT: Final = (
    ("-cs", "--configuration-store"),
    ("-cms", "--configuration-metadata-store"),
    ("-cmscp", "--configuration-metadata-store-config-path"),
    ("-mscp", "--metadata-store-config-path"),
    ("-bn", "--default-namespace-bundle-number"),
    ("--existing-bk-metadata-service-uri",),
    ("--initial-num-stream-storage-containers",),
    ("--initial-num-transaction-coordinators",),
    ("--zookeeper-session-timeout-ms",),
)


def _takes_what_has_no_effect(command: Any) -> Any:
    for names in _WITHOUT_EFFECT:
        command = click.option(*names, metavar="VALUE", expose_value=False, help="Ignored.")(command)
    return command


@click.command("initialize-cluster-metadata", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-c", "--cluster", metavar="NAME", required=True, help="The cluster.")
@click.option("-md", "--metadata-store", metavar="URL", help="The metadata store: zk:HOST:PORT.")
@click.option("-zk", "--zookeeper", metavar="HOST:PORT", help="The older name of --metadata-store.")
@click.option("-uw", "--web-service-url", metavar="URL", help="The URL of the cluster's HTTP port.")
@click.option("-tw", "--web-service-url-tls", metavar="URL", help="The URL of the cluster's HTTPS port.")
@click.option("-ub", "--broker-service-url", metavar="URL", help="The URL for Pulsar clients.")
@click.option("-tb", "--broker-service-url-tls", metavar="URL", help="The URL for Pulsar clients over TLS.")
@click.option("-pu", "--proxy-url", metavar="URL", help="The URL of a proxy in front of the cluster.")
@click.option("-pp", "--proxy-protocol", metavar="NAME", help="The protocol of that proxy.")
@_takes_what_has_no_effect
@click.pass_obj
def initialize_cluster_metadata(home: Path, /, cluster: str, **given: str | None) -> None:
    """Tell the metadata store the name and the URLs of a cluster."""
    url = given["metadata_store"] or given["zookeeper"]
    if url is None:
        raise RequestRefused("--metadata-store: name the store of `bin/pulsar zookeeper`, such as zk:zookeeper:2181")
    place = place_of(url)
    if place is None:
        raise RequestRefused(f"--metadata-store {url}: write zk:HOST:PORT; Pulsarium knows no store of another kind")
    data = {name: given[option] for option, name in _URLS.items() if given[option] is not None}
    try:
        metadata.ask(place, {"clusters": {cluster: data}}).leave()
    except ForeignStore:
        click.echo(f"the store at {place} is not of Pulsarium: the broker will show its own URLs", err=True)
    except OSError as error:
        raise RunRefused(
            f"no metadata store answers at {place}: {error.strerror or error}; start `bin/pulsar zookeeper` there first"
        ) from None
    click.echo(f"Cluster metadata for '{cluster}' setup correctly")

"""The services of a cluster form: the metadata store, bookies and the proxy."""

from __future__ import annotations

import socket
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing

import anyio
import pytest

from pulsarium.broker.testing import running
from pulsarium.cli.pulsar import metadata
from pulsarium.cli.pulsar.metadata import ForeignStore, Membership, Place, place_of
from pulsarium.client import connect
from tests.cli.pulsar.programs import Home
from tests.client.refusing import refusing_port

BROKER = {"kind": "broker", "id": "broker:8080"}
BOOKKEEPER = "pulsarium.cli.pulsar.bookkeeper"


def local(port: int) -> Place:
    return Place("127.0.0.1", port)


def said(port: int, question: bytes) -> bytes:
    """Return everything that a port answers."""
    with socket.create_connection(local(port), 60) as connection, connection.makefile("rb") as answer:
        connection.sendall(question)
        return answer.read()


@pytest.fixture
def store(image_home: Home) -> Place:
    """Return the address of a running metadata store."""
    image_home.conf("zookeeper.conf", clientPort=0, dataDir="data/zookeeper")
    (port,) = image_home.start("zookeeper")
    return local(port)


def known(store: Place, is_there: Callable[[Membership], object]) -> Membership:
    """Return what the store knows, once the condition is true."""
    end = time.monotonic() + 60
    while True:
        found = metadata.ask(store, {})
        found.leave()
        if is_there(found):
            return found
        assert time.monotonic() < end, found.members
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("zookeeper:2181", Place("zookeeper", 2181)),
        ("zk:zookeeper:2182", Place("zookeeper", 2182)),
        ("zk:a:2183,b:2181/path", Place("a", 2183)),
        ("metadata-store:zk:a", Place("a", 2181)),
        ("zk+hierarchical://a:2181/ledgers", Place("a", 2181)),
        ("rocksdb:///tmp/x", None),
        ("etcd:http://a:2379", None),
    ],
)
def test_the_url_of_a_metadata_store_has_its_first_address(url: str, place: Place | None) -> None:
    assert place_of(url) == place


def test_the_metadata_store_answers_ruok(store: Place) -> None:
    assert said(store.port, b"ruok") == b"imok"
    assert b"Mode: standalone\n" in said(store.port, b"srvr")


def test_the_metadata_store_disconnects_a_client_of_zookeeper(store: Place) -> None:
    assert said(store.port, b"\0\0\0\x2d" + bytes(44) + b"\n") == b""
    assert said(store.port, b"pulsarium no json\n") == said(store.port, b"pulsarium []\n") == b""
    assert said(store.port, b"ruok") == b"imok"


def test_services_end_at_sigterm(image_home: Home, store: Place) -> None:
    image_home.conf("bookkeeper.conf", bookiePort=0)
    image_home.start("bookie")
    assert image_home.start("autorecovery") == []
    assert image_home.stop() == [0, 0, 0]


def test_initialized_metadata_outlives_the_store(image_home: Home, store: Place) -> None:
    urls = ("--web-service-url", "http://broker:8080", "--broker-service-url", "pulsar://broker:6650")
    done = image_home.run(
        *("initialize-cluster-metadata", "--cluster", "c1", "--zookeeper", str(store)),
        *("--configuration-store", str(store), *urls),
    )
    assert done == (0, "Cluster metadata for 'c1' setup correctly\n", "")
    image_home.stop()
    (port,) = image_home.start("zookeeper")
    clusters = known(local(port), lambda found: True).clusters
    assert clusters == {"c1": {"serviceUrl": "http://broker:8080", "brokerServiceUrl": "pulsar://broker:6650"}}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ((), "--metadata-store: name the store of `bin/pulsar zookeeper`, such as zk:zookeeper:2181"),
        (
            ("-md", "rocksdb:///x"),
            "--metadata-store rocksdb:///x: write zk:HOST:PORT; Pulsarium knows no store of another kind",
        ),
    ],
)
def test_metadata_without_a_store_is_refused(image_home: Home, given: tuple[str, ...], reason: str) -> None:
    done = image_home.run("initialize-cluster-metadata", "-c", "c1", *given)
    assert done == (2, "", f"pulsarium: {reason}\n")


def test_a_store_that_is_not_of_pulsarium_is_recognized() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, closing(socket.socket()) as client:
        client.connect(server.getsockname())
        taken, _ = server.accept()
        taken.close()
        with pytest.raises(ForeignStore):
            metadata._talk(client, {})


def test_a_broker_is_known_as_long_as_it_is_connected(store: Place) -> None:
    first = metadata.ask(store, {"join": BROKER})
    second = metadata.ask(store, {"join": {**BROKER, "id": "broker-2:8080"}})
    assert (first.other, second.other) == (None, "broker:8080")
    first.leave()
    second.leave()
    known(store, lambda found: not found.members)


def test_a_bookie_is_listed_and_sane(image_home: Home, store: Place) -> None:
    settings = {"zkServers": str(store), "advertisedAddress": "localhost"}
    image_home.conf("bookkeeper.conf", bookiePort=0, **settings)
    (port,) = image_home.start("bookie")
    known(store, lambda found: found.members)
    image_home.conf("bookkeeper.conf", bookiePort=port, **settings)
    line = f"BookieID:localhost:{port}, IP:127.0.0.1, Port:{port}, Hostname:localhost"
    listed = image_home.run("shell", "listbookies", "-rw", module=BOOKKEEPER)
    assert listed == (0, f"ReadWrite Bookies :\n{line}\n", "")
    assert image_home.run("shell", "bookiesanity", module=BOOKKEEPER) == (0, "Bookie sanity test succeeded\n", "")


def test_a_bookie_that_is_not_there_is_told(image_home: Home, store: Place) -> None:
    with refusing_port() as port:
        image_home.conf("bookkeeper.conf", bookiePort=port, zkServers=str(store))
        said = image_home.run("shell", "bookiesanity", module=BOOKKEEPER)
    reason = f"no bookie answers at port {port}: Connection refused; start `bin/pulsar bookie`"
    assert said == (1, "", f"pulsarium: {reason}\n")
    assert image_home.run("shell", "listbookies", module=BOOKKEEPER) == (1, "", "pulsarium: No bookie exists!\n")


def test_a_command_of_bookkeeper_that_is_not_there_is_refused_in_one_line(image_home: Home) -> None:
    code, out, err = image_home.run("shell", "recover", module=BOOKKEEPER)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "bin/bookkeeper shell recover does not exist" in err


def test_a_bookie_answers_heartbeats(image_home: Home) -> None:
    image_home.conf("bookkeeper.conf", bookiePort=0, httpServerEnabled="true", httpServerPort=0)
    _, port = image_home.start("bookie")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/heartbeat", timeout=60) as answer:
        assert answer.read() == b"OK\n"


def test_clients_stay_on_the_proxy(image_home: Home) -> None:
    """The broker's own address leads nowhere."""
    with running(set={"advertisedAddress": "nowhere.invalid"}) as broker:
        image_home.conf(
            *("proxy.conf",),
            brokerServiceURL=broker.service_url,
            brokerWebServiceURL=broker.admin_url,
            servicePort=0,
            webServicePort=0,
        )
        binary, web = image_home.start("proxy")

        async def exchange() -> bytes:
            async with connect(f"pulsar://127.0.0.1:{binary}") as client:
                async with client.create_producer("orders", initial_subscription_name="s") as producer:
                    await producer.send(b"through")
                async with client.subscribe("orders", "s") as consumer:
                    message = await consumer.receive()
                    return message.data()

        assert anyio.run(exchange) == b"through"
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/admin/v2/clusters", timeout=60) as answer:
            assert answer.read() == b'["standalone"]'


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", bytes.fromhex("00000006 00000002 ffff")])
def test_garbage_at_the_proxy_is_the_broker_s_to_refuse(image_home: Home, garbage: bytes) -> None:
    with running() as broker:
        urls = {"brokerServiceURL": broker.service_url, "brokerWebServiceURL": broker.admin_url}
        image_home.conf("proxy.conf", servicePort=0, webServicePort=0, **urls)
        binary, _ = image_home.start("proxy")
        answer = said(binary, garbage)
        assert answer == said(int(broker.service_url.rpartition(":")[2]), garbage)
        assert said(binary, garbage) == answer


def test_a_proxy_finds_the_broker_in_the_metadata_store(image_home: Home, store: Place) -> None:
    with running() as broker:
        urls = {"serviceUrl": broker.admin_url, "brokerServiceUrl": broker.service_url}
        member = metadata.ask(store, {"join": {**BROKER, **urls}})
        image_home.conf("proxy.conf", metadataStoreUrl=f"zk:{store}", servicePort=0, webServicePort=0)
        _, web = image_home.start("proxy")
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/admin/v2/clusters", timeout=60) as answer:
            assert answer.read() == b'["standalone"]'
        member.leave()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "proxy.conf: set brokerServiceURL to the URL of the broker"),
        ({"servicePortTls": 6651}, "proxy.conf: servicePortTls: this proxy has no TLS; leave the key blank"),
        (
            {"brokerServiceURL": "broker"},
            "brokerServiceURL=broker: write the URL of the broker, such as pulsar://broker:6650",
        ),
        (
            {"brokerServiceURL": "pulsar://b", "brokerWebServiceURL": "http://b", "servicePort": "x"},
            "servicePort=x: write a port, a number up to 65535",
        ),
    ],
)
def test_a_proxy_refuses_a_configuration_that_cannot_be(
    image_home: Home, settings: dict[str, object], reason: str
) -> None:
    image_home.conf("proxy.conf", **settings)
    assert image_home.run("proxy") == (2, "", f"pulsarium: {reason}\n")


def test_a_service_whose_port_is_taken_ends_in_one_line(image_home: Home, store: Place) -> None:
    image_home.conf("bookkeeper.conf", bookiePort=store.port)
    code, _, err = image_home.run("bookie")
    reason = f"bookie: port {store.port}: Address already in use; name another in its .conf file"
    assert (code, err) == (1, f"pulsarium: {reason}\n")

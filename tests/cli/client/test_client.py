"""`pulsarium client` against a broker on loopback, and what it refuses without one.

Commands and options of pulsar-client, as recorded from its own model.
"""

from __future__ import annotations

import csv
import re
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import click
import pytest
from click.testing import CliRunner, Result

import pulsarium.client
from pulsarium.broker.testing import running
from pulsarium.cli import patience
from pulsarium.cli.client.main import client
from pulsarium.cli.client.session import with_remedy
from pulsarium.cli.main import cli
from pulsarium.client import (
    AvroSchema,
    BytesSchema,
    DoubleSchema,
    Int32Schema,
    JsonSchema,
    KeyValue,
    KeyValueEncodingType,
    KeyValueSchema,
    Schema,
    StringSchema,
    connect,
)
from pulsarium.client.errors import AuthenticationError
from tests.client.refusing import refusing_port
from tests.foreign.broker_process import BrokerProcess

LINE = re.compile(r"publishTime:\[\d+\], eventTime:\[0\], key:\[(.*?)\], properties:\[(.*?)\], content:(.*)")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    process = BrokerProcess(tmp_path_factory.mktemp("broker"))
    yield process.address.service_url
    assert process.stop() == 0


@pytest.fixture(scope="module")
def http_port() -> Iterator[int]:
    with running() as broker:
        yield urlsplit(broker.admin_url).port or 0


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/{uuid.uuid4()}"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["client", *arguments], prog_name="pulsarium", catch_exceptions=False)


def done(*arguments: str) -> list[tuple[str, str, str]]:
    """Return the key, the properties and the content of each message that a run prints."""
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[::2] == ["----- got message -----"] * (len(lines) // 2)
    found = [LINE.fullmatch(line) for line in lines[1::2]]
    return [(one[1], one[2], one[3]) for one in found if one is not None]


def test_produced_messages_are_consumed(url: str, topic: str) -> None:
    produce = ("--url", url, "produce", topic, "-m", "hello,world", "-n", "2", "-k", "key1", "-p", "a=b,c", "-p", "d=e")
    result = run(*produce)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "4 messages successfully produced\n")
    hello, world = ("key1", "a=b,c, d=e", "hello"), ("key1", "a=b,c, d=e", "world")
    consumed = ("--url", url, "consume", topic, "-s", "sub", "-p", "Earliest", "-n", "3")
    assert done(*consumed) == [hello, world, hello]
    assert done("--url", url, "consume", topic, "-s", "sub") == [world]  # the subscription has acknowledged the others
    assert done("--url", url, "read", topic, "-m", "earliest", "-n", "4") == [hello, world] * 2


def test_messages_come_from_texts_and_files(url: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"from a file")
    files = ("-f", str(tmp_path / "file"))
    assert run("--url", url, "produce", topic, "-m", "a;b,c", "-s", ";", "-m", "d", *files, "-db").exit_code == 0
    shown = done("--url", url, "read", topic, "-m", "earliest", "-n", "4")
    assert [content for _, _, content in shown] == ["a", "b,c", "d", "from a file"]
    assert {(key, properties) for key, properties, _ in shown} == {("null", "")}


def test_messages_with_keys_and_properties_come_from_json_lines(url: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text(
        '{"value": "text, as it is", "key": "ann", "properties": {"a": "1"}}\n\n{"value": {"id": 7}}\n{"value": null}\n'
    )
    lines = ("-f", str(tmp_path / "lines"), "--json-lines", "-k", "common", "-p", "b=2")
    result = run("--url", url, "produce", topic, *lines)
    assert (result.exit_code, result.stderr) == (0, "3 messages successfully produced\n")
    assert done("--url", url, "read", topic, "-m", "earliest", "-n", "3") == [
        ("ann", "b=2, a=1", "text, as it is"),
        ("common", "b=2", '{"id":7}'),
        ("common", "b=2", "null"),
    ]


def test_more_than_a_thousand_json_lines_are_sent(url: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text('{"value": 1}\n' * 1001)
    result = run("--url", url, "produce", topic, "-f", str(tmp_path / "lines"), "--json-lines")
    assert (result.exit_code, result.stderr) == (0, "1001 messages successfully produced\n")


def test_a_message_larger_than_the_broker_accepts_goes_in_chunks_and_comes_whole(
    url: str, topic: str, tmp_path: Path
) -> None:
    large = "0123456789" * 600_000
    (tmp_path / "large").write_text(large)
    produce = ("--url", url, "produce", topic, "-f", str(tmp_path / "large"))
    assert run(*produce).exit_code == 1
    assert run(*produce, "--chunking").exit_code == 0
    read = ("--url", url, "read", topic, "-m", "earliest", "-mc", "1", "-ac")
    assert done(*read) == [("null", "", large)]


def test_a_listener_is_chosen_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first refusal is the last one: the wait for another attempt is longer than the time for all.
    monkeypatch.setattr(pulsarium.client, "connect", partial(connect, starting_backoff_interval=60))
    with running(set={"advertisedListeners": "inside:pulsar://127.0.0.1:1,outside:pulsar://127.0.0.1:2"}) as broker:
        result = run("--url", broker.service_url, "--listener-name", "nowhere", "produce", "t", "-m", "x")
    assert result.exit_code == 1
    assert "nowhere" in result.stderr


def test_messages_can_be_shown_in_hex_and_without_content(url: str, topic: str) -> None:
    run("--url", url, "produce", topic, "-m", "hi")
    read = ("--url", url, "read", topic, "-m", "earliest")
    assert done(*read, "--hex") == [("null", "", "68 69")]
    result = run(*read, "--hide-content")
    assert (result.stdout, result.stderr) == ("", "1 messages received\n")
    ((_, _, content),) = done(*read, "-mp")
    assert re.fullmatch(
        r"hi, event-time:1970-01-01T00:00:00Z, message-id:\d+:0:-1, producer-name:standalone-\S+, sequence-id:0, "
        r"replicated-from:null, redelivery-count:0, ordering-key:, schema-version:",
        content,
    )


RECORD = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "amount", "type": "double"},
        {"name": "b", "type": ["null", "string"], "default": None},
        {"name": "customerName", "type": "string"},
        {"name": "inner", "type": {"type": "record", "name": "I", "fields": [{"name": "ok", "type": "boolean"}]}},
    ],
}
VALUE = {"amount": 12345678.5, "b": None, "customerName": "Ann", "inner": {"ok": True}}
SHOWN = "{amount=1.23456785E7, b=NULL, inner={ok=true}, customerName=Ann}"  # in the order of a Java HashMap


@pytest.mark.parametrize(
    ("schema", "value", "shown"),
    [
        (BytesSchema(), b"hey", "{value=hey, type=class java.lang.String}"),
        (StringSchema(), "hey", "{value=hey, type=class java.lang.String}"),
        (DoubleSchema(), 2.5, "{value=2.5, type=class java.lang.Double}"),
        (JsonSchema(RECORD), VALUE, SHOWN),
        (AvroSchema(RECORD), VALUE, SHOWN),
        (
            KeyValueSchema(StringSchema(), Int32Schema()),
            KeyValue("k", 3),
            "{key={value=k, type=class java.lang.String}, value={value=3, type=class java.lang.Integer}}",
        ),
        (
            KeyValueSchema(StringSchema(), JsonSchema(RECORD), KeyValueEncodingType.SEPARATED),
            KeyValue("k", VALUE),
            f"{{key={{value=k, type=class java.lang.String}}, value={SHOWN}}}",
        ),
    ],
)
def test_messages_are_decoded_with_the_schema_of_the_topic(
    url: str, topic: str, schema: Schema[Any], value: object, shown: str
) -> None:
    """The texts are those of pulsar-client on a real broker."""

    async def send() -> None:
        async with connect(url) as client, client.create_producer(topic, schema=schema) as producer:
            await producer.send(value)

    anyio.run(send)
    assert [found[2] for found in done("--url", url, "read", topic, "-m", "earliest", "-st", "auto_consume")] == [shown]
    consumed = done("--url", url, "consume", topic, "-s", "s", "-p", "Earliest", "-st", "auto_consume")
    assert [found[2] for found in consumed] == [shown]


def test_reading_begins_at_the_given_message(url: str, topic: str) -> None:
    run("--url", url, "produce", topic, "-m", "a,b", "-db")
    ((_, _, first),) = done("--url", url, "read", topic, "-m", "earliest", "-mp")
    found = re.search(r"message-id:(\d+:\d+):", first)
    assert found is not None
    assert done("--url", url, "read", topic, "-m", found[1]) == [("null", "", "b")]
    assert done("--url", url, "read", topic, "-m", found[1], "-i") == [("null", "", "a")]


def test_a_pattern_and_an_end(url: str) -> None:
    name = f"persistent://public/default/many-{uuid.uuid4().hex}"
    for number in (1, 2):
        run("--url", url, "produce", f"{name}-{number}", "-m", str(number))
    consume = ("--url", url, "consume", "-p", "Earliest")
    shown = done(*consume, f"{name}-.*", "--regex", "-s", "sub", "-n", "2", "-t", "Shared")
    assert sorted(content for _, _, content in shown) == ["1", "2"]
    assert done(*consume, f"{name}-1", "-s", "other", "-n", "0", "--end-timestamp", "5") == []


def test_an_encrypted_message_is_read_with_the_private_key(url: str, topic: str, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    private = rsa.generate_private_key(65537, 2048)
    pem = serialization.Encoding.PEM
    (tmp_path / "private").write_bytes(
        private.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (tmp_path / "public").write_bytes(
        private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    produce = ("--url", url, "produce", topic, "-m", "secret", "-ekn", "ours", "-ekv", f"file://{tmp_path}/public")
    assert run(*produce).exit_code == 0
    read = ("--url", url, "read", topic, "-m", "earliest")
    assert done(*read, "-ekv", f"file://{tmp_path}/private") == [("null", "", "secret")]
    refused = run(*read)
    assert refused.exit_code == 1
    assert "CryptoError" in refused.stderr


ORDER = """{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "int"}, {"name": "by", "type": ["null", "string"], "default": null}]}"""


@pytest.mark.parametrize(
    ("options", "text", "shown"),
    [
        (("-vs", f"avro:{ORDER}"), '{"id": 7, "by": "Ada"}', "{by=Ada, id=7}"),
        (("-vs", f"json:{ORDER}"), '{"id": 7}', "{id=7}"),
        (("-vs", "string"), "text", "{value=text, type=class java.lang.String}"),
    ],
    ids=["avro", "json", "string"],
)
def test_texts_are_encoded_by_a_schema(url: str, topic: str, options: tuple[str, ...], text: str, shown: str) -> None:
    result = run("--url", url, "produce", topic, "-s", "", "-m", text, *options)
    assert result.exit_code == 0, result.stderr
    ((_, _, content),) = done("--url", url, "read", topic, "-m", "earliest", "-st", "auto_consume")
    assert content == shown


def test_a_definition_comes_from_a_file(url: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(ORDER)
    schema = ("-vs", f"avro:{tmp_path / 'order.avsc'}")
    assert run("--url", url, "produce", topic, "-m", '{"id": 7}', *schema).exit_code == 0


@pytest.mark.parametrize("encoding", ["inline", "separated"])
def test_pairs_are_encoded_by_two_schemas(url: str, topic: str, encoding: str) -> None:
    pairs = ("-kvet", encoding, "-ks", f"json:{ORDER}", "-kvk", '{"id":1}', "-vs", f"avro:{ORDER}")
    result = run("--url", url, "produce", topic, "-m", '{"id": 7}', *pairs)
    assert result.exit_code == 0, result.stderr
    ((_, _, content),) = done("--url", url, "read", topic, "-m", "earliest", "-st", "auto_consume")
    assert content == "{key={id=1}, value={by=NULL, id=7}}"


def test_json_lines_are_encoded_by_the_schema(url: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text('{"value": {"id": 7, "by": "Ada"}}\n{"value": {"id": 8}}')
    lines = ("-f", str(tmp_path / "lines"), "--json-lines", "-vs", f"avro:{ORDER}")
    assert run("--url", url, "produce", topic, *lines).exit_code == 0
    shown = done("--url", url, "read", topic, "-m", "earliest", "-n", "2", "-st", "auto_consume")
    assert [content for _, _, content in shown] == ["{by=Ada, id=7}", "{by=NULL, id=8}"]


def test_the_key_of_a_json_line_is_that_of_its_pair(url: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text('{"value": "v", "key": {"id": 1}}\n{"value": "w"}')
    pairs = ("-kvet", "separated", "-ks", f"json:{ORDER}", "-kvk", '{"id":2}', "-vs", "string")
    assert run("--url", url, "produce", topic, "-f", str(tmp_path / "lines"), "--json-lines", *pairs).exit_code == 0
    shown = done("--url", url, "read", topic, "-m", "earliest", "-n", "2", "-st", "auto_consume")
    text = "{{value={}, type=class java.lang.String}}"
    assert [content for _, _, content in shown] == [
        f"{{key={{id=1}}, value={text.format('v')}}}",
        f"{{key={{id=2}}, value={text.format('w')}}}",
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "'{' is no JSON: "),
        ("[1]", "'[1]' has no value: "),
        ('{"key": "a"}', "has no value: "),
        ('{"value": 1, "propertys": {}}', "'propertys' is no field of a message: did you mean properties?"),
        ('{"value": 1, "properties": {"a": 1}}', 'the properties {"a": 1} are no texts by name: '),
        ('{"value": 1, "key": 5}', "the key 5 is no text: "),
        ('{"value": {"id": "x"}}', "id"),
    ],
)
def test_a_wrong_json_line_is_refused_by_its_number_before_anything_is_sent(
    tmp_path: Path, line: str, said: str
) -> None:
    (tmp_path / "lines").write_text('{"value": {"id": 1}}\n' + line)
    result = run("produce", "t", "-f", str(tmp_path / "lines"), "--json-lines", "-vs", f"avro:{ORDER}")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"pulsarium: {tmp_path / 'lines'}:2: ")
    assert said in result.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"id": "7"}', 'id: expected a whole number, got "7"'),
        ('{"id": 7,"by":1}', "is no JSON"),
        ("{}", "id: it is missing; expected a whole number"),
    ],
)
def test_a_text_that_does_not_fit_the_schema_names_the_place(text: str, said: str) -> None:
    result = run("produce", "t", "-m", text, "-vs", f"avro:{ORDER}")
    assert (result.exit_code, said in result.stderr) == (1, True), result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("", 2, "Usage: pulsarium client"),
        ("produce", 2, "TOPIC"),
        ("produce t", 2, "Please supply message content with either --messages or --files"),
        ("produce t -m x -n 2000", 1, "Attempting to send 2000 messages"),
        ("produce t -m x -p y", 2, "--properties"),
        ("produce t -f /no/where", 1, "/no/where"),
        ("produce t -m x -vs json", 2, "--value-schema"),
        ("produce t -m x --json-lines", 2, "--json-lines is about the files: pass --files, too"),
        ("produce t -m x -vs avro:/no/where", 2, "--value-schema: /no/where"),
        ("produce t -m x -vs avro:{}", 2, "--value-schema"),
        ("produce t -m x -ks x -kvet inline", 2, "--key-schema"),
        ("produce t -m x -kvk a", 2, "--key-value-encoding-type"),
        ("produce t -m x -kvk a -k b -kvet inline", 2, "--key-value-key"),
        ("produce t -m x -ekn a", 2, "--encryption-key-value"),
        ("produce t -m x -ekn a -ekv data:;base64,%%%", 2, "base64"),
        ("consume t", 2, "--subscription-name"),
        ("consume t -s s -n -1", 2, "--num-messages"),
        ("consume t -s s -m NonDurable", 2, "--subscription-mode"),
        ("consume t -s s -st avro", 2, "--schema-type"),
        ("read t -m bad", 2, "bad"),
        ("--proxy-url x read t", 2, "--proxy-url"),
        ("--auth-plugin none read t", 2, "--auth-plugin"),
    ],
)
def test_invalid_options_are_refused_before_sending(arguments: str, code: int, said: str) -> None:
    result = run(*arguments.split())
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr


def test_pulsarium_client_says_that_nobody_listens() -> None:
    with refusing_port() as port:
        command = [
            sys.executable,
            "-P",
            "-m",
            "pulsarium",
            "client",
            "--url",
            f"pulsar://127.0.0.1:{port}",
            "read",
            "t",
        ]
        result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (1, "")
    assert "pulsarium serve" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_broker_refuses(url: str) -> None:
    result = run("--url", url, "produce", "persistent://no/such/topic", "-m", "a")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith("; `pulsarium explain TopicNotFound` says more\n")


def test_help_imports_no_client() -> None:
    code = "import sys, pulsarium.cli.client.main, pulsarium.cli.client.consume; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True)
    assert not set(run.stdout.split()) & {"anyio", "trio", "google.protobuf", "pulsarium.client"}


def test_the_port_of_http_is_told_at_once(http_port: int) -> None:
    result = run("--url", f"pulsar://127.0.0.1:{http_port}", "produce", "t", "-m", "x")
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert "HTTP answers there" in line
    assert "pulsar://127.0.0.1:6650" in line


@pytest.fixture
def never_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    def connects(*arguments: object, **named: object) -> None:
        raise AssertionError("the command tries to connect")

    monkeypatch.setattr(pulsarium.client, "connect", connects)


@pytest.mark.usefixtures("never_connects")
@pytest.mark.parametrize("scheme", ["pulsar", "pulsar+ssl", "http"])
def test_a_refused_connection_ends_a_command_at_once_with_a_remedy(scheme: str) -> None:
    with refusing_port() as port:
        place = f"127.0.0.1:{port}"
        result = run("--url", f"{scheme}://{place}", "produce", "t", "-m", "x")
    remedy = "is a broker running? Start one with `pulsarium serve`, or name another with --url"
    assert result.exit_code == 1
    assert result.stderr == f"pulsarium: ConnectError: {place}: connection refused; {remedy}\n"


@pytest.mark.usefixtures("never_connects")
def test_an_unknown_host_ends_a_command_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*arguments: object, **named: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "not known")

    monkeypatch.setattr(socket, "create_connection", unknown)
    result = run("--url", "pulsar://nowhere.invalid:6650,also-nowhere.invalid:6650", "produce", "t", "-m", "x")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "also-nowhere.invalid:6650: there is no such host (not known); --url names the broker" in result.stderr


def test_one_host_that_answers_is_enough(url: str, topic: str) -> None:
    with refusing_port() as port:
        several = url.replace("pulsar://", f"pulsar://127.0.0.1:{port},")
        assert run("--url", several, "produce", topic, "-m", "x").exit_code == 0


def test_a_command_waits_for_its_broker_as_long_as_it_is_told_to(
    url: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = iter(range(2))
    create = socket.create_connection

    def refuses_twice(*arguments: Any, **named: Any) -> socket.socket:
        for _ in refusals:
            raise ConnectionRefusedError
        return create(*arguments, **named)

    monkeypatch.setattr(socket, "create_connection", refuses_twice)
    monkeypatch.setattr(patience, "PAUSE", 0)
    result = run("--url", url, "--wait", "10m", "produce", topic, "-m", "x")
    assert (result.exit_code, result.stderr) == (0, "1 messages successfully produced\n")


def test_the_clients_arguments_are_named_as_options() -> None:
    error = AuthenticationError("a:6651: the certificate is not trusted: x; give it as tls_trust_certs_file_path")
    assert with_remedy(error).endswith("give it as --tlsTrustCertsFilePath")


NAMES = ("produce", "consume", "read")
OF_ALL = {"-h", "--help", "-v", "--version"}


def recorded(command: str) -> list[list[str]]:
    with (Path(__file__).parent / "grammar.tsv").open() as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return [row for row in rows if row[1] == command]


def options_of(command: click.Command) -> dict[str, click.Option]:
    return {name: param for param in command.params if isinstance(param, click.Option) for name in param.opts}


def test_the_commands_are_there() -> None:
    assert client.list_commands(click.Context(client, parent=click.Context(cli))) == list(NAMES)
    assert all(recorded(name) for name in NAMES)


@pytest.mark.parametrize("name", ["", *NAMES])
def test_a_command_takes_what_pulsar_client_takes(name: str) -> None:
    command = client.get_command(click.Context(client, parent=click.Context(cli)), name) if name else client
    assert command is not None
    options = options_of(command)
    checked = 0
    for row in recorded(name):
        _, _, _, kind, long, _, short, _, required, _, notes, *_ = row
        names = {word for word in f"{long},{short}".split(",") if word}
        if kind != "option" or names <= OF_ALL:
            continue
        checked += 1
        assert names <= set(options), row
        (option,) = {id(options[word]): options[word] for word in names}.values()
        assert option.is_flag == ("arity 0" in notes), row
        assert option.required == (required == "required"), row
    assert checked > 5
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    assert len(arguments) == (1 if name else 0)


@pytest.mark.parametrize("name", ["", *NAMES])
def test_every_option_says_what_it_does(name: str) -> None:
    command = client.get_command(click.Context(client, parent=click.Context(cli)), name) if name else client
    assert command is not None
    assert command.help
    assert "pulsarium client " in command.help
    assert all(option.help for option in options_of(command).values())

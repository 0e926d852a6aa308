"""Options of StreamNative's connector: each works, warns once, or is refused with what takes its place."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, StructType

from pulsarium.pipeline.connector import ADMIN, CLIENT, FAMILIES_INSTEAD, INSTEAD, KEY_STORE, NO_EFFECT
from pulsarium.pipeline.data_source import ONLY_READ, ONLY_WRITTEN, PulsarDataSource
from pulsarium.pipeline.options import CONNECTION, BadOption, ConnectionOptions, Options
from pulsarium.pipeline.sink import options as sink
from pulsarium.pipeline.sink.options import SinkOptions
from pulsarium.pipeline.source.options import OPTIONS, SourceOptions

URL = {"service.url": "pulsar://localhost:6650", "topic": "t"}
ROWS = StructType().add("value", BinaryType())

FIELDS = {
    "client": "serviceUrl authPluginClassName authParams authParamMap originalPrincipal operationTimeoutMs "
    "lookupTimeoutMs statsIntervalSeconds numIoThreads numListenerThreads connectionsPerBroker "
    "connectionMaxIdleSeconds useTcpNoDelay useTls tlsKeyFilePath tlsCertificateFilePath tlsTrustCertsFilePath "
    "tlsAllowInsecureConnection tlsHostnameVerificationEnable sslFactoryPlugin sslFactoryPluginParams "
    "concurrentLookupRequest maxLookupRequest maxLookupRedirects maxNumberOfRejectedRequestPerConnection "
    "keepAliveIntervalSeconds connectionTimeoutMs requestTimeoutMs readTimeoutMs autoCertRefreshSeconds "
    "initialBackoffIntervalNanos maxBackoffIntervalNanos enableBusyWait listenerName useKeyStoreTls "
    "sslProvider tlsKeyStoreType tlsKeyStorePath tlsKeyStorePassword tlsTrustStoreType tlsTrustStorePath "
    "tlsTrustStorePassword tlsCiphers tlsProtocols memoryLimitBytes proxyServiceUrl proxyProtocol "
    "enableTransaction dnsLookupBindAddress dnsLookupBindPort dnsServerAddresses socks5ProxyAddress "
    "socks5ProxyUsername socks5ProxyPassword description lookupProperties",
    "producer": "topicName producerName sendTimeoutMs blockIfQueueFull maxPendingMessages "
    "maxPendingMessagesAcrossPartitions messageRoutingMode hashingScheme cryptoFailureAction "
    "batchingMaxPublishDelayMicros batchingPartitionSwitchFrequencyByPublishDelay batchingMaxMessages "
    "batchingMaxBytes batchingEnabled chunkingEnabled chunkMaxMessageSize encryptionKeys compressionType "
    "initialSequenceId autoUpdatePartitions autoUpdatePartitionsIntervalSeconds multiSchema accessMode "
    "lazyStartPartitionedProducers properties initialSubscriptionName",
    "reader": "topicNames startMessageId startMessageFromRollbackDurationInSec receiverQueueSize readerName "
    "subscriptionRolePrefix subscriptionName cryptoFailureAction readCompacted resetIncludeHead keyHashRanges "
    "poolMessages autoUpdatePartitions autoUpdatePartitionsIntervalSeconds maxPendingChunkedMessage "
    "autoAckOldestChunkedMessageOnQueueFull expireTimeOfIncompleteChunkedMessageMillis subscriptionMode "
    "subscriptionInitialPosition",
}
"""Fields of the configurations of Java's client 4.2 that the connector sets from text."""


def test_every_option_of_the_connector_has_exactly_one_meaning() -> None:
    works = {each.name for each in (*CONNECTION, *OPTIONS, *sink.OPTIONS, *sink.PRODUCER_OPTIONS)}
    names = {f"pulsar.{kind}.{name}" for kind, text in FIELDS.items() for name in text.split()}
    names |= {name.replace(CLIENT, ADMIN) for name in names if name.startswith(CLIENT)}
    assert {name: sum(name in table for table in (works, NO_EFFECT, INSTEAD)) for name in names} == dict.fromkeys(
        names, 1
    )


@pytest.mark.parametrize("name", [*INSTEAD])
@pytest.mark.parametrize("read", [SourceOptions.of, SinkOptions.of])
def test_a_replaced_option_is_refused_with_what_takes_its_place(
    read: Callable[[Mapping[str, str]], Any], name: str
) -> None:
    with pytest.raises(BadOption, match=re.escape(f'option "{name}" is one of StreamNative')) as raised:
        read({**URL, name.upper(): "other"})
    assert str(raised.value).endswith(INSTEAD[name].text)


@pytest.mark.parametrize("read", [SourceOptions.of, SinkOptions.of])
@pytest.mark.parametrize("prefix", FAMILIES_INSTEAD)
def test_a_family_of_options_is_refused_with_what_takes_its_place(
    read: Callable[[Mapping[str, str]], Any], prefix: str
) -> None:
    with pytest.raises(BadOption) as raised:
        read({**URL, f"{prefix}subscriptionName": "s"})
    assert str(raised.value).endswith(f". In its place: {FAMILIES_INSTEAD[prefix]}")


@pytest.mark.parametrize(("name", "value"), [(name, one.harmless) for name, one in INSTEAD.items() if one.harmless])
@pytest.mark.parametrize("read", [SourceOptions.of, SinkOptions.of])
def test_a_replaced_option_that_asks_for_nothing_is_accepted(
    read: Callable[[Mapping[str, str]], Any], name: str, value: str
) -> None:
    assert read({**URL, name: value.title()}) == read(URL)


@pytest.mark.parametrize("read", [SourceOptions.of, SinkOptions.of])
def test_options_without_effect_are_accepted_in_any_case(read: Callable[[Mapping[str, str]], Any]) -> None:
    assert read({**URL, **{name.lower(): "7" for name in NO_EFFECT}}) == read(URL)


def test_one_warning_names_all_options_without_effect(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        made = PulsarDataSource(
            {**URL, "PULSAR.CLIENT.NUMIOTHREADS": "4", "pulsar.reader.readerName": "r", "admin.url": "http://h"}
        )
        made._reading()
    [record] = caplog.records
    assert record.getMessage().endswith(
        " without effect here: pulsar.client.numIoThreads (a task has one thread for its connections); "
        "pulsar.reader.readerName (tasks read without a name)"
    )


def test_options_that_work_give_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    PulsarDataSource({**URL, "pulsar.client.keepAliveIntervalSeconds": "30"})
    assert caplog.records == []


@pytest.mark.parametrize("name", ["startingOffsets", "topics", "maxMessagesPerTrigger", "pulsar.reader.readername"])
def test_an_option_of_reading_is_refused_on_a_write(name: str) -> None:
    source = PulsarDataSource({**URL, name: "1"})
    for write in (source.writer, source.streamWriter):
        with pytest.raises(BadOption) as raised:
            write(ROWS, False)
        assert str(raised.value) == f'option "{name}" is for spark.read and spark.readStream: remove it here'


@pytest.mark.parametrize("name", ["schemaType", "deduplication", "pulsar.producer.batchingenabled"])
def test_an_option_of_writing_is_refused_on_a_read(name: str) -> None:
    source = PulsarDataSource({**URL, name: "1"})
    for read in (source.schema, lambda: source.reader(ROWS), lambda: source.streamReader(ROWS)):
        with pytest.raises(BadOption) as raised:
            read()
        assert str(raised.value) == f'option "{name}" is for df.write and df.writeStream: remove it here'


def test_what_both_directions_use_belongs_to_neither() -> None:
    assert not (ONLY_READ | ONLY_WRITTEN) & {"topic", "admin.url", *(each.name for each in CONNECTION)}


@pytest.mark.parametrize(("url", "flag"), [("pulsar://h:1", "false"), ("pulsar+ssl://h:1", "TRUE")])
def test_use_tls_is_accepted_where_it_says_what_the_scheme_says(url: str, flag: str) -> None:
    given = {"service.url": url}
    assert ConnectionOptions.of(Options(given | {f"{CLIENT}useTls": flag})) == ConnectionOptions.of(Options(given))


@pytest.mark.parametrize(
    ("url", "flag", "write"),
    [("pulsar://h:1", "true", "pulsar+ssl://host:6651 for TLS"), ("pulsar+ssl://h:1", "false", "pulsar://host:6650")],
)
def test_use_tls_that_contradicts_the_scheme_is_refused(url: str, flag: str, write: str) -> None:
    with pytest.raises(BadOption, match=re.escape(write)):
        ConnectionOptions.of(Options({"service.url": url, f"{CLIENT}useTls": flag}))


def test_key_stores_of_an_authentication_become_pem() -> None:
    with pytest.raises(BadOption, match=re.escape(KEY_STORE)):
        ConnectionOptions.of(Options(URL | {f"{CLIENT}authPluginClassName": "org.AuthenticationKeyStoreTls"}))


def test_calls_of_the_rest_api_have_options_of_their_own() -> None:
    given = {f"{CLIENT}authPluginClassName": "AuthenticationToken", f"{CLIENT}authParams": "token:client"}
    of_admin = {f"{ADMIN}authParams": "token:admin", f"{ADMIN}tlsTrustCertsFilePath": "/ca.pem"}
    made = ConnectionOptions.of(Options(URL | given | of_admin))
    assert made.admin is not None
    assert (made.auth_params, made.trust_certs) == ("token:client", None)
    assert (made.admin.auth_params, made.admin.trust_certs) == ("token:admin", "/ca.pem")
    assert made.admin.auth_plugin == "AuthenticationToken"
    assert ConnectionOptions.of(Options(URL | given)).admin is None

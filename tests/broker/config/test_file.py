"""broker.conf files and --set.

Java properties. The expected values are those that java.util.Properties read from the same bytes. The keys of a file
that ask for something that Pulsarium does not have.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.config import PIP, PROFILES, PULSAR_4_2, Config, ConfigError, LoadedConfig, Profile, load
from pulsarium.broker.config.file import PropertiesError, parse
from pulsarium.broker.config.keys import APPEND_BROKER_TIMESTAMP, APPEND_INDEX, documented_keys
from pulsarium.broker.config.missing import FOREIGN_CLASS, KEYS, missing
from pulsarium.broker.config.pulsar_keys import PULSAR_KEYS, releases_of

# The settings of the broker that the transcripts were recorded with.
RECORDED = f"""\
# To give this file to another broker, drop the two port lines or render them.
bindAddress=127.0.0.1
advertisedAddress=localhost
clusterName=standalone
brokerEntryMetadataInterceptors={APPEND_BROKER_TIMESTAMP},{APPEND_INDEX}
exposingBrokerEntryMetadataToClientEnabled=true
acknowledgmentAtBatchIndexLevelEnabled=true
transactionCoordinatorEnabled=true
forceDeleteTenantAllowed=true
forceDeleteNamespaceAllowed=true
brokerDeleteInactiveTopicsEnabled=false
systemTopicEnabled=true
topicLevelPoliciesEnabled=true
delayedDeliveryEnabled=true
allowAutoTopicCreation=true
allowAutoTopicCreationType=non-partitioned
allowAutoSubscriptionCreation=true
defaultNumberOfNamespaceBundles=4
managedLedgerDefaultEnsembleSize=1
managedLedgerDefaultMarkDeleteRateLimit=0.1
loadManagerClassName=org.apache.pulsar.broker.loadbalance.NoopLoadManager
nettyMaxFrameSizeBytes=5253120
"""


def loaded(tmp_path: Path, text: str, *overrides: str) -> LoadedConfig:
    path = tmp_path / "broker.conf"
    path.write_bytes(text.encode("latin-1"))
    return load(path, overrides, PULSAR_4_2)


def refused(tmp_path: Path, text: str, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text, *overrides)
    return str(caught.value).replace(str(tmp_path), "TMP")


def test_nothing_asked_for_is_the_stock_broker() -> None:
    assert load(None, (), PULSAR_4_2) == LoadedConfig(Config())


@pytest.mark.parametrize("text", ["", "clusterName=c\n", "transactionCoordinatorEnabled=\n"])
def test_a_key_that_is_not_set_has_the_value_of_the_profile(text: str, tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(text)
    assert load(path, (), PIP).config.transactionCoordinatorEnabled
    assert not load(path, (), PULSAR_4_2).config.transactionCoordinatorEnabled


def test_a_set_key_wins_over_the_profile(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("transactionCoordinatorEnabled=false\n")
    assert not load(path, (), PIP).config.transactionCoordinatorEnabled
    assert not load(None, ["transactionCoordinatorEnabled=false"], PIP).config.transactionCoordinatorEnabled
    assert load(path, ["transactionCoordinatorEnabled=true"], PULSAR_4_2).config.transactionCoordinatorEnabled


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_the_defaults_of_a_profile_are_keys_that_the_page_shows(profile: Profile) -> None:
    assert dict(profile.defaults).keys() <= documented_keys().keys()
    assert bool(profile.defaults) is (profile.name not in ("pulsar-5.0-m1", "pulsar-4.2", "pulsar-4.1"))


def test_the_settings_of_the_recorded_broker_are_read(tmp_path: Path) -> None:
    config, ignored, places, *told = loaded(tmp_path, RECORDED)
    assert config == Config(
        advertisedAddress="localhost",
        brokerEntryMetadataInterceptors=(APPEND_BROKER_TIMESTAMP, APPEND_INDEX),
        exposingBrokerEntryMetadataToClientEnabled=True,
        forceDeleteTenantAllowed=True,
        forceDeleteNamespaceAllowed=True,
        brokerDeleteInactiveTopicsEnabled=False,
        managedLedgerDefaultMarkDeleteRateLimit=0.1,
        transactionCoordinatorEnabled=True,
    )
    assert config.appends_index
    assert config.appends_broker_timestamp
    assert {"managedLedgerDefaultEnsembleSize", "loadManagerClassName", "nettyMaxFrameSizeBytes"} <= set(ignored)
    assert not set(ignored) & set(documented_keys())
    assert told == [(), (), ()]
    assert places["clusterName"].endswith("broker.conf:4")


def test_every_ignored_key_is_named_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = "zookeeperServers=1\nbookieId=\nclusterName=c\nzookeeperServers=2\n"
    found = loaded(tmp_path, text)
    assert (found.ignored, found.unknown) == (("zookeeperServers", "bookieId"), ())


def test_a_key_that_pulsar_does_not_have_either_is_told_with_what_was_meant(tmp_path: Path) -> None:
    text = "brokerServicePrt=1\nmine=2\nbookkeeper_mine=3\nloadManagerClasName=4\nmine=5\n"
    found = loaded(tmp_path, text)
    assert found.ignored == ("bookkeeper_mine",)
    assert [each.replace(str(tmp_path), "TMP") for each in found.unknown] == [
        "brokerServicePrt (TMP/broker.conf:1; did you mean brokerServicePort or brokerServicePortTls?)",
        "mine (TMP/broker.conf:2)",
        "loadManagerClasName (TMP/broker.conf:4; did you mean loadManagerClassName?)",
    ]


def test_every_key_that_is_honoured_is_one_of_pulsar_but_for_our_own() -> None:
    proposed = {name for name, key in documented_keys().items() if key.meaning.proposal}
    own = set(documented_keys()) - PULSAR_KEYS.keys() - proposed
    assert own == {"httpAllowedHosts", "maxHttpServerConnectionsPerIp"}


@pytest.mark.parametrize("text", ["\x7fELF\x02\x01\x01\x00\x00", "c\x00l\x00u\x00"])
def test_a_binary_file_is_refused(text: str, tmp_path: Path) -> None:
    said = refused(tmp_path, text)
    assert said == "--config TMP/broker.conf: is a binary file; broker.conf is a text file with key=value on each line"


BLANK = "advertisedAddress=\nbrokerServicePort=  \nsubscriptionTypesEnabled=\nallowAutoTopicCreation\nclusterName=\t\n"
KINDS = """
    allowAutoTopicCreation : FALSE
    brokerServicePort +1234
    managedLedgerDefaultMarkDeleteRateLimit = 1e1
    subscriptionTypesEnabled = Shared , Exclusive,,Shared
    allowAutoTopicCreationType = partitioned
    connectionLivenessCheckTimeoutMillis = 9000000000
    keepAliveIntervalSeconds = -1
"""


@pytest.mark.parametrize(
    ("text", "overrides", "config"),
    [
        (BLANK, [], Config()),
        ("clusterName=a\nclusterName=b\n", [], Config(clusterName="b")),
        ("clusterName=a\nclusterName=\n", [], Config()),
        (
            "maxProducersPerTopic=1\n",
            ["maxProducersPerTopic=2", " maxProducersPerTopic = 3 "],
            Config(maxProducersPerTopic=3),
        ),
        ("maxProducersPerTopic=1\n", ["maxProducersPerTopic="], Config()),
        ("", ["clusterName=a=b"], Config(clusterName="a=b")),
        ("# 4m\xef\xbc\x8cdefault\nclusterName=c\n", [], Config(clusterName="c")),
        (
            KINDS,
            [],
            Config(
                allowAutoTopicCreation=False,
                brokerServicePort=1234,
                managedLedgerDefaultMarkDeleteRateLimit=10.0,
                subscriptionTypesEnabled=frozenset({"Shared", "Exclusive"}),
                allowAutoTopicCreationType="partitioned",
                connectionLivenessCheckTimeoutMillis=9_000_000_000,
                keepAliveIntervalSeconds=-1,
            ),
        ),
    ],
    ids=["blank", "last", "last blank", "set", "set blank", "equals sign", "any encoding", "every kind"],
)
def test_the_last_value_of_file_and_set_counts(text: str, overrides: list[str], config: Config, tmp_path: Path) -> None:
    assert loaded(tmp_path, text, *overrides).config == config


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("allowAutoTopicCreation=yes", "'yes' is neither true nor false"),
        ("brokerServicePort=abc", "'abc' is not a whole number from 0 to 65535"),
        ("brokerServicePort=65536", "'65536' is not a whole number from 0 to 65535"),
        ("brokerServicePort=6_650", "'6_650' is not a whole number from 0 to 65535"),
        ("brokerServicePort=٦٦٥٠", None),
        ("maxProducersPerTopic=7.0", "'7.0' is not a whole number from -2147483648 to 2147483647"),
        ("maxProducersPerTopic=2147483648", "'2147483648' is not a whole number from -2147483648 to 2147483647"),
        ("maxMessageSize=0", "'0' is not a whole number from 1 to 2147473407"),
        ("managedLedgerDefaultMarkDeleteRateLimit=-0.1", "'-0.1' is not a number of at least 0"),
        ("managedLedgerDefaultMarkDeleteRateLimit=NaN", "'NaN' is not a number of at least 0"),
        ("managedLedgerDefaultMarkDeleteRateLimit=inf", "'inf' is not a number of at least 0"),
        ("managedLedgerDefaultMarkDeleteRateLimit=1_0", "'1_0' is not a number of at least 0"),
        ("managedLedgerDefaultMarkDeleteRateLimit=fast", "'fast' is not a number of at least 0"),
        ("allowAutoTopicCreationType=Partitioned", "'Partitioned' is not one of partitioned, non-partitioned"),
        ("subscriptionTypesEnabled=Shared,shared", "'shared' is not one of Exclusive, Shared, Failover, Key_Shared"),
        ("brokerEntryMetadataInterceptors=Index", f"'Index' is not one of {APPEND_BROKER_TIMESTAMP}, {APPEND_INDEX}"),
        ("advertisedListeners=a:b", "'a:b' is not name:pulsar://host:port (or pulsar+ssl, http, https)"),
    ],
)
def test_an_invalid_value_names_key_line_and_what_is_accepted(line: str, reason: str | None, tmp_path: Path) -> None:
    key, _, value = line.partition("=")
    if reason is None:  # digits of another script, which int() accepts; a file holds them as escapes
        value = "".join(f"\\u{ord(digit):04x}" for digit in value)
        reason = "'٦٦٥٠' is not a whole number from 0 to 65535"
    assert refused(tmp_path, f"# comment\n\n{key} = {value}\n") == f"TMP/broker.conf:3: {key}: {reason}"


def test_a_long_value_is_shown_in_part(tmp_path: Path) -> None:
    assert len(refused(tmp_path, f"brokerServicePort={'9' * 10_000}")) < 200


def test_an_invalid_value_of_set_is_refused(tmp_path: Path) -> None:
    message = refused(tmp_path, "brokerServicePort=1\n", "brokerServicePort=x")
    assert message == "--set: brokerServicePort: 'x' is not a whole number from 0 to 65535"


@pytest.mark.parametrize("override", ["clusterName", "", "=x", "  = "])
def test_set_wants_key_and_value(override: str) -> None:
    with pytest.raises(ConfigError, match="is not key=value"):
        load(None, [override])


def test_set_refuses_a_key_that_has_no_effect_here() -> None:
    with pytest.raises(ConfigError, match=r"^--set: zookeeperServers: Pulsarium does not have this key of Pulsar"):
        load(None, ["zookeeperServers=x"])


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        ("brokerServicPort=1", "did you mean brokerServicePort"),
        ("CLUSTERNAME=x", "did you mean clusterName?"),
        ("frobnicate=x", "Pulsar does not have it either"),
    ],
)
def test_set_of_an_unknown_key_hints_at_a_known_one(override: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, [override])
    assert str(caught.value).startswith(f"--set: {override.partition('=')[0]}: no such key")
    assert hint in str(caught.value)


def test_a_namespace_has_65536_bundles_at_most_by_default() -> None:
    assert load(None, ["defaultNumberOfNamespaceBundles=65536"]).config.defaultNumberOfNamespaceBundles == 65536
    with pytest.raises(ConfigError, match="65537"):
        load(None, ["defaultNumberOfNamespaceBundles=65537"])


def test_a_broken_escape_names_the_line(tmp_path: Path) -> None:
    assert refused(tmp_path, "a=1\nb=\\u12\n") == "TMP/broker.conf:2: a \\u must have four hexadecimal digits after it"


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.conf: cannot be read: No such file"):
        load(tmp_path / "nowhere.conf")


@pytest.mark.parametrize(
    ("listeners", "internal", "message"),
    [
        ("a:pulsar://h:1,b:pulsar://g:2", "b", None),
        ("a:pulsar://h:1", "", None),
        ("", "internal", None),
        ("a:pulsar://h:1", "c", "'c' is not a listener of advertisedListeners (a)"),
    ],
)
def test_the_internal_listener_is_one_of_the_listeners(
    listeners: str, internal: str, message: str | None, tmp_path: Path
) -> None:
    text = f"advertisedListeners={listeners}\ninternalListenerName={internal}\n"
    if message is None:
        assert loaded(tmp_path, text).config.internalListenerName == internal
    else:
        assert refused(tmp_path, text) == f"TMP/broker.conf:2: internalListenerName: {message}"


def test_a_secret_is_in_no_error_and_in_no_text_of_the_settings(tmp_path: Path) -> None:
    config = loaded(tmp_path, "tokenSecretKey=hush\nbasicAuthConf=me:hush\n").config
    assert (config.tokenSecretKey, config.basicAuthConf) == ("hush", "me:hush")
    assert "hush" not in repr(config)
    assert "hush" not in refused(tmp_path, "", "tokenSecretKey:hush")


def pairs(text: str) -> list[tuple[str, str]]:
    return [(setting.key, setting.value) for setting in parse(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\n  \n\t\f\n", []),
        ("# a=1\n ! b=2\n", []),
        ("a=1", [("a", "1")]),
        ("a=1\r\nb=2\rc=3\n", [("a", "1"), ("b", "2"), ("c", "3")]),
        ("  a  =  1  \n", [("a", "1  ")]),
        ("a:1\nb 2\nc\t:\t3\n", [("a", "1"), ("b", "2"), ("c", "3")]),
        ("a=\nb\nc:\n", [("a", ""), ("b", ""), ("c", "")]),
        ("a==1\nb=:2\nc = = 3\n", [("a", "=1"), ("b", ":2"), ("c", "= 3")]),
        ("a=1#2!3\n", [("a", "1#2!3")]),
        ("a=1,\\\n    2,\\\r\n\t3\nb=4", [("a", "1,2,3"), ("b", "4")]),
        ("a=1\\\n# no comment\n", [("a", "1# no comment")]),
        ("a=1\\\n\nb=2\n", [("a", "1"), ("b", "2")]),
        ("# comment \\\na=1\n", [("a", "1")]),
        ("\\\n# comment\na=1\n", [("a", "1")]),
        ("a=1\\\\\nb=2\n", [("a", "1\\"), ("b", "2")]),
        ("a=1\\", [("a", "1")]),
        ("a\\=b\\:c\\ d=1\n", [("a=b:c d", "1")]),
        ("a=\\t\\n\\r\\f\\q\\\\\n", [("a", "\t\n\r\fq\\")]),
        ("a=C:\\temp\n", [("a", "C:\temp")]),
        ("\\u0061=\\u00e9\\u20AC\n", [("a", "é€")]),
        ("a=é\n", [("a", "é")]),
        ("a=1\na=2\n", [("a", "1"), ("a", "2")]),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, expected: list[tuple[str, str]]) -> None:
    assert pairs(text) == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "a=\\u 123", "\\u=1", "a=\\u٠٠٠٠"])
def test_a_unicode_escape_wants_four_digits(text: str) -> None:
    with pytest.raises(PropertiesError) as caught:
        parse(f"# first\n\n{text}")
    assert caught.value.line == 3


def test_a_setting_stands_where_its_key_does() -> None:
    settings = parse("# 1\na=1,\\\n  2\n\nb=3\r\nc=4")
    assert [(setting.key, setting.line) for setting in settings] == [("a", 2), ("b", 5), ("c", 6)]


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


latin = st.text(st.characters(max_codepoint=255), max_size=8)


@given(st.lists(st.tuples(latin.filter(bool), latin), max_size=4))
def test_text_that_is_escaped_comes_back(written: list[tuple[str, str]]) -> None:
    assert pairs("\n".join(f"{escaped(key)}={escaped(value)}" for key, value in written)) == written


@given(st.text(st.sampled_from("ab=: \t\f\\\n\r#!"), max_size=20))
def test_no_text_without_a_unicode_escape_is_wrong(text: str) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    numbers = [setting.line for setting in parse(text)]
    assert numbers == sorted(set(numbers))
    assert all(1 <= number <= lines for number in numbers)


@pytest.mark.parametrize("row", KEYS, ids=lambda row: row.key)
def test_a_row_is_a_key_of_pulsar_without_effect_whose_default_asks_for_nothing(row: object) -> None:
    assert isinstance(row, tuple)
    key, default, lost, also = row
    assert releases_of(key) is not None
    assert key not in documented_keys()
    assert list(missing({key: default})) == list(missing({key: " "})) == list(missing({key: also})) == []
    assert list(missing({key: "something"})) == [(key, lost)]


@pytest.mark.parametrize(
    ("value", "asks"), [("kafka", True), ("", False), ("  ", False)], ids=["another", "empty", "blank"]
)
def test_a_value_other_than_pulsars_default_is_told_with_what_does_not_work(
    value: str, asks: bool, tmp_path: Path
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(f"messagingProtocols=mqtt\nenableBusyWait=true\nmessagingProtocols={value}\n")
    found = load(file)
    why = "there are no protocol handlers: clients of Kafka, MQTT or AMQP cannot connect"
    assert found.missing == ((("messagingProtocols", why),) if asks else ())
    assert found.ignored == (("enableBusyWait",) if asks else ("messagingProtocols", "enableBusyWait"))


def test_true_and_false_are_read_in_any_case() -> None:
    assert [key for key, _ in missing({"functionsWorkerEnabled": "FALSE", "enablePackagesManagement": "True"})] == [
        "enablePackagesManagement"
    ]


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("tlsFactoryClassName", "TLS is Python's own"),
        ("tlsFactoryConfig", "TLS is Python's own"),
        ("jsseProvider", "TLS is Python's own"),
        ("jcaProvider", "TLS is Python's own"),
        ("brokerClientTlsFactoryClassName", "the broker opens no connections to other brokers"),
        ("brokerClientTlsFactoryConfig", "the broker opens no connections to other brokers"),
        ("brokerClientJsseProvider", "the broker opens no connections to other brokers"),
        ("brokerClientJcaProvider", "the broker opens no connections to other brokers"),
    ],
)
def test_keys_of_tls_factories_are_reported_and_cannot_be_set(tmp_path: Path, key: str, why: str) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(f"{key}=com.example.Own\n")
    ((name, lost),) = load(file, profile=PROFILES["pulsar-5.0"]).missing
    assert (name, lost.startswith(why)) == (key, True)
    with pytest.raises(ConfigError, match=f"{key}: Pulsarium does not have this key of Pulsar: {why}"):
        load(None, [f"{key}=x"], PROFILES["pulsar-5.0"])
    file.write_text(f"{key}=\n")
    assert load(file, profile=PROFILES["pulsar-5.0"]).missing == ()


@pytest.mark.parametrize(
    ("value", "foreign"),
    [
        ("org.apache.pulsar.broker.loadbalance.NoopLoadManager", False),
        ("", False),
        ("org.apache.pulsar.A, org.apache.bookkeeper.B", False),
        ("org.apache.pulsar.A,com.acme.B", True),
    ],
)
@pytest.mark.parametrize("key", ["loadManagerClassName", "schemaRegistryCompatibilityCheckers", "sslFactoryPlugin"])
def test_a_class_that_is_not_pulsars_own_does_not_run(key: str, value: str, foreign: bool) -> None:
    assert list(missing({key: value})) == ([(key, FOREIGN_CLASS)] if foreign else [])

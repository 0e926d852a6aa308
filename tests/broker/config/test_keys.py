"""Keys of broker.conf, one by one.

Settings that change while brokers run. advertisedListeners, with cases that the released broker has answered.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from pulsarium.broker.config import Config, load, profile_of
from pulsarium.broker.config.dynamic import DynamicSettings
from pulsarium.broker.config.keys import APPEND_INDEX, documented_keys
from pulsarium.broker.config.listeners import Listener, parse_listeners
from pulsarium.broker.config.proposals import PROPOSALS
from pulsarium.broker.model.namespace.metadata import Records
from tests.broker.model.stores import Paths

KEYS = list(documented_keys().values())


def written(default: Any) -> str:
    return ",".join(sorted(default)) if isinstance(default, frozenset | tuple) else str(default)


def test_every_key_has_a_meaning_in_one_line() -> None:
    assert [key.name for key in KEYS if not re.fullmatch(r"[^\n]*[^\n.]", key.meaning.doc)] == []


def test_every_type_can_be_read() -> None:
    readable = {bool, int, int | None, float, float | None, str, str | None, frozenset[str], tuple[str, ...]}
    assert {key.type for key in KEYS} <= readable


def test_every_default_that_is_written_in_a_file_is_read_again() -> None:
    defaults = {key.name: key.default for key in KEYS if key.default not in (None, "")}
    profile = profile_of("pip", pip=PROPOSALS)
    config = load(None, [f"{name}={written(default)}" for name, default in defaults.items()], profile).config
    read = {name: getattr(config, name) for name in defaults}
    assert read == defaults
    assert [name for name in defaults if type(read[name]) is not type(defaults[name])] == []


@pytest.mark.req("S423-62")
def test_skipping_messages_has_no_key_of_its_own() -> None:
    """Pulsar's key with "skip" in its name is about damaged entries."""
    assert [key.name for key in KEYS if "skip" in key.name.lower()] == ["autoSkipNonRecoverableData"]


@pytest.mark.req("S423-62", "S423-68", "S423-69", "S423-71")
def test_the_keys_that_govern_kept_cursors_have_pulsars_defaults() -> None:
    config = Config()
    assert config.managedLedgerMaxUnackedRangesToPersist == 10_000
    assert config.managedLedgerMaxBatchDeletedIndexToPersist == 10_000
    assert config.managedLedgerPersistIndividualAckAsLongArray is True
    assert config.managedLedgerUnackedRangesOpenCacheSetEnabled is True
    assert config.managedLedgerMaxUnackedRangesToPersistInMetadataStore == 1_000
    assert (config.managedCursorInfoCompressionType, config.managedLedgerInfoCompressionType) == ("NONE", "NONE")
    assert config.managedCursorInfoCompressionThresholdInBytes == 16_384
    assert config.managedLedgerInfoCompressionThresholdInBytes == 16_384


def test_the_key_of_messages_sets_the_frame_limit() -> None:
    assert Config().max_frame_size == 5_253_120
    assert Config(maxMessageSize=1_000).max_frame_size == 11_240


def test_interceptors_are_off_unless_named() -> None:
    assert not Config().appends_index
    config = Config(brokerEntryMetadataInterceptors=(APPEND_INDEX,))
    assert config.appends_index
    assert not config.appends_broker_timestamp


def test_a_config_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().clusterName = "other"  # type: ignore[misc]


def test_a_setting_changes_and_comes_back() -> None:
    start = Config(defaultNumPartitions=3)
    settings = DynamicSettings(start, Records(Paths()))
    config = settings.config
    settings.put("defaultNumPartitions", "5")
    settings.put("defaultNumPartitions", "7")
    assert (config.defaultNumPartitions, start.defaultNumPartitions) == (7, 3)
    with pytest.raises(FrozenInstanceError):
        config.defaultNumPartitions = 9  # type: ignore[misc]
    settings.forget("defaultNumPartitions")
    assert config.defaultNumPartitions == 3
    settings.forget("defaultNumPartitions")
    assert (config.defaultNumPartitions, settings.values) == (3, {})


def test_a_dynamic_value_that_cannot_be_read_changes_nothing() -> None:
    settings = DynamicSettings(Config(), Records(Paths()))
    settings.put("defaultNumPartitions", "many")
    assert (settings.config.defaultNumPartitions, settings.values) == (1, {"defaultNumPartitions": "many"})


def test_a_dynamic_setting_that_is_unknown_here_is_kept() -> None:
    settings = DynamicSettings(Config(), Records(Paths()))
    settings.put("loadBalancerDebugModeEnabled", "true")
    assert settings.values == {"loadBalancerDebugModeEnabled": "true"}


def test_dynamic_settings_that_were_changed_hold_from_the_start() -> None:
    store = Paths()
    DynamicSettings(Config(), Records(store)).put("allowAutoTopicCreation", "false")
    records = Records(store)
    for path, value in store.items():
        records.recover(path, value)
    assert not DynamicSettings(Config(), records).config.allowAutoTopicCreation


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" , ", {}),
        ("internal:pulsar://h:6650", {"internal": Listener(pulsar="pulsar://h:6650")}),
        (
            "a:pulsar://h:1,a:pulsar+ssl://h:2,a:http://h:3,a:https://h:4",
            {"a": Listener("pulsar://h:1", "pulsar+ssl://h:2", "http://h:3", "https://h:4")},
        ),
        (
            " a : pulsar://h:1 , b:http://h:8080 ",
            {"a": Listener(pulsar="pulsar://h:1"), "b": Listener(http="http://h:8080")},
        ),
        ("a:pulsar://[::1]:1,", {"a": Listener(pulsar="pulsar://[::1]:1")}),
    ],
)
def test_listeners_are_read(text: str, expected: dict[str, Listener]) -> None:
    assert parse_listeners(text) == expected
    assert list(parse_listeners(text)) == list(expected)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("a:pulsar://h:1,pulsar://h:2", "'pulsar://h:2' is not name:"),
        (":pulsar://h:1", "':pulsar://h:1' is not name:"),
        ("a:h:1", "'a:h:1' is not name:"),
        ("a:ftp://h:1", "'a:ftp://h:1' is not name:"),
        ("a:pulsar://", "'a:pulsar://' is not name:"),
        ("a:pulsar://h:1,a:pulsar://h:2", "'a:pulsar://h:2' is a second pulsar URL of the listener 'a'"),
        ("a:pulsar://h:1,b:pulsar://h:1", "'b:pulsar://h:1' has the address of the listener 'a'"),
    ],
)
def test_a_wrong_listener_is_named(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match="^" + wrong.replace("+", r"\+")):
        parse_listeners(text)

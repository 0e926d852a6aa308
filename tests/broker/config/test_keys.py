"""Keys of broker.conf, one by one."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from pulsarium.broker.config import Config, load
from pulsarium.broker.config.keys import APPEND_INDEX, documented_keys

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
    config = load(None, [f"{name}={written(default)}" for name, default in defaults.items()]).config
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

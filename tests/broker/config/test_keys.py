"""What Config says of itself."""

from __future__ import annotations

import dataclasses

import pytest

from pulsarium.broker.config import Config, load
from pulsarium.broker.config.keys import APPEND_INDEX, Key, documented_keys

KEYS = list(documented_keys().values())


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_key_has_a_meaning_in_one_line(key: Key) -> None:
    assert key.meaning.doc
    assert "\n" not in key.meaning.doc
    assert not key.meaning.doc.endswith(".")


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_default_can_be_written_in_a_file(key: Key) -> None:
    if key.default is None or key.default == "":
        return
    text = ",".join(sorted(key.default)) if isinstance(key.default, frozenset | tuple) else str(key.default)
    config = load(None, [f"{key.name}={text}"]).config
    assert getattr(config, key.name) == key.default
    assert type(getattr(config, key.name)) is type(key.default)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_type_can_be_read(key: Key) -> None:
    assert key.type in (bool, int, int | None, float, float | None, str, str | None, frozenset[str], tuple[str, ...])


@pytest.mark.req("S423-62")
def test_skipping_messages_has_no_key_of_its_own() -> None:
    """Pulsar's one is about what is damaged."""
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


def test_the_frame_limit_follows_the_message_limit() -> None:
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

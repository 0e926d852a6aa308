"""Settings that change while brokers run."""

from __future__ import annotations

from pulsarium.broker.config import Config
from pulsarium.broker.config.dynamic import DynamicSettings
from pulsarium.broker.model.namespace.metadata import Records
from tests.broker.model.stores import Paths


def test_a_setting_changes_and_comes_back() -> None:
    config = Config(defaultNumPartitions=3)
    settings = DynamicSettings(config, Records(Paths()))
    settings.put("defaultNumPartitions", "5")
    settings.put("defaultNumPartitions", "7")
    assert config.defaultNumPartitions == 7
    settings.forget("defaultNumPartitions")
    assert config.defaultNumPartitions == 3
    settings.forget("defaultNumPartitions")
    assert (config.defaultNumPartitions, settings.values) == (3, {})


def test_a_dynamic_value_that_cannot_be_read_changes_nothing() -> None:
    config = Config()
    settings = DynamicSettings(config, Records(Paths()))
    settings.put("defaultNumPartitions", "many")
    assert (config.defaultNumPartitions, settings.values) == (1, {"defaultNumPartitions": "many"})


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
    config = Config()
    DynamicSettings(config, records)
    assert not config.allowAutoTopicCreation

"""The policies of a namespace as one object."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.config.keys import MOST_BUNDLES
from pulsarium.broker.model.namespace.policies import (
    DEFAULTS,
    is_readable,
    read_bundles,
    read_policies,
    whole_policies,
)


def test_what_is_kept_comes_between_defaults_in_pulsars_order() -> None:
    kept = {"migrated": True, "persistence": {"bookkeeperEnsemble": 1}, "properties": {"a": "b"}}
    shown = whole_policies(kept, Config(defaultNumberOfNamespaceBundles=2))
    assert list(shown) == [name for name in DEFAULTS if name in shown]
    assert shown | kept == shown
    assert shown["bundles"]["numBundles"] == 2
    assert "retention_policies" not in shown


def test_what_pulsar_does_not_know_is_not_kept() -> None:
    assert read_policies({"deleted": True, "unknown": 1, "persistence": None}) == {"deleted": True}


@pytest.mark.parametrize(
    ("name", "value", "readable"),
    [
        ("message_ttl_in_seconds", 5, True),
        ("message_ttl_in_seconds", "x", False),
        ("retention_policies", {}, True),
        ("retention_policies", [], False),
        ("replication_clusters", ["a"], True),
        ("replication_clusters", [1], False),
        ("deduplicationEnabled", True, True),
        ("deduplicationEnabled", {}, False),
        ("deleted", "x", False),
        ("subscription_auth_mode", "Prefix", True),
        ("resource_group_name", "x", True),
        ("resource_group_name", {}, False),
        ("unknown", object(), True),
        ("persistence", None, True),
    ],
)
def test_policies_are_readable_by_their_kind(name: str, value: Any, readable: bool) -> None:
    assert is_readable(name, value) is readable


@pytest.mark.parametrize(
    "sent",
    [
        {"numBundles": MOST_BUNDLES + 1},
        {"boundaries": ["0x00000000", "0x80000000"]},
        {"boundaries": ["0x1", "0xffffffff"]},
        {"boundaries": "0x00000000"},
        {"boundaries": ["nothing"]},
        {"boundaries": ["-0x1", "0xffffffff"]},
    ],
)
def test_bundles_that_make_no_sense_are_refused(sent: Any) -> None:
    with pytest.raises(ValueError, match="bundles"):
        read_bundles(sent, 4)


@pytest.mark.parametrize("sent", [None, "x", {}, {"numBundles": "x"}, {"numBundles": 0}, {"boundaries": []}])
def test_bundles_that_are_not_said_are_the_default(sent: Any) -> None:
    assert read_bundles(sent, 4)["numBundles"] == 4

"""Subscription types as test parameters."""

from __future__ import annotations

import pulsar
import pytest

on_shared_types = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(pulsar.ConsumerType.Shared, id="Shared"),
        pytest.param(pulsar.ConsumerType.KeyShared, id="Key_Shared", marks=pytest.mark.heavy),
    ],
)
"""Shared, and Key_Shared in the heavy suite: test_key_shared.py checks which consumer gets a message."""

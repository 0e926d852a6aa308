"""Stores whose commit thread writes every batch, because tests hold that thread at persist points."""

from __future__ import annotations

import pytest

from pulsarium.broker.storage import applier, pace


@pytest.fixture(autouse=True)
def thread_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "FAST_BYTES", -1)
    monkeypatch.setattr(applier, "SOON_SECONDS", 0)

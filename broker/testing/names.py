"""Run a broker inside a test, in its own thread, with its lab and assertions.

The fixtures are in `pulsarium.broker.testing.pytest_plugin`.
"""

from __future__ import annotations

from pulsarium.broker.config import ConfigError
from pulsarium.broker.lab.faults import (
    Action,
    Answer,
    Close,
    Corrupt,
    Delay,
    Drop,
    Duplicate,
    FaultError,
    FaultRemoved,
    Reorder,
    Stall,
    TappedFrame,
    Truncate,
    WrongRequestId,
)
from pulsarium.broker.lab.masks import Mask, MaskError
from pulsarium.broker.lab.steering import ClockError
from pulsarium.broker.lab.why import Why, WhyError
from pulsarium.broker.testing.broker import PulsarBroker
from pulsarium.broker.testing.checker import BrokerChecker
from pulsarium.broker.testing.faults import NamespaceFaults
from pulsarium.broker.testing.lab import (
    BrokerCapture,
    BrokerCaptures,
    BrokerClock,
    BrokerLinter,
    BrokerMask,
    BrokerMasks,
    BrokerNamespaceClock,
    FaultRule,
    FaultRules,
)
from pulsarium.broker.testing.linter import CaptureLinter
from pulsarium.broker.testing.remote import NotOverHttp, RemoteBroker
from pulsarium.broker.testing.starting import Running, running
from pulsarium.broker.testing.thread import BrokerEnded

__all__ = [
    "Action",
    "Answer",
    "BrokerCapture",
    "BrokerCaptures",
    "BrokerChecker",
    "BrokerClock",
    "BrokerEnded",
    "BrokerLinter",
    "BrokerMask",
    "BrokerMasks",
    "BrokerNamespaceClock",
    "CaptureLinter",
    "ClockError",
    "Close",
    "ConfigError",
    "Corrupt",
    "Delay",
    "Drop",
    "Duplicate",
    "FaultError",
    "FaultRemoved",
    "FaultRule",
    "FaultRules",
    "Mask",
    "MaskError",
    "NamespaceFaults",
    "NotOverHttp",
    "PulsarBroker",
    "RemoteBroker",
    "Reorder",
    "Running",
    "Stall",
    "TappedFrame",
    "Truncate",
    "Why",
    "WhyError",
    "WrongRequestId",
    "running",
]

"""Faults: rules that select frames of clients and brokers, and act on them."""

from pulsarium.broker.lab.faults.actions import (
    ACTIONS,
    Action,
    Answer,
    Close,
    Corrupt,
    Delay,
    Drop,
    Duplicate,
    Observe,
    Reorder,
    Stall,
    Truncate,
    WrongRequestId,
)
from pulsarium.broker.lab.faults.faults import Faults
from pulsarium.broker.lab.faults.rule import Rule
from pulsarium.broker.lab.faults.tapped import TappedFrame
from pulsarium.broker.lab.faults.which import FaultError, FaultRemoved

__all__ = [
    "ACTIONS",
    "Action",
    "Answer",
    "Close",
    "Corrupt",
    "Delay",
    "Drop",
    "Duplicate",
    "FaultError",
    "FaultRemoved",
    "Faults",
    "Observe",
    "Reorder",
    "Rule",
    "Stall",
    "TappedFrame",
    "Truncate",
    "WrongRequestId",
]

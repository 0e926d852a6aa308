"""Faults: rules that select frames of clients and brokers, and act on them."""

from pulsarium.broker.lab.faults.actions import (
    ACTIONS,
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
from pulsarium.broker.lab.faults.rule import Action, InstalledFault
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
    "InstalledFault",
    "Observe",
    "Reorder",
    "Stall",
    "TappedFrame",
    "Truncate",
    "WrongRequestId",
]

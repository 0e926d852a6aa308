"""The lab, which only an emulator can offer: faults, a clock, masks, captures, a linter, explanations and states."""

from pulsarium.broker.lab.lab import Lab

__all__ = ["Lab"]

"""What only an emulator can do: faults, a clock to steer, masks, captures, a linter, reasons, states."""

from pulsarium.broker.lab.lab import Lab

__all__ = ["Lab"]

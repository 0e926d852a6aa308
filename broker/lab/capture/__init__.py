"""Capture the frames of a running broker, or of any broker through a proxy."""

from pulsarium.broker.lab.capture.capture import Capture, Captures

__all__ = ["Capture", "Captures"]

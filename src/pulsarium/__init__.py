"""Pulsarium: an emulator of the Apache Pulsar broker."""

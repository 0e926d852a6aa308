"""The emulator of the Pulsar broker."""

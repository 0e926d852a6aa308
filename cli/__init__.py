"""The `pulsarium` command."""

"""Plugins of the test run itself, registered by tests/conftest.py."""

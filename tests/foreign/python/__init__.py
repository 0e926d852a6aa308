"""The official Python client, which wraps the C++ one."""

"""The official Python client, on its C++ core."""

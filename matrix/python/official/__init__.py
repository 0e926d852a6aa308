"""The scenario program of the official Python client, on its C++ core."""

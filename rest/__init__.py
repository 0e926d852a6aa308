"""The calls of the admin REST API, sans-IO, in groups as in Java's PulsarAdmin.

Each method of a group sends one request or a few over an `Exchange`, which has the connections. The async client has an
exchange on httpx; the command line, which must start fast, one that blocks. Import the groups you need; this module
imports none.
"""

"""The admin REST API, sans-IO: what its calls are, by groups as in Java's PulsarAdmin.

Each method of a group is one call or a few, over an `Exchange` that has the connections. The async client has one on
httpx; the command line, which has to start fast, one that blocks. Import the groups you need; this imports none.
"""

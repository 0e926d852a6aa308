"""Encode and decode Pulsar's wire protocol: frames, commands, entries, ids and names.

This package is sans-IO: no module knows sockets, tasks or clocks. The broker and the client share it. The package
imports none of its modules, so that a user of frames does not load compression libraries.
"""

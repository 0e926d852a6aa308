"""Pulsar's wire: bytes to frames, frames to commands, entries, ids and names, and back.

Sans-IO: nothing here knows sockets, tasks or clocks; the broker and the client share it. Import the modules you need;
this package imports none of them, so that a user of frames does not pay for compression libraries.
"""

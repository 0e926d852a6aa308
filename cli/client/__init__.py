"""`pulsarium client`: produce, consume and read from the command line, in the grammar of pulsar-client.

It stands on pulsarium.client, the extra `client`, which is imported when a command runs.
"""

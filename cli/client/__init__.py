"""`pulsarium client`: produce, consume and read from the command line, with the options of pulsar-client.

The commands use pulsarium.client, the extra `client`, and import it when they run.
"""

"""Check the conversation of client and broker: frames, requests with their answers, and rules.

Without I/O: the linter gets records of a capture (`pulsarium.capture.file`), live or from a file.
"""

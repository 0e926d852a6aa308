"""What the two sides of a connection say to each other, and whether they may: frames, requests with answers, rules.

Sans-IO: fed with records of a capture (`pulsarium.capture.file`), live or from a file.
"""

"""Exploration: a broker that does what Pulsar is allowed to do, at moments that a seed chooses.

Sans-IO: the kinds of choices, plans that choose, coverage, and the search for a least script. `explorer.py` and
`actions.py` bring a plan into a broker.
"""

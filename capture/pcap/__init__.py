"""Convert captures to pcapng, and packets that tcpdump recorded to captures.

Without I/O: `exporter` makes packets of records, `importer` makes records of packets.
"""

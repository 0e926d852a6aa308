"""Toxiproxy's proxies and toxics, which the API of `broker/web/toxiproxy.py` controls.

`toxics.py` has the kinds of toxics, `link.py` carries one direction of a connection through its toxics, and `proxy.py`
listens.
"""

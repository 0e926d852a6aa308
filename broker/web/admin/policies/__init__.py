"""Policies of namespaces and topics over REST, one declaration each."""

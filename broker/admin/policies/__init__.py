"""Policies over REST: of namespaces and of topics, one declaration each."""

"""Clusters, tenants, namespaces and which topics there are: the metadata of Pulsar's configuration store."""

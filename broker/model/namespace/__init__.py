"""Clusters, tenants, namespaces and bundles: the metadata of Pulsar's configuration store."""

"""Replace Pulsar's own programs in the container image: bin/pulsar and its neighbors.

The scripts in container/bin call these modules. Each passes the folder that holds bin, conf, data and logs.
"""

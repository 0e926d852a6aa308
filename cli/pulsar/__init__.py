"""Take the place of Pulsar's own programs in the container image: bin/pulsar and those beside it.

The scripts in container/bin call these modules; each passes the folder that holds bin, conf, data and logs.
"""

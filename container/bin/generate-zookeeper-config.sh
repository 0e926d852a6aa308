#!/bin/bash
# Stand in for Pulsar's script, which lists the servers of an ensemble in FILE: here each store is alone.
[[ -n ${1:-} ]] || { echo "usage: generate-zookeeper-config.sh FILE" >&2; exit 1; }
[[ -r $1 ]] || { echo "generate-zookeeper-config.sh: cannot read $1; name conf/zookeeper.conf" >&2; exit 1; }
[[ $ZOOKEEPER_SERVERS != *,* ]] || echo "ZOOKEEPER_SERVERS has no effect here: each metadata store is alone, and its users ask the first"

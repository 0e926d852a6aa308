#!/bin/bash
# Start a broker with the mounted settings, after a change.
set -e
sed 's/^clusterName=.*/clusterName=changed/' conf/mounted.conf >conf/changed.conf
sed -i 's/^webServiceUrl=.*/webServiceUrl=http:\/\/localhost:8081\//' conf/client.conf
exec bin/pulsar standalone

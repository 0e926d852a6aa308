"""Random programs of operations, run against Pulsarium and a real Pulsar. Both brokers must give the same answers."""

"""The lab in front of any Pulsar: a proxy of the binary protocol, on whose connections the lab acts."""

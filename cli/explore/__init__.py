"""`pulsarium explore`: run a command again and again, with a broker that does what Pulsar is allowed to do."""

"""Programs that measure and break brokers: they are no tests, and tests run small forms of them."""

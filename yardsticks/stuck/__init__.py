"""States of topics of a real broker, recorded for `pulsarium why`."""

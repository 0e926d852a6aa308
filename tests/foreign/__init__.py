"""Official Pulsar clients, unchanged, against a broker process over loopback."""

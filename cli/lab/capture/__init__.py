"""`pulsarium capture`: record the frames of a broker, show captures, and compare them."""

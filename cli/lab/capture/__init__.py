"""`pulsarium capture`: frames of a running broker or of any other, what is in a capture, what two differ in."""

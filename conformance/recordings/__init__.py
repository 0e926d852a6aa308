"""The recorder of golden transcripts: scenarios of raw frames, played against a real broker."""

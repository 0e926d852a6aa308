"""Replays the recorded scenarios of tests/transcripts against a broker and says where its answers differ."""

"""Replays of the recordings of a real broker (conformance/recordings) against ours."""

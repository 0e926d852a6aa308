"""Suggest a name in place of a misspelled one."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `did you mean NAME or NAME?` for the names that look alike, "" if none does. Case does not count."""
    import difflib  # wanted only where somebody misspelled something

    lower = {each.lower(): each for each in known}
    near = [lower[each] for each in difflib.get_close_matches(name.lower(), lower, n=2, cutoff=0.7)]
    return f"did you mean {' or '.join(near)}?" if near else ""

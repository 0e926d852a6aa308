"""Check the prose of docstrings, comments and help by the rules of docs/style.md.

usage: scripts/prose [PATH ...]

Prints each finding as path:line: text, and exits with 1 when there is one. PATH is a file or a folder of the checkout; the
default is all production code.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
ROOMS = ("proto", "capture", "rest", "broker", "client", "pipeline", "matrix", "cli", "bench", "scripts")
MOST_WORDS = 25

# A verb that is missing here is added here, in its place of the alphabet.
VERBS = frozenset(
    """
    Abort Accept Acknowledge Act Add Adjust Administer Admit Adopt Advance Advertise Align Allocate Allow Analyze Announce
    Answer Append Apply Ask Assert Assign Attach Authenticate Authorize Await Balance Begin Bind Block Bound Break Bring
    Broadcast Buffer Build Calculate Call Cancel Capture Carry Catch Change Charge Check Choose Claim Clear Close Collect
    Combine Commit Compact Compare Complete Compress Compute Configure Confirm Connect Consume Continue Convert Copy Count
    Cover Create Cut Deal Decide Declare Decode Decompress Decrypt Decrease Deduplicate Define Delay Delete Deliver Derive
    Describe Deserialize Detach Detect Determine Disable Discard Disconnect Dispatch Display Divide Do Double Drain Draw
    Drop Drive Duplicate Earn Edit Empty Enable Encode Encrypt End Enforce Enqueue Ensure Enter Escape Establish Estimate
    Evaluate Evict Examine Exchange Exclude Execute Exit Expand Expect Expire Explain Export Expose Extend Extract Fail
    Fan Feed Fence Fetch Fill Filter Find Finish Fire Fix Flush Follow Forbid Forget Format Forward Freeze Generate Get Give
    Go Grant Group Guard Halve Hand Handle Hash Have Hide Hold Identify Ignore Implement Import Include Increase Index
    Inform Infer Initialize Insert Inspect Install Interpret Intersect Invoke Iterate Join Judge Keep Kill Know Label
    Lead Learn Leave Let Lift Limit Link List Listen Load Locate Lock Log Look Lower Make Map Mark Mask Match Measure Mend
    Merge Migrate Mirror Move Multiply Name Normalize Note Notice Notify Number Obtain Offer Omit Open Order Override Own
    Pack Pad Pair Parse Pass Patch Pause Peek Perform Persist Pick Ping Place Plan Play Poll Pop Post Prepare Preserve
    Prevent Print Process Produce Promise Protect Prove Provide Proxy Prune Publish Pull Push Put Quote Raise Read Rebuild
    Receive Recognize Reconnect Record Recover Redeliver Redirect Reduce Refresh Refuse Register Reject Release Reload
    Remember Remove Rename Render Renew Reopen Repeat Replace Replay Reply Report Request Require Reserve Reset Resolve
    Respond Restart Restore Resume Retrieve Retry Return Reuse Revoke Rewind Rewrite Roll Rotate Round Route Run Sample
    Save Scale Scan Schedule Search Seed Seek Select Send Separate Serialize Serve Set Settle Share Ship Show Shrink Shut
    Sign Simulate Skip Sleep Sort Spawn Spell Spill Split Spool Spread Stage Stall Stamp Start State Steer Stop Store
    Stream Strip Subscribe Substitute Subtract Sum Supply Support Suspend Sweep Switch Sync Synchronize Tag Take Tear Tell
    Terminate Test Throttle Throw Tick Time Total Touch Trace Track Transfer Transform Translate Trim Truncate Try Turn
    Undo Unload Unlock Unpack Unregister Unsubscribe Unwrap Update Upgrade Use Validate Verify View Visit Wait Wake Walk
    Warn Watch Weigh Widen Withdraw Work Wrap Write Yield Zip
    """.split()
)
BANNED_OPENINGS = frozenset(
    """
    All Also And As At Before Behind Be Because Both But By Does Each Either Every Everybody Everything Everywhere For From Has
    How If In Into Is It Its Itself Neither Never No Nobody None Nor Not Nothing Now Of On Once One Only Or Other Others Out
    Several So Some Somebody Something Such That Their Them Then There These They This Those Though Till To Under Until Up
    What Whatever When Whence Where Wherever Whether Which Whichever While Who Whoever Whole Whom Whose Why With Within Without
    """.split()
)
# Phrases that readers stumbled over, and what to write instead.
BANNED_PHRASES = {
    r"\bthe how maniest\b": "the number of",
    r"\bof no need\b": "not needed",
    r"\bbecomes? of\b": "happens to",
    r"\bthat there is\b": "that exists",
    r"\bthere is not\b": "does not exist",
    r"\bsuch (?:a )?ones?\b": "the noun",
    r"\bwho asks\b": "the caller, the client",
    r"\bbehaviour\b": "behavior",
    r"\bcolour": "color",
    r"\bhonour": "honor",
    r"\bneighbour": "neighbor",
}
_WORD = re.compile(r"[A-Za-z][\w'-]*")
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+")


class Finding(NamedTuple):
    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text}"


def findings(path: Path) -> Iterator[Finding]:
    """Yield what is wrong with the prose of one Python file."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source, str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            text = ast.get_docstring(node)
            if text:
                line = node.body[0].lineno
                is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                yield from (Finding(path, line, each) for each in _of_docstring(text, is_function))
    yield from (Finding(path, line, each) for line, text in _comments(path) for each in _of_text(text))


def _of_docstring(text: str, is_function: bool) -> Iterator[str]:
    summary = text.partition("\n\n")[0]
    first = _WORD.match(summary)
    if is_function and (not first or first[0] not in VERBS):
        yield f"begin with a verb: {_start(summary)}"
    elif first and first[0] in BANNED_OPENINGS:
        yield f"begin with a verb or the noun: {_start(summary)}"
    for sentence in _SENTENCE.split(summary):
        if len(sentence.split()) > MOST_WORDS:
            yield f"{len(sentence.split())} words in a sentence, at most {MOST_WORDS}: {_start(sentence)}"
    yield from _of_text(text)


def _of_text(text: str) -> Iterator[str]:
    for pattern, instead in BANNED_PHRASES.items():
        if found := re.search(pattern, text, re.IGNORECASE):
            yield f'"{found[0]}": write {instead}'


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def _start(text: str) -> str:
    line = " ".join(text.split())
    return f"{line[:70]}..." if len(line) > 73 else line


def files(paths: list[str]) -> Iterator[Path]:
    """Yield the Python files below `paths`, generated ones left out."""
    for path in paths:
        found = ROOT / path
        for each in sorted(found.rglob("*.py")) if found.is_dir() else [found]:
            if "generated" not in each.parts:
                yield each


def main() -> int:
    """Print all findings, and return the exit code."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print((__doc__ or "").strip())
        return 0
    found = [each for path in files(sys.argv[1:] or list(ROOMS)) for each in findings(path)]
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

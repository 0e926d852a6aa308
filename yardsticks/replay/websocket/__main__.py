"""Record the WebSocket scenarios on a broker: python -P -m yardsticks.replay.websocket http://127.0.0.1:8080 FOLDER.

Use a fresh broker with webSocketServiceEnabled=true.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from .player import Play
from .scenarios import SCENARIOS


def main(admin_url: str, folder: str, *names: str) -> None:
    """Play the named scenarios, or all, and write a file of JSON lines for each."""
    for name in names or tuple(SCENARIOS):
        with Play(admin_url, name) as play:
            SCENARIOS[name](play)
        text = "".join(json.dumps(line, sort_keys=True, ensure_ascii=False) + "\n" for line in play.lines)
        (Path(folder) / f"{name}.jsonl").write_text(text)
        sys.stdout.write(f"{name}: {len(play.lines)} lines\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

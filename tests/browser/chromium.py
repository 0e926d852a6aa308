"""Headless Chromium, steered over a pipe with the DevTools protocol."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
FREE: Final = 10  # the first file descriptor that is surely neither 3 nor 4, which Chromium uses
OPTIONS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--no-proxy-server", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
    *("--disable-extensions", "--remote-debugging-pipe", "--mute-audio", "--disable-features=Translate,MediaRouter"),
)
PATIENCE_MS: Final = 60_000
WAIT: Final = """
new Promise((done, fail) => {
  const check = () => { let found; try { found = (CONDITION) } catch { } if (found) { end(); done(found) } };
  const observer = new MutationObserver(check);
  const timer = setInterval(check, 250);
  const told = () => "not so: " + CONDITION_TEXT + "\\n" + document.body.innerText;
  const late = setTimeout(() => { end(); fail(new Error(told())) }, PATIENCE);
  const end = () => { observer.disconnect(); clearInterval(timer); clearTimeout(late) };
  observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  check();
})
"""
UNSKIPPED: Final = """
(() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("* { content-visibility: visible !important }");
  document.adoptedStyleSheets = [sheet];
})()
"""
FIND: Final = """
(() => {
  const shown = (e) => e.getClientRects().length && getComputedStyle(e).visibility !== "hidden";
  const label = (e) => e.labels && e.labels[0] && e.labels[0].innerText;
  const name = (e) => (e.getAttribute("aria-label") || label(e) || e.innerText || "").trim();
  const open = [...document.querySelectorAll("dialog[open]")].pop();
  const inside = [...(WITHIN ? document.querySelectorAll(WITHIN) : [open || document])];
  const all = inside.flatMap((root) => [...root.querySelectorAll(SELECTOR)]).filter(shown);
  const fits = [(text) => text === NAME, (text) => text.startsWith(NAME), (text) => text.includes(NAME)];
  return fits.map((fit) => all.find((e) => fit(name(e)))).find(Boolean);
})()
"""
REST_OF: Final = """
(async () => {
  const frame = () => new Promise(requestAnimationFrame);
  for (let before = ""; ;) {
    const e = FOUND;
    if (e) {
      e.scrollIntoView({ block: "center" });
      const r = e.getClientRects()[0], at = r && [r.x + r.width / 2, r.y + r.height / 2];
      const top = at && document.elementFromPoint(...at);
      if (top && e.contains(top) && before === String(at)) {
        window.missed = true;
        const clicked = (click) => { window.missed = !e.contains(click.target); };
        document.addEventListener("click", clicked, { capture: true, once: true });
        return at;
      }
      before = String(at);
    }
    await frame();
    await frame();
  }
})()
"""
"""Position of an element, once it rests and nothing covers it. `missed` tells whether the next click missed it."""
ENDS: Final = ("Network.loadingFinished", "Network.loadingFailed")
STREAM: Final = "text/event-stream"
LEFT: Final = "navigated or closed"  # of the error for a script whose page was left
CLICKABLE: Final = "button, a[href], summary, input, select, [role=button], [role=option]"
FIELDS: Final = "input, textarea, select"


class BrowserError(AssertionError):
    """A script of the page, or the browser, failed."""


class Chromium:
    """A browser process."""

    def __init__(self, profile: str) -> None:
        command = next(filter(None, map(shutil.which, NAMES)), None)
        assert command is not None, "no Chromium on the PATH: install it (Debian: chromium)"
        theirs_in, self._out = _pipe()
        self._in, theirs_out = _pipe()
        script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", command, *OPTIONS, f"--user-data-dir={profile}"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._number = 0
        self._buffer = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, /, **parameters: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol, and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._in, 1 << 20)
            if not data:
                raise BrowserError("Chromium has ended")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def await_event(self, method: str, since: int, **parameters: Any) -> None:
        """Wait for an event of this kind with these parameters. `since` is the number of events before it."""
        while True:
            for event in self.events[since:]:
                if event.get("method") == method and parameters.items() <= event["params"].items():
                    return
            since = len(self.events)
            self.events.append(self._read())

    def close(self) -> None:
        """End the browser."""
        try:
            self.call("Browser.close")
        except (BrowserError, OSError):
            self._process.kill()
        self._process.wait(30)
        os.close(self._in)
        os.close(self._out)

    def page(self, *, width: int = 1200, height: int = 900, theme: str = "light") -> Page:
        """Open a page, in a context of its own."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target, context)
        page.call("Page.enable")
        page.call("Runtime.enable")
        page.call("Log.enable")
        page.call("Network.enable")
        # Chromium leaves out of innerText what `content-visibility: auto` skips, below the lower edge of the window
        page.call("Page.addScriptToEvaluateOnNewDocument", source=UNSKIPPED)
        page.call("Emulation.setFocusEmulationEnabled", enabled=True)
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        return page


class Page:
    """A page of the browser. Tests use it as a person does, by its visible texts."""

    def __init__(self, browser: Chromium, session: str, target: str, context: str) -> None:
        self._browser = browser
        self._session = session
        self._target = target
        self._context = context
        self.clicks = 0

    def call(self, method: str, /, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)

    def go(self, url: str) -> None:
        """Open an address."""
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def do(self, script: str) -> Any:
        """Return the value of an expression, awaited."""
        found = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return found["result"].get("value")

    def until(self, condition: str) -> Any:
        """Wait until an expression is true, and return its value. The page may be loaded again meanwhile."""
        script = WAIT.replace("CONDITION_TEXT", json.dumps(condition)).replace("CONDITION", condition)
        while True:
            try:
                return self.do(script.replace("PATIENCE", str(PATIENCE_MS)))
            except BrowserError as error:
                if LEFT not in str(error):
                    raise

    def sees(self, text: str) -> None:
        """Wait until the page shows a text."""
        self.until(f"document.body.innerText.includes({json.dumps(text)})")

    def click(self, name: str, within: str = "") -> None:
        """Click on the button, link or summary of this name."""
        self._press(self._found(name, CLICKABLE, within))

    def press(self, selector: str) -> None:
        """Click on the element of a selector."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.until(f"{found} && {found}.getClientRects().length && !{found}.disabled")
        self._press(found)

    def fill(self, name: str, text: str, within: str = "") -> None:
        """Replace the text of a field, or choose this option of a list."""
        found = self._found(name, FIELDS, within)
        self.do(
            f"""(() => {{ const e = {found}; e.focus(); const proto = Object.getPrototypeOf(e);
            Object.getOwnPropertyDescriptor(proto, "value").set.call(e, {json.dumps(text)});
            e.dispatchEvent(new Event("input", {{ bubbles: true }}));
            e.dispatchEvent(new Event("change", {{ bubbles: true }})); }})()"""
        )

    def choose(self, selector: str, file: Path) -> None:
        """Choose a file in the field of a selector."""
        self.until(f"document.querySelector({json.dumps(selector)})")
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(file)])

    def download(self, name: str, folder: Path) -> Path:
        """Click on the button of this name, and return the file that the browser stores in an empty folder."""
        where: Mapping[str, Any] = {"downloadPath": str(folder), "browserContextId": self._context}
        self._browser.call("Browser.setDownloadBehavior", behavior="allow", eventsEnabled=True, **where)
        since = len(self._browser.events)
        self.click(name)
        self._browser.await_event("Browser.downloadProgress", since, state="completed")
        (found,) = folder.iterdir()
        return found

    def key(self, key: str, code: int = 0, text: str = "") -> None:
        """Press a key."""
        more: Mapping[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", **more)

    def _found(self, name: str, selector: str, within: str) -> str:
        words = {"SELECTOR": selector, "NAME": name, "WITHIN": within}
        script = FIND.strip()
        for word, value in words.items():
            script = script.replace(word, json.dumps(value))
        self.until(f"!!{script}")
        return script

    def _press(self, found: str) -> None:
        while self._awaited():  # an answer may move what is pressed
            self.do("new Promise(requestAnimationFrame)")
        box = self.do(REST_OF.replace("FOUND", found))
        where: Mapping[str, Any] = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mousePressed", **where)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", **where)
        if self.do("window.missed"):  # the page moved in between, as it may on a busy machine
            self._press(found)
        else:
            self.clicks += 1

    def _awaited(self) -> set[str]:
        """Return the ids of this document's requests without an answer. A stream is answered with its head."""
        found = set[str]()
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            what = event["params"]
            if event["method"] == "Network.requestWillBeSent":
                if what.get("type") == "Document":  # the requests of the last one may never end
                    found.clear()
                found.add(what["requestId"])
            elif event["method"] in ENDS or what.get("response", {}).get("mimeType") == STREAM:
                found.discard(what["requestId"])
        return found

    def text(self, selector: str = "body") -> str:
        found: str = self.do(f"document.querySelector({json.dumps(selector)}).innerText")
        return found

    def picture(self, path: Path) -> None:
        """Write a picture of the page's visible part."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self) -> list[str]:
        """Return errors of scripts and of the security policy, and refused loads."""
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            what = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(what["exceptionDetails"].get("exception", {}).get("description", "an exception"))
            elif event["method"] == "Log.entryAdded" and what["entry"]["source"] == "security":
                found.append(what["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Return the addresses that the page requested."""
        return [
            event["params"]["request"]["url"]
            for event in self._browser.events
            if event.get("sessionId") == self._session and event["method"] == "Network.requestWillBeSent"
        ]


def _pipe() -> tuple[int, int]:
    made = []
    for each in os.pipe():
        made.append(fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, FREE))
        os.close(each)
    return made[0], made[1]


@contextmanager
def chromium() -> Iterator[Chromium]:
    """Run a browser with an empty profile."""
    with TemporaryDirectory(prefix="pulsarium-browser-", ignore_cleanup_errors=True) as profile:
        browser = Chromium(profile)
        try:
            yield browser
        finally:
            browser.close()

"""/lab/clock: steer the broker's clock. With `namespace`, each call steers the clock of that namespace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pulsarium.broker.clock import instant_text
from pulsarium.broker.lab.steering import ClockError
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, json_reply
from pulsarium.broker.web.lab.find import lab_of

if TYPE_CHECKING:
    from pulsarium.broker.lab.clock import LabClock, NamespaceClock

ROOT = "/lab/clock"
SECONDS_OR_TO = "an advance takes seconds, a number, or to, an ISO time or milliseconds since the epoch"


@route("GET", ROOT)
def get_clock(call: Call) -> HttpReply:
    """Show the broker's time, and whether the clock is frozen."""
    return _shown(_asked_clock(call))


@route("POST", f"{ROOT}/freeze")
def freeze(call: Call) -> HttpReply:
    """Freeze the clock."""
    return _steered(call, lambda clock: clock.freeze())


@route("POST", f"{ROOT}/resume")
def resume(call: Call) -> HttpReply:
    """Let the clock run again from the time that it shows."""
    return _steered(call, lambda clock: clock.resume())


@route("POST", f"{ROOT}/reset")
def reset(call: Call) -> HttpReply:
    """Return to the machine's time, and exclude all included timers."""
    return _steered(call, lambda clock: clock.reset())


@route("POST", f"{ROOT}/advance")
async def advance(call: Call) -> HttpReply:
    """Advance the clock: {"seconds": 604800}, or {"to": "2030-01-01T00:00:00Z"}.

    Answer when all due timers have run.
    """
    asked = _asked(call, "seconds", "to")
    if len(asked) != 1:
        raise AdminError(400, SECONDS_OR_TO)
    clock = _asked_clock(call)
    try:
        if "to" in asked:
            seconds = await clock.advance_to(_time_ms(asked["to"]))
        else:
            seconds = _seconds(asked["seconds"])
            await clock.advance(seconds)
    except ClockError as error:
        raise AdminError(400, str(error)) from None
    return _shown(clock, advancedSeconds=seconds)


@route("POST", f"{ROOT}/run-next")
async def run_next(call: Call) -> HttpReply:
    """Advance the clock to the next timer that runs once, and run the timer."""
    clock = _asked_clock(call)
    try:
        seconds = await clock.run_next()
    except ClockError as error:
        raise AdminError(409, str(error)) from None
    return _shown(clock, advancedSeconds=seconds)


@route("POST", f"{ROOT}/auto-advance")
def auto_advance(call: Call) -> HttpReply:
    """Switch auto-advance: {"on": true}. An idle broker then goes to its next timer by itself."""
    on = _asked(call, "on").get("on")
    if not isinstance(on, bool):
        raise AdminError(400, "auto-advance takes on, which is true or false")
    return _steered(call, lambda clock: setattr(clock, "auto_advance", on))


@route("POST", f"{ROOT}/include")
def include(call: Call) -> HttpReply:
    """Put timers under the clock: {"names": ["keep-alive", "token-expiry"]}."""
    return _of_names(call, lambda clock, names: clock.include(*names))


@route("POST", f"{ROOT}/exclude")
def exclude(call: Call) -> HttpReply:
    """Return timers to the machine's clock: {"names": [...]}."""
    return _of_names(call, lambda clock, names: clock.exclude(*names))


def _asked_clock(call: Call) -> LabClock | NamespaceClock:
    broker, namespace = lab_of(call).clock, call.query.get("namespace")
    try:
        return broker if namespace is None else broker.of(namespace)
    except ClockError as error:
        raise AdminError(404, str(error)) from None


def _steered(call: Call, steer: Callable[[LabClock | NamespaceClock], None]) -> HttpReply:
    clock = _asked_clock(call)
    try:
        steer(clock)
    except ClockError as error:
        raise AdminError(400, str(error)) from None
    return _shown(clock)


def _of_names(call: Call, steer: Callable[[LabClock | NamespaceClock, Sequence[str]], None]) -> HttpReply:
    names = _asked(call, "names").get("names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise AdminError(400, "names is a list of keep-alive and token-expiry")
    return _steered(call, lambda clock: steer(clock, names))


def _asked(call: Call, *known: str) -> dict[str, Any]:
    asked = call.json_object("java.util.Map") or {}
    unknown = sorted(asked.keys() - set(known))
    if unknown:
        raise AdminError(400, f"{', '.join(unknown)}: the body takes {', '.join(known)}")
    return asked


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise AdminError(400, SECONDS_OR_TO)
    try:
        return float(value)
    except OverflowError:
        raise AdminError(400, SECONDS_OR_TO) from None


def _time_ms(value: object) -> int:
    """Parse an ISO 8601 time, in UTC without a zone, or milliseconds since the epoch."""
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
            return value
    except (ValueError, OverflowError):
        pass
    raise AdminError(400, SECONDS_OR_TO)


def _shown(clock: LabClock | NamespaceClock, **more: Any) -> HttpReply:
    now_ms = clock.now_ms()
    shown = {
        "now": instant_text(now_ms),
        "nowMs": now_ms,
        "offsetMs": clock.offset_ms,
        "frozen": clock.frozen,
        "autoAdvance": clock.auto_advance,
        "nextInSeconds": clock.next_in,
        **clock.particulars(),
    }
    return json_reply(shown | more)

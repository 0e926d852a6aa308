"""Errors between the command line and the broker, with advice."""

from __future__ import annotations

import re
from typing import Final

from pulsarium.broker.config.keys import APPEND_BROKER_TIMESTAMP, APPEND_INDEX
from pulsarium.cli.refusal import RunRefused

# Features that are off by default: a part of the broker's reason, and the setting that turns the feature on.
_OFF_BY_DEFAULT: Final = (
    (
        r"[Bb]roker entry metadata is (disabled|not present)",
        f"brokerEntryMetadataInterceptors={APPEND_BROKER_TIMESTAMP},{APPEND_INDEX}",
    ),
    (r"[Tt]opic level policies (are|is) disabled", "topicLevelPoliciesEnabled=true"),
    (r"doesn't allow forced? deletion of namespaces", "forceDeleteNamespaceAllowed=true"),
    (r"doesn't allow forced? deletion of tenants", "forceDeleteTenantAllowed=true"),
    (r"[Tt]ransactions? (are |is |coordinator )?(not enabled|disabled)", "transactionCoordinatorEnabled=true"),
    (r"acknowledgment at batch index level", "acknowledgmentAtBatchIndexLevelEnabled=true"),
)

_OF_STATUS: Final = {
    401: "authenticate with --token, or --auth-plugin and --auth-params, as a role that may do this",
}


class AdminError(RunRefused):
    """End the command with exit code 1 and one line: `message`, and `reason` if any."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(f"{message}: {reason}" if reason else message)


class ServerError(AdminError):
    """The broker refused the call with the HTTP status `status`."""

    def __init__(self, status: int, reason: str) -> None:
        remedy = _remedy(status, reason)
        super().__init__(f"{reason} ({remedy})" if remedy else reason)
        self.status = status


def _remedy(status: int, reason: str) -> str:
    for pattern, setting in _OFF_BY_DEFAULT:
        if re.search(pattern, reason):
            return f"off by default; turn it on with: pulsarium serve --set {setting}"
    return _OF_STATUS.get(status, "")


class Unreachable(AdminError):
    """The call had no answer from any broker."""


class NotConnected(Unreachable):
    """The call was not sent, so another broker may be tried."""

"""Say what went wrong between the command line and the broker, and what helps."""

from __future__ import annotations

import re
from typing import Final

from pulsarium.cli.refusal import RunRefused

_TIMESTAMP: Final = "org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor"
_INDEX: Final = "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor"

# What turns a feature on that is off by default: part of the broker's reason, and the setting.
_OFF_BY_DEFAULT: Final = (
    (r"[Bb]roker entry metadata is (disabled|not present)", f"brokerEntryMetadataInterceptors={_TIMESTAMP},{_INDEX}"),
    (r"[Tt]opic level policies (are|is) disabled", "topicLevelPoliciesEnabled=true"),
    (r"doesn't allow forced? deletion of namespaces", "forceDeleteNamespaceAllowed=true"),
    (r"doesn't allow forced? deletion of tenants", "forceDeleteTenantAllowed=true"),
    (r"[Tt]ransactions? (are |is |coordinator )?(not enabled|disabled)", "transactionCoordinatorEnabled=true"),
    (r"acknowledgment at batch index level", "acknowledgmentAtBatchIndexLevelEnabled=true"),
)

_OF_STATUS: Final = {
    401: "say who calls: --token, or --auth-plugin and --auth-params",
}


class AdminError(RunRefused):
    """Ends the command with 1 and one line: `message`, and `reason` where that says more."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(f"{message}: {reason}" if reason else message)


class ServerError(AdminError):
    """The broker refused; `status` is what it answered."""

    def __init__(self, status: int, reason: str) -> None:
        remedy = _remedy(status, reason)
        super().__init__(f"{reason} ({remedy})" if remedy else reason)
        self.status = status


def _remedy(status: int, reason: str) -> str:
    for pattern, setting in _OFF_BY_DEFAULT:
        if re.search(pattern, reason):
            return f"off by default; to turn it on: pulsarium serve --set {setting}"
    return _OF_STATUS.get(status, "")


class Unreachable(AdminError):
    """No broker answered."""


class NotConnected(Unreachable):
    """The call was not sent: another broker may have it."""

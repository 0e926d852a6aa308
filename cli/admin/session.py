"""Hold where the broker answers HTTP, and who calls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pulsarium.cli.admin.api import Api, check_url
from pulsarium.cli.admin.caller import Caller
from pulsarium.cli.admin.credentials import credentials
from pulsarium.rest.exchange import places

DEFAULT_URL = "http://127.0.0.1:8080"


@dataclass
class Session(Caller):
    """The options of one run; the broker is first called by the command."""

    admin_url: str | None = None
    request_timeout: int = 300

    @cached_property
    def api(self) -> Api:
        url = self.admin_url or self.settings.get("webServiceUrl") or DEFAULT_URL
        urls = places(url)
        for each in urls:
            check_url(each)
        given = credentials(*self.proof)
        tls = self.tls(given.certificate) if url.startswith("https:") else None
        return Api(urls, given.headers, tls, self.request_timeout)

"""Common names as roles."""

from __future__ import annotations

import pytest

from pulsarium.broker.auth.authentication import CertificateProvider
from pulsarium.broker.auth.identity import AuthenticationError, HttpCredentials, Identity

pytestmark = pytest.mark.req("B-45")


def test_the_common_name_is_the_role() -> None:
    shown = {"subject": ((("countryName", "DE"),), (("commonName", "first"),), (("commonName", "last"),))}
    assert CertificateProvider().authenticate(b"", shown) == Identity("last")
    assert CertificateProvider().authenticate_http(HttpCredentials({}, {}, shown)) == Identity("last")


@pytest.mark.parametrize("shown", [None, {}, {"subject": ()}, {"subject": ((("commonName", ""),),)}])
def test_no_certificate_or_one_without_a_name(shown: dict[str, object] | None) -> None:
    with pytest.raises(AuthenticationError):
        CertificateProvider().authenticate(b"", shown)

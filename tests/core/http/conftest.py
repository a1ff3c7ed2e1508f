"""One certificate instead of all: loading them takes a client longer than most of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest


@pytest.fixture(autouse=True, scope="session")
def _few_certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    first, end, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")
    path = tmp_path_factory.mktemp("certificates") / "one.pem"
    path.write_text(first[first.index("-----BEGIN") :] + end + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        yield

"""As `run_interlingua`, by the transport pycurl."""

from __future__ import annotations

import common
from run_interlingua import A, O


class PycurlA(A):
    """The Messages API."""

    name = "interlingua pycurl"
    transport = "pycurl"


class PycurlO(O):
    """Chat Completions."""

    name = "interlingua pycurl"
    transport = "pycurl"


if __name__ == "__main__":
    common.main(__file__, [PycurlA, PycurlO])

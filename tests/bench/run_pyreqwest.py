"""As `run_interlingua`, by the transport pyreqwest."""

from __future__ import annotations

import common
from run_interlingua import A, O


class PyreqwestA(A):
    """The Messages API."""

    name = "interlingua pyreqwest"
    transport = "pyreqwest"


class PyreqwestO(O):
    """Chat Completions."""

    name = "interlingua pyreqwest"
    transport = "pyreqwest"


if __name__ == "__main__":
    common.main(__file__, [PyreqwestA, PyreqwestO])

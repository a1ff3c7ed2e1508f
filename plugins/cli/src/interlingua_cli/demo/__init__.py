"""The main job, shown: a session that crosses providers and comes back.

Never special to the demo: it uses the client as any application does.
The command `demo`, the recorder and their tests come in.
"""

from __future__ import annotations






"""One module per command, each with a click command named `command`; a new module here is a new command.

Never imports another command: what two of them need lives beside this folder.
The group in `cli.root` comes in.
"""

from __future__ import annotations



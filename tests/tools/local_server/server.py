"""`LocalServer`: one llama.cpp server process, started for a `with` block and ended with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from . import files

MODEL = "smollm2-135m-instruct"
"""The only model name the server reports, and in `router` mode the only one it accepts."""


class LocalServer:
    """A running server on a free loopback port.

    Args:
        context: Context window in tokens; small, so that an overflow is cheap to provoke.
        threads: Processor threads. Another number rounds differently and may answer differently (measured), and on a
            busy machine two wait for each other: one is four times as fast there.
        seed: Sampling seed where a request gives none (the Messages wire cannot give one).
        api_key: When set, other keys are answered 401.
        cache: Reuse the prompt prefix of the last request: usage then reports cached tokens, but the same request
            may then be answered differently even at temperature 0 (measured).
        router: Check the request's model name: without it the server answers under any name. Only a `llama-server`
            program that the environment names can.
        options: More command-line options of the server.
        port: Port to listen on; 0 chooses a free one.
        log: File for the server's own output; None drops it.
        patience: Seconds to wait for the model to load.

    Raises:
        FileNotFoundError: The program or the model is not on this machine; the message says how to get them.
        TimeoutError: The server was not ready in time.
    """

    def __init__(
        self,
        *,
        context: int = 2048,
        threads: int = 1,
        seed: int = 7,
        api_key: str | None = None,
        cache: bool = False,
        router: bool = False,
        options: Sequence[str] = (),
        port: int = 0,
        log: Path | None = None,
        patience: float = 120.0,
    ) -> None:
        absent = files.missing()
        self._command, self._model = files.server_command(), files.model_file()
        if absent or not self._command or not self._model:
            raise FileNotFoundError(absent)
        if router and not files.named_program():
            raise FileNotFoundError(f"only the llama-server program has a router: set {files.SERVER_VARIABLE}")
        self.port = port or _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        key = ["--api-key", api_key] if api_key else []
        self._arguments = [
            *("--host", "127.0.0.1", "--port", str(self.port), "--jinja", "--chat-template-file", str(files.TEMPLATE)),
            *("--ctx-size", str(context), "--parallel", "1", "--seed", str(seed)),
            *("--threads", str(threads), "--threads-batch", str(threads), "--threads-http", "2"),
            *("--cache-ram", "0", *([] if cache else ["--no-cache-prompt"]), *key, *options),
        ]
        self._router, self._log, self._patience = router, log, patience
        self._scratch: TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the server's guard; also the id of the process group of all that was started."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    def __enter__(self) -> Self:
        self._scratch = TemporaryDirectory(prefix="interlingua-llama-")
        try:
            self._start(Path(self._scratch.name))
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server and its own children (router mode has one), and remove its scratch folder."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin
            process.stdin.close()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                _kill_group(process.pid)
                process.wait()
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def wait(self) -> int:
        """Block until the server ends by itself; returns its exit status."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.wait()

    def _start(self, scratch: Path) -> None:
        assert self._command
        assert self._model
        guard = [sys.executable, str(Path(__file__).with_name("guard.py"))]
        command = [*guard, *self._command, *self._model_arguments(scratch, self._model), *self._arguments]
        with (self._log or Path(os.devnull)).open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # closed when this process ends, however it ends: the guard then ends the server
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # guard, server and its children are one group, so they can be ended together
            )

    def _model_arguments(self, scratch: Path, model: Path) -> list[str]:
        if not self._router:
            return ["--model", str(model), "--alias", MODEL]
        shelf = scratch / "models"
        shelf.mkdir()
        (shelf / f"{MODEL}.gguf").symlink_to(model)
        return ["--models-dir", str(shelf)]

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self._patience
        while time.monotonic() < deadline:
            assert self._process
            status = self._process.poll()
            if status is not None:
                raise RuntimeError(f"llama-server ended with status {status} before it was ready; see {self._log}")
            if _healthy(self.url):
                return
            time.sleep(0.1)
        raise TimeoutError(f"llama-server was not ready within {self._patience} s; see {self._log}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:  # noqa: S310 (loopback only)
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)

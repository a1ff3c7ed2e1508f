"""llama.cpp's server as the package xllamacpp brings it: a program with the options of `llama-server` used here.

It runs in the environment that `install` made, never in the tests' own.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--model", "--alias", "--host", "--api-key", "--chat-template-file"):
        parser.add_argument(name)
    for name in ("--port", "--ctx-size", "--parallel", "--seed", "--threads", "--threads-batch", "--threads-http"):
        parser.add_argument(name, type=int)
    parser.add_argument("--grammar")
    parser.add_argument("--n-predict", type=int, default=-1)  # -1: no limit
    parser.add_argument("--cache-ram", type=int)
    parser.add_argument("--jinja", action="store_true")
    parser.add_argument("--no-cache-prompt", action="store_true")
    given = parser.parse_args()

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = given.model
    params.model_alias = {given.alias}
    params.hostnames = [given.host]
    params.port = given.port
    if given.grammar:
        params.sampling.grammar = xllamacpp.CommonGrammar(1, given.grammar)  # 1: the user's own
    params.n_ctx = given.ctx_size
    params.n_predict = given.n_predict
    params.n_parallel = given.parallel
    params.sampling.seed = given.seed
    params.cpuparams.n_threads = given.threads
    params.cpuparams_batch.n_threads = given.threads_batch
    params.n_threads_http = given.threads_http
    params.cache_ram_mib = given.cache_ram
    params.cache_prompt = not given.no_cache_prompt
    params.use_jinja = given.jinja
    params.chat_template = Path(given.chat_template_file).read_text()
    params.api_keys = [given.api_key] if given.api_key else []
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    sys.stdout.flush()
    os._exit(0)  # the server's threads have nothing to save


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})  # its threads inherit it
    main()

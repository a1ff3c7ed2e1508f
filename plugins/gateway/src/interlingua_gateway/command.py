"""`interlingua gateway`: serve until stopped."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from interlingua_cli.state import State


@click.command("gateway")
@click.option("--config", "file", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="A TOML file.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8790, show_default=True, type=click.IntRange(0, 65_535), help="Port to listen on.")
@click.pass_obj
def gateway(state: State, file: Path | None, host: str, port: int) -> None:
    """Serve the providers' own APIs over any provider.

    Point an agent or an SDK at http://HOST:PORT and ask for `provider:name`, or for a name of the configuration.
    """
    import uvicorn  # noqa: PLC0415  help needs it not

    from interlingua_gateway.config import GatewayConfig, read_config  # noqa: PLC0415  help needs it not
    from interlingua_gateway.gateway import create_app  # noqa: PLC0415

    config = GatewayConfig() if file is None else read_config(file)
    if config.auth == "none" and not _is_loopback(host):
        how = 'set auth = "keys" in the configuration and make a key, or listen on 127.0.0.1'
        raise click.UsageError(f"{host} is reachable by others: {how}")
    app = create_app(config, registry=state.registry, settings=state.settings, environ=state.environ)
    click.echo(f"serving on http://{host}:{port}; stop with Ctrl-C", err=True)
    uvicorn.run(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        ws="none",
        timeout_graceful_shutdown=round(config.drain),
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

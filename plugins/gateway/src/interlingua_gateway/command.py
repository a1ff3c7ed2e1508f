"""`interlingua gateway`: serve until stopped; make, list and revoke keys."""

from __future__ import annotations

import asyncio
import json
import socket
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua_cli.context import plugin_option

if TYPE_CHECKING:
    from interlingua_cli.context import CommandContext
    from interlingua_gateway.config import GatewayConfig
    from interlingua_gateway.services import Services
    from interlingua_gateway.store import GatewayStore

_ACTOR = "command line"  # in the audit log
_CONFIG = click.option(
    "--config", "file", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="A TOML file."
)


@click.group("gateway", invoke_without_command=True)
@_CONFIG
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8790, show_default=True, type=click.IntRange(0, 65_535), help="Port to listen on.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes on the port.")
@click.option("--record", metavar="FILE", help="Record conversations as sessions in FILE (or postgresql://…).")
@plugin_option
@click.pass_context
def gateway(context: click.Context, file: Path | None, host: str, port: int, workers: int, record: str | None) -> None:
    """Serve the providers' own APIs over any provider.

    Point an agent or an SDK at http://HOST:PORT and use `provider:name` as the model, or a name of the configuration.
    """
    if context.invoked_subcommand is not None:
        return
    from interlingua_gateway.local_requests import is_loopback  # noqa: PLC0415  help needs it not

    state: CommandContext = context.obj
    config = _read(file, record)
    if config.auth == "none" and not is_loopback(host):
        how = 'set auth = "keys" in the configuration and make a key, or listen on 127.0.0.1'
        raise click.UsageError(f"{host} is reachable from other machines: {how}")
    _serve(state, config, host, port, workers, file)


def _check_routes(services: Services, file: Path | None) -> None:
    from interlingua.errors import CallerError, DecodeError  # noqa: PLC0415  help needs it not
    from interlingua_gateway.config import with_line  # noqa: PLC0415  help needs it not

    try:
        services.check_routes(services.config)
    except CallerError as error:
        if file is None:
            raise
        raise DecodeError(f"{file}: {with_line(error.message, file.read_text(encoding='utf-8'))}") from error


def _print_warnings(services: Services) -> None:
    for warning in services.warnings():
        click.echo(f"warning: {warning}", err=True)


def _serve(state: CommandContext, config: GatewayConfig, host: str, port: int, workers: int, file: Path | None) -> None:
    from interlingua_gateway.workers import run_workers, shared_metrics  # noqa: PLC0415  help needs it not

    with shared_metrics():
        from interlingua_gateway.gateway import create_app  # noqa: PLC0415  it imports prometheus-client
        from interlingua_gateway.large_requests import LargeRequests, large_requests  # noqa: PLC0415  help needs it not
        from interlingua_gateway.server import open_listener, print_address, serve, serve_passed  # noqa: PLC0415  help needs it not
        from interlingua_gateway.services import Services, open_store, with_seal_key  # noqa: PLC0415  help needs it not

        given: dict[str, Any] = {"registry": state.registry, "settings": state.settings}
        given["environ"] = with_seal_key(config, state.environ)

        def reload(services: Services, large: LargeRequests | None = None) -> None:
            if file is not None:
                _reload(services, file, config.record)
            if large is not None:
                large.read_config()

        def start_large(channel: socket.socket, has_changed: bool) -> None:
            app = create_app(config, **given)
            if has_changed:
                reload(app.state.services)
            serve_passed(app, channel, drain=config.drain, reload=partial(reload, app.state.services))

        def start(listener: socket.socket | None = None) -> None:
            with large_requests(start_large, config.drain) as large:
                app = create_app(config, **given)
                if listener is None:
                    _check_routes(app.state.services, file)
                    _print_warnings(app.state.services)
                with listener or open_listener(host, port) as used:
                    reload_all = partial(reload, app.state.services, large)
                    serve(app, used, drain=config.drain, reload=reload_all, large=large, is_worker=listener is not None)

        if workers == 1:
            start()
            return
        store = open_store(config, state.environ)
        if store is None:
            raise click.UsageError("workers need a store that they share: set store in the configuration, or HOME")
        store.close()
        checked = Services(config, **given)
        _check_routes(checked, file)
        _print_warnings(checked)
        asyncio.run(checked.close())
        with open_listener(host, port) as shared:
            print_address(shared)
            run_workers(workers, shared, start)


def _reload(services: Services, file: Path, record: str | None) -> None:
    """Read the configuration again; a wrong one changes nothing."""
    from interlingua.errors import InterlinguaError  # noqa: PLC0415  help needs it not

    try:
        services.change_config(_read(file, record))
    except InterlinguaError as error:
        click.echo(f"the configuration was not read again: {error.message}", err=True)
    else:
        click.echo(f"read {file} again", err=True)


@gateway.command("check")
@_CONFIG
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@plugin_option
@click.pass_obj
def check(state: CommandContext, file: Path | None, as_json: bool) -> None:
    """Check the configuration; print which models answer for which names, for which keys, and at what price."""
    from interlingua_gateway.gateway import create_app  # noqa: PLC0415  help needs it not
    from interlingua_gateway.report import print_report, report_of  # noqa: PLC0415  help needs it not

    config = _read(file)
    app = create_app(config, registry=state.registry, settings=state.settings, environ=state.environ)
    report = report_of(app.state.services)
    asyncio.run(app.state.services.close())
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        print_report(report)
    if report["problems"]:
        raise SystemExit(1)


@gateway.group("keys")
def keys() -> None:
    """Make, list and revoke keys of the gateway."""


@keys.command("add")
@click.argument("name")
@_CONFIG
@click.option("--budget", help="The most that its requests may cost, in USD.")
@click.option("--days", type=click.IntRange(1), help="Days after which the budget renews; without it, never.")
@click.option("--requests-per-minute", type=click.IntRange(1))
@click.option("--tokens-per-minute", type=click.IntRange(1))
@click.option("--model", "models", multiple=True, help="A model name or pattern that the key may use; repeatable.")
@click.option("--pass", "passes", multiple=True, help="A path, or a pattern, of pass-through requests; repeatable.")
@click.option("--admin", is_flag=True, help="The key may also use /admin and read the gateway's metrics.")
@click.option("--keep-answers", is_flag=True, help="Keep its answers, so that it can retrieve and continue them.")
@click.option("--team", default="", help="The team whose budget it shares; /admin makes teams.")
@click.option("--expires-in", type=click.IntRange(1, 36_500), help="Days until the key expires.")
@click.pass_obj
def add_key(
    state: CommandContext,
    name: str,
    file: Path | None,
    budget: str | None,
    days: int | None,
    requests_per_minute: int | None,
    tokens_per_minute: int | None,
    models: tuple[str, ...],
    passes: tuple[str, ...],
    admin: bool,
    keep_answers: bool,
    team: str,
    expires_in: int | None,
) -> None:
    """Make a key for NAME and print it once."""
    from interlingua_gateway.admin import key_fields  # noqa: PLC0415  help needs it not

    given: dict[str, Any] = {
        "name": name, "budget_usd": budget, "budget_days": days, "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute, "models": models, "passes": passes, "admin": admin,
        "keep_answers": keep_answers, "team": team,
        "expires": None if expires_in is None else datetime.now(UTC) + timedelta(days=expires_in),
    }  # fmt: skip
    fields = key_fields({field: value for field, value in given.items() if value is not None})
    store = _store(state, file)
    if team and team not in [one.name for one in store.list_teams()]:
        raise click.BadParameter(f"there is no team {team!r}; /admin makes teams", param_hint="--team")
    key, secret = store.add_key(fields.pop("name"), actor=_ACTOR, **fields)
    click.echo(f"key {key.id} for {key.name}; it is shown only once:", err=True)
    click.echo(secret)


@keys.command("list")
@_CONFIG
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_keys(state: CommandContext, file: Path | None, as_json: bool) -> None:
    """List all keys and their costs in the current period."""
    store = _store(state, file)
    from interlingua_gateway.report import printable  # noqa: PLC0415  help needs it not

    rows = [(key, store.spent(key)) for key in store.list_keys()]
    if as_json:
        import attrs  # noqa: PLC0415  only here

        click.echo(
            json.dumps([{**attrs.asdict(key), "spent": attrs.asdict(spent)} for key, spent in rows], default=str)
        )
        return
    for key, spent in rows:
        ended = (
            "revoked" if key.revoked else "expired" if key.expires and key.expires <= datetime.now(UTC) else "in use"
        )
        budget = f" of {key.budget_usd}" if key.budget_usd is not None else ""
        click.echo(
            f"{key.id}  {ended:8}  {spent.cost_usd:.4f}{budget} USD  {spent.requests} requests  {printable(key.name)}"
        )


@keys.command("revoke")
@click.argument("key_id")
@_CONFIG
@click.pass_obj
def revoke_key(state: CommandContext, key_id: str, file: Path | None) -> None:
    """Revoke the key KEY_ID; running gateways reject it within seconds."""
    if not _store(state, file).revoke_key(key_id, actor=_ACTOR):
        raise click.UsageError(f"no key {key_id!r}; `interlingua gateway keys list` shows them")
    click.echo(f"key {key_id} is revoked", err=True)


def _read(file: Path | None, record: str | None = None) -> GatewayConfig:
    import attrs  # noqa: PLC0415  help needs it not

    from interlingua_gateway.config import GatewayConfig, read_config  # noqa: PLC0415  help needs it not

    config = GatewayConfig() if file is None else read_config(file)
    return config if record is None else attrs.evolve(config, record=record)


def _store(state: CommandContext, file: Path | None) -> GatewayStore:
    from interlingua_gateway.services import open_store  # noqa: PLC0415  help needs it not

    store = open_store(_read(file), state.environ)
    if store is None:
        raise click.UsageError("no store for keys: set store in the configuration, or HOME")
    click.get_current_context().call_on_close(store.close)
    return store

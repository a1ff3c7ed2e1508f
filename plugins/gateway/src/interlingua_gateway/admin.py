"""The admin API below `/admin/api`, the page `/admin` that uses it, and the login of its users."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from importlib.resources import files
from typing import Any

import attrs
from attrs import validators
from cattrs import ClassValidationError, transform_error
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from interlingua.errors import AuthenticationError, CallerError, InterlinguaError, PermissionDeniedError
from interlingua_gateway.activity import DIMENSIONS, Activity
from interlingua_gateway.config import reason_of, strict_converter
from interlingua_gateway.login import LOGIN_PATH
from interlingua_gateway.report import report_of
from interlingua_gateway.services import Services
from interlingua_gateway.store import GatewayStore, Key, Team, ask_store

_BODY = 64 * 1024  # most bytes of a request
_ASSETS = {"page.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8"}
_PAGE_HEADERS = {
    # the page loads nothing from other hosts, runs no inline script, and is shown in no frame
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_Handler = Callable[[Request, GatewayStore, str], Awaitable[Any]]


_MOST = 2_000_000_000  # of counts: the databases have 32 bits for them


class _NotFoundError(CallerError):
    """A key or team that does not exist: status 404."""


def _optional_positive() -> Any:
    return validators.optional([validators.gt(0), validators.le(_MOST)])


def _name(_instance: Any, field: attrs.Attribute[Any], value: str) -> None:
    if not 1 <= len(value) <= 200 or not value.isprintable():
        raise ValueError(f"'{field.name}' must have 1 to 200 printable characters")


def _read_decimal(value: Any, _kind: Any) -> Decimal:
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
            raise TypeError
        found = Decimal(str(value))
    except (InvalidOperation, TypeError):
        raise TypeError(f"must be an amount, such as 2.5, not {value!r}") from None
    if not found.is_finite() or not 0 < found < Decimal("1e12"):
        raise ValueError("must be an amount above 0 and below 1e12")
    return found


def _read_time(value: Any, _kind: Any) -> datetime:
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (ValueError, TypeError):
        raise TypeError(f"must be a time such as 2027-01-31T12:00:00Z, not {value!r}") from None
    if found.tzinfo is None:
        raise ValueError("must have a time zone, such as Z for UTC")
    return found


@attrs.frozen(kw_only=True)
class _KeyForm:
    """The fields of a key that an operator sets, as in `Key`."""

    name: str = attrs.field(validator=_name)
    team: str = ""
    budget_usd: Decimal | None = None
    budget_days: int | None = attrs.field(default=None, validator=_optional_positive())
    requests_per_minute: int | None = attrs.field(default=None, validator=_optional_positive())
    tokens_per_minute: int | None = attrs.field(default=None, validator=_optional_positive())
    models: tuple[str, ...] = attrs.field(
        default=(), validator=validators.deep_iterable(validators.matches_re(r"\S{1,256}"))
    )
    passes: tuple[str, ...] = attrs.field(
        default=(), validator=validators.deep_iterable(validators.matches_re(r"/\S{1,256}"))
    )
    admin: bool = False
    keep_answers: bool = False
    expires: datetime | None = None


@attrs.frozen(kw_only=True)
class _TeamForm:
    """The fields of a team that an operator sets, as in `Team`."""

    budget_usd: Decimal | None = None
    budget_days: int | None = attrs.field(default=None, validator=_optional_positive())


_CONVERTER = strict_converter(_KeyForm, _TeamForm)
_CONVERTER.register_structure_hook(Decimal, _read_decimal)
_CONVERTER.register_structure_hook(datetime, _read_time)


def admin_routes(services: Services) -> list[BaseRoute]:
    """Return the routes of the page and its API. They answer only if requests need keys, and to admins only."""
    admin = _Admin(services)
    handlers: dict[tuple[str, str], _Handler] = {
        ("GET", "/me"): admin.me,
        ("POST", "/logout"): admin.log_out,
        ("GET", "/keys"): admin.list_keys,
        ("POST", "/keys"): admin.add_key,
        ("PATCH", "/keys/{id}"): admin.change_key,
        ("POST", "/keys/{id}/rotate"): admin.rotate_key,
        ("POST", "/keys/{id}/revoke"): admin.revoke_key,
        ("GET", "/teams"): admin.list_teams,
        ("PUT", "/teams/{name}"): admin.set_team,
        ("DELETE", "/teams/{name}"): admin.remove_team,
        ("GET", "/spending"): admin.spending,
        ("GET", "/requests"): admin.requests,
        ("GET", "/errors"): admin.errors,
        ("GET", "/routes"): admin.routes,
        ("GET", "/changes"): admin.changes,
    }
    api = [Route(path, admin.guarded(handler), methods=[method]) for (method, path), handler in handlers.items()]
    pages = [Route(f"/admin/{name}", _asset(name, kind), methods=["GET"]) for name, kind in _ASSETS.items()]
    if (login := services.login) is not None:
        pages += [
            Route(LOGIN_PATH, login.begin, methods=["GET"]),
            Route(f"{LOGIN_PATH}/done", login.finish, methods=["GET"]),
        ]
    return [Route("/admin", _asset("page.html", "text/html; charset=utf-8")), *pages, Mount("/admin/api", routes=api)]


def _asset(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_request: Request) -> Response:
        data = files("interlingua_gateway").joinpath("page", name).read_bytes()
        return Response(data, headers={**_PAGE_HEADERS, "content-type": kind})

    return answer


class _Admin:
    """The handlers of the admin API, which return plain values.

    The actor of a change is the id of the admin's key, or the address of an administrator who has logged in.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    def guarded(self, handler: _Handler) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that lets admins call a handler, and writes its failures as JSON."""

        async def answer(request: Request) -> Response:
            status, body = 200, None
            try:
                store = self._services.store
                if self._services.config.auth != "keys" or store is None:
                    raise PermissionDeniedError('the admin API needs auth = "keys" in the configuration')
                body = await handler(request, store, await self._actor(request))
                if isinstance(body, Response):
                    return body
            except InterlinguaError as error:
                statuses: dict[type, int] = {AuthenticationError: 401, PermissionDeniedError: 403, _NotFoundError: 404}
                other = 400 if isinstance(error, CallerError) else 503
                status, body = statuses.get(type(error), other), {"error": error.message}
                if status == 401 and self._services.login is not None:
                    body["login"] = LOGIN_PATH
            text = json.dumps(body, default=str)
            return Response(text, status, {"content-type": "application/json", "cache-control": "no-store"})

        return answer

    async def _actor(self, request: Request) -> str:
        """Return who sends a request: an admin's key, or the administrator who has logged in with the browser."""
        login = self._services.login
        if login is not None and "authorization" not in request.headers:
            who = await login.find(request)
            if who is not None:
                return who.name
        key = await self._services.access.check_admin(request.headers, {})
        return "" if key is None else key.id

    async def me(self, _request: Request, store: GatewayStore, actor: str) -> Any:
        names = {key.id: key.name for key in await ask_store(store.list_keys)}
        return {"id": actor, "name": names.get(actor, actor)}

    async def log_out(self, request: Request, _store: GatewayStore, _actor: str) -> Any:
        answer = Response("{}", headers={"content-type": "application/json", "cache-control": "no-store"})
        if self._services.login is not None:
            await self._services.login.end(request, answer)
        return answer

    # -- keys ----------------------------------------------------------------------------------------------------

    async def list_keys(self, _request: Request, store: GatewayStore, _actor: str) -> Any:
        return await ask_store(lambda: [_with_spent(store, key) for key in store.list_keys()])

    async def add_key(self, request: Request, store: GatewayStore, actor: str) -> Any:
        given = key_fields(await _body_of(request))
        await _check_team(store, given["team"])
        key, secret = await ask_store(lambda: store.add_key(given.pop("name"), actor=actor, **given))
        return {"key": _with_spent(store, key), "secret": secret}

    async def change_key(self, request: Request, store: GatewayStore, actor: str) -> Any:
        own = request.path_params["id"]
        now = next((key for key in await ask_store(store.list_keys) if key.id == own), None)
        if now is None:
            raise _NotFoundError(f"no key {own!a}")
        body, names = await _body_of(request), attrs.fields_dict(_KeyForm)
        form = _structured({name: getattr(now, name) for name in names} | body, _KeyForm)
        changes = {name: getattr(form, name) for name in names if name in body}
        await _check_team(store, form.team)
        key = await ask_store(lambda: store.change_key(own, changes, actor=actor))
        self._services.access.forget_keys()
        return _with_spent(store, key or now)

    async def rotate_key(self, request: Request, store: GatewayStore, actor: str) -> Any:
        secret = await ask_store(lambda: store.rotate_key(request.path_params["id"], actor=actor))
        self._services.access.forget_keys()
        if secret is None:
            raise _NotFoundError(f"no key {request.path_params['id']!a}")
        return {"secret": secret}

    async def revoke_key(self, request: Request, store: GatewayStore, actor: str) -> Any:
        done = await ask_store(lambda: store.revoke_key(request.path_params["id"], actor=actor))
        self._services.access.forget_keys()
        if not done:
            raise _NotFoundError(f"no key {request.path_params['id']!a}")
        return {}

    # -- teams ---------------------------------------------------------------------------------------------------

    async def list_teams(self, _request: Request, store: GatewayStore, _actor: str) -> Any:
        return await ask_store(lambda: [_with_spent(store, team) for team in store.list_teams()])

    async def set_team(self, request: Request, store: GatewayStore, actor: str) -> Any:
        form, name = _structured(await _body_of(request), _TeamForm), request.path_params["name"]
        if not name.isprintable() or len(name) > 200:
            raise CallerError("name must have at most 200 printable characters")
        team = await ask_store(lambda: store.set_team(name, form.budget_usd, form.budget_days, actor=actor))
        return _with_spent(store, team)

    async def remove_team(self, request: Request, store: GatewayStore, actor: str) -> Any:
        if not await ask_store(lambda: store.remove_team(request.path_params["name"], actor=actor)):
            raise _NotFoundError(f"no team {request.path_params['name']!a}")
        self._services.access.forget_keys()
        return {}

    # -- reports -------------------------------------------------------------------------------------------------

    async def spending(self, request: Request, store: GatewayStore, _actor: str) -> Any:
        by = request.query_params.get("by", "key").split(",")
        days = request.query_params.get("days", "30")
        if not set(by) <= set(DIMENSIONS) or len(set(by)) != len(by):
            raise CallerError(f"by must be some of {', '.join(DIMENSIONS)}")
        if not days.isascii() or not days.isdecimal() or not 1 <= int(days) <= 3_660:
            raise CallerError("days must be a number from 1 to 3660")
        return await ask_store(Activity(store.database).spending, by, int(days))

    async def requests(self, _request: Request, store: GatewayStore, _actor: str) -> Any:
        return await ask_store(Activity(store.database).requests)

    async def errors(self, _request: Request, store: GatewayStore, _actor: str) -> Any:
        return await ask_store(Activity(store.database).failures)

    async def changes(self, _request: Request, store: GatewayStore, _actor: str) -> Any:
        return await ask_store(Activity(store.database).changes)

    async def routes(self, _request: Request, _store: GatewayStore, _actor: str) -> Any:
        report = await ask_store(report_of, self._services)
        found = self._services.route_models()
        health = {name: self._services.health.report(models) for name, models in found.items()}
        return {**{name: report[name] for name in ("apis", "routes", "other_names", "problems")}, "health": health}


async def _body_of(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise CallerError("the content-type must be application/json")
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > _BODY:
            raise CallerError(f"a request may have {_BODY} bytes here")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise CallerError("the body must be JSON") from None
    if not isinstance(body, dict):
        raise CallerError("the body must be a JSON object")
    return body


def key_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a new key, for `GatewayStore.add_key`.

    Args:
        given: the fields as plain values; those that are left out have their defaults.

    Raises:
        CallerError: a value is invalid.
    """
    return attrs.asdict(_structured(dict(given), _KeyForm))


def _structured(body: dict[str, Any], kind: type[Any]) -> Any:
    try:
        return _CONVERTER.structure(body, kind)
    except ClassValidationError as error:
        found = [each.rpartition(" @ $") for each in transform_error(error, format_exception=reason_of)]
        reasons = [what if what[:1] == "'" else f"{at.strip('.') or 'the body'} {what}" for what, _, at in found]
        raise CallerError("; ".join(reasons)) from error


async def _check_team(store: GatewayStore, name: str) -> None:
    if name and name not in [team.name for team in await ask_store(store.list_teams)]:
        raise CallerError(f"there is no team {name!a}")


def _with_spent(store: GatewayStore, owner: Key | Team) -> dict[str, Any]:
    return {**attrs.asdict(owner), "spent": attrs.asdict(store.spent(owner))}

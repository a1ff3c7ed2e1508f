"""Sources of the key: settings, environment, profile files, and botocore for all others."""

from __future__ import annotations

import configparser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from interlingua.errors import AuthenticationError, ProviderError
from interlingua.plugins import ConnectionSettings
from interlingua_bedrock.signature import AwsKey

BEARER = "AWS_BEARER_TOKEN_BEDROCK"
KEY_NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
PROFILE_NAMES = ("AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE")
_ELSEWHERE = (
    *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    "AWS_DEFAULT_PROFILE",
)
_OPTIONS = ("access_key_id", "secret_access_key", "session_token")
_FIELDS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_NONE = (
    "no AWS credentials: pass access_key_id and secret_access_key, set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or "
    "AWS_BEARER_TOKEN_BEDROCK, or write a profile"
)
_INSTALL = "; for containers, instances, single sign-on and roles install interlingua-bedrock[aws]"


def find_bearer(settings: ConnectionSettings) -> str | None:
    """Return the service's API key, sent as a bearer token; it has precedence over signing keys."""
    return settings.api_key or settings.environ.get(BEARER) or None


def may_find_key(settings: ConnectionSettings) -> bool:
    """Return whether a key is set, or a source of keys; reads no files and asks no service."""
    given = (*_OPTIONS[:2], "credentials", "profile")
    if any(settings.options.get(name) is not None for name in given):
        return True
    return any(settings.environ.get(name) for name in (*KEY_NAMES[:2], *PROFILE_NAMES, *_ELSEWHERE))


def find_credentials(settings: ConnectionSettings) -> Callable[[ProviderError | None], Any]:
    """Return a function that returns the key; called for the first request, and again after a key was rejected.

    Options: `access_key_id`, `secret_access_key`, `session_token`; `profile`; or `credentials`: a function that returns
    an `AwsKey` or a mapping of the three (or an awaitable of either), or the string `botocore`, to ask botocore alone.
    """
    options, environ = settings.options, dict(settings.environ)
    given = [options.get(name) for name in _OPTIONS]
    profile, source = options.get("profile"), options.get("credentials")

    def credentials(refused: ProviderError | None) -> Any:
        if callable(source):
            return _from_source(source(refused))
        if source == "botocore":
            return _ask_botocore(profile, environ)
        if given[0] and given[1]:
            return _make_key(given)
        if profile is None and environ.get(KEY_NAMES[0]) and environ.get(KEY_NAMES[1]):
            return _make_key([environ.get(name) for name in KEY_NAMES])
        name = str(profile or environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or "default")
        return read_profile(name, environ) or _ask_botocore(profile and name, environ)

    return credentials


def _from_source(made: Any) -> Any:
    if made is None or isinstance(made, AwsKey):
        return made
    if hasattr(made, "__await__"):
        return _await_key(made)
    return AwsKey(**made)


async def _await_key(made: Any) -> Any:
    return _from_source(await made)


def _make_key(values: Any) -> AwsKey:
    return AwsKey(access_key_id=values[0], secret_access_key=values[1], session_token=values[2] or None)


def read_profile(name: str, environ: Mapping[str, str]) -> AwsKey | None:
    """Return the key of a profile, from the credentials file or else the config file."""
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or "~")
    files = (("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
             ("AWS_CONFIG_FILE", "config", name if name == "default" else f"profile {name}"))  # fmt: skip
    for variable, file, section in files:
        path = Path(environ.get(variable) or home / ".aws" / file).expanduser()
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(path.read_text(encoding="utf-8"))
        except OSError:
            continue
        except (configparser.Error, UnicodeDecodeError):
            raise AuthenticationError(f"{path.name} of the AWS profiles cannot be read", retryable=False) from None
        values = [parser.get(section, field, fallback=None) for field in _FIELDS]
        if values[0] and values[1]:
            return _make_key(values)
    return None


def _ask_botocore(profile: str | None, environ: Mapping[str, str]) -> AwsKey:
    """Return the key from botocore's own sources: containers, instances, single sign-on, roles."""
    try:
        from botocore.session import Session  # type: ignore[import-untyped]  # noqa: PLC0415  an extra, and slow
    except ImportError:
        raise AuthenticationError(_NONE + _INSTALL, retryable=False) from None
    found = Session(profile=profile or environ.get("AWS_PROFILE")).get_credentials()
    if found is None:
        raise AuthenticationError(_NONE, retryable=False)
    frozen = found.get_frozen_credentials()
    return AwsKey(
        access_key_id=frozen.access_key,
        secret_access_key=frozen.secret_key,
        session_token=frozen.token or None,
        expires_at=getattr(found, "_expiry_time", None),  # of those that run out
    )

"""Reads connections of Airflow, with or without Airflow installed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tidemill.core.errors import ConfigError


def connection(name: str, what: str, environ: Mapping[str, str] = os.environ) -> Mapping[str, str]:
    """`login`, `password` and the extras of an Airflow connection, without empty values.

    It is read from the environment, in Airflow's form (JSON or a URI), else from Airflow.

    Raises:
        ConfigError: there is none, or it is neither JSON nor a URI; the text begins with `what`, who needs it.
    """
    text = environ.get(f"AIRFLOW_CONN_{name.upper()}")
    if text is None:
        return _of_airflow(name, what)
    if not text.lstrip().startswith("{"):
        parts = urlsplit(text)
        found = {"login": unquote(parts.username or ""), "password": unquote(parts.password or "")}
        more = dict(parse_qsl(parts.query))
        return _filled(found | _values(more.pop("__extra__", "{}"), name, what) | more)
    data = _values(text, name, what)
    more = _values(data.get("extra") or "{}", name, what)
    return _filled({"login": data.get("login"), "password": data.get("password")} | more)


def _values(given: object, name: str, what: str) -> dict[str, Any]:
    """A JSON object, which may be given as text."""
    try:
        found = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ConfigError(f"{what}: AIRFLOW_CONN_{name.upper()}: expected a URI, or JSON with an object, found neither")
    return found


def _of_airflow(name: str, what: str) -> Mapping[str, str]:
    try:
        found = import_module("airflow.sdk").Connection.get(name)
    except ImportError:
        raise ConfigError(
            f"{what}: the Airflow connection {name} is asked for, and Airflow is not there",
            fix=f"export AIRFLOW_CONN_{name.upper()}, or take the credentials from elsewhere",
        ) from None
    except Exception as error:
        raise ConfigError(f"{what}: Airflow has no connection {name}: {type(error).__name__}") from None
    return _filled({"login": found.login, "password": found.password} | found.extra_dejson)


def _filled(values: Mapping[str, Any]) -> Mapping[str, str]:
    return {key: str(value) for key, value in values.items() if value}

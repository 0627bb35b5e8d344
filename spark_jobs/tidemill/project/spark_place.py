"""Where Spark runs: the settings `[spark] remote` and `master`, and an environment variable."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tidemill.core.errors import ConfigError
from tidemill.project.settings_file import SettingsFile

REMOTE = "TIDEMILL_SPARK_REMOTE"
"""An environment variable with the address of a Spark Connect server, instead of `[spark] remote` or `master`."""


def spark_place(file: SettingsFile) -> dict[str, Any]:
    """The settings that say where Spark runs. The environment variable goes before the file.

    Raises:
        ConfigError: the file, or the variable, names no such place.
    """
    remote, master = _remote(file, file.get("spark", "remote", "")), _master(file, file.data.get("spark", {}))
    named = os.environ.get(REMOTE, "")
    if named and not named.startswith("sc://"):
        raise ConfigError(f"{REMOTE}: expected sc://HOST:PORT, found {named!r}", fix='for example "sc://spark:15002"')
    return {"remote": named, "master": ""} if named else {"remote": remote, "master": master}


def _master(file: SettingsFile, spark: Mapping[str, Any]) -> str:
    master: str = spark.get("master", "")
    if master and "remote" in spark:
        raise ConfigError(
            f"{file.at('spark', 'master')}: [spark] has a Connect server, `remote`, and a cluster, `master`: one of "
            "them is used",
            fix="remove one of the two",
        )
    if master.startswith("local"):
        where = file.at("spark", "master")
        raise ConfigError(f"{where}: [spark] master: expected a cluster, found {master}", fix="say `cores` instead")
    return master


def _remote(file: SettingsFile, remote: str) -> str:
    where = file.at("spark", "remote")
    if remote and not remote.startswith("sc://"):
        raise ConfigError(
            f"{where}: [spark] remote: expected sc://HOST:PORT, found {remote!r}", fix='for example "sc://spark:15002"'
        )
    if "token=" in remote:
        raise ConfigError(
            f"{where}: [spark] remote has a token, which does not belong in a file",
            fix="leave it out, and export SPARK_CONNECT_AUTHENTICATE_TOKEN where batches run",
        )
    return remote

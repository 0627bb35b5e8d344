"""Access to an object store: its settings, and credentials from the usual places.

[s3]                                  all optional; without settings, AWS as the environment says
endpoint = "https://minio:9000"       a store other than Amazon's
region = "eu-central-1"
path_style = true                     the bucket is in the path; default with an endpoint
credentials = "profile:reports"       or "airflow:CONNECTION"; default: environment, profile, role, as boto3 looks
role = "arn:aws:iam::1234:role/lake"  a role to assume with those credentials
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from botocore.config import Config  # type: ignore[import-untyped]
from botocore.credentials import (  # type: ignore[import-untyped]
    AssumeRoleCredentialFetcher,
    CredentialResolver,
    DeferredRefreshableCredentials,
)
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]
from botocore.session import Session  # type: ignore[import-untyped]

from tidemill.core.errors import ConfigError, StoreUnreachable
from tidemill.stores.connections import connection

_ANYWHERE = "us-east-1"
_PROVIDERS = "org.apache.hadoop.fs.s3a."


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys that sign requests now. `token` is empty unless they are temporary."""

    access: str
    secret: str
    token: str = ""


class S3Access:
    """The settings of a store, and its credentials. Temporary keys are renewed before they end.

    Raises:
        ConfigError: the credentials that the settings name do not exist, or the endpoint is not a URL.
    """

    def __init__(self, settings: Mapping[str, str | bool], *, section: str = "s3") -> None:
        self._settings, self._section = settings, section
        self._connection = _connection(section, str(settings.get("credentials", "")))
        if self.endpoint and not self.endpoint.startswith(("http://", "https://")):
            raise ConfigError(f"[{section}] endpoint: expected http:// or https:// and a host, found {self.endpoint}")

    def __repr__(self) -> str:
        return f"S3Access({self.endpoint or 'AWS'}, {self.region})"

    @property
    def endpoint(self) -> str:
        """The address of the store; empty for Amazon's."""
        return str(self._settings.get("endpoint") or self._connection.get("endpoint_url") or "").rstrip("/")

    @cached_property
    def region(self) -> str:
        """The region of the buckets."""
        named = self._settings.get("region") or self._connection.get("region_name")
        return str(named or os.environ.get("AWS_REGION") or self._asking.get_config_variable("region") or _ANYWHERE)

    @property
    def path_style(self) -> bool:
        """Whether requests name the bucket in the path, not in the host's name."""
        return bool(self._settings.get("path_style", bool(self.endpoint)))

    def keys(self) -> Keys:
        """The keys that sign requests from now on; temporary keys are valid for a quarter of an hour at least.

        Raises:
            ConfigError: no credentials were found.
            StoreUnreachable: the role was not granted.
        """
        with _refusals(self._section):
            found = self._credentials.get_frozen_credentials()
        return Keys(access=str(found.access_key), secret=str(found.secret_key), token=str(found.token or ""))

    def delta(self) -> dict[str, str]:
        """The options of delta-rs. Commits are conditional puts, so that several processes can write a table."""
        keys = self.keys()
        options = {
            "AWS_ACCESS_KEY_ID": keys.access,
            "AWS_SECRET_ACCESS_KEY": keys.secret,
            "AWS_REGION": self.region,
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": str(not self.path_style).lower(),
            "aws_conditional_put": "etag",
        }
        if keys.token:
            options["AWS_SESSION_TOKEN"] = keys.token
        if self.endpoint:
            options |= {"AWS_ENDPOINT_URL": self.endpoint, "AWS_ALLOW_HTTP": str(not self._encrypted).lower()}
        return options

    def spark(self) -> dict[str, str]:
        """The settings of a Spark session for Hadoop's S3A. Spark does not show the keys in its logs and pages."""
        keys = self.keys()
        provider = "TemporaryAWSCredentialsProvider" if keys.token else "SimpleAWSCredentialsProvider"
        conf = {
            "fs.s3a.aws.credentials.provider": f"{_PROVIDERS}{provider}",
            "fs.s3a.access.key": keys.access,
            "fs.s3a.secret.key": keys.secret,
            "fs.s3a.endpoint.region": self.region,
            "fs.s3a.path.style.access": str(self.path_style).lower(),
        }
        if keys.token:
            # A file system from Hadoop's cache would continue with keys that have ended.
            conf |= {"fs.s3a.session.token": keys.token, "fs.s3a.impl.disable.cache": "true"}
        if self.endpoint:
            conf |= {"fs.s3a.endpoint": self.endpoint, "fs.s3a.connection.ssl.enabled": str(self._encrypted).lower()}
        return conf

    def client(self, service: str = "s3") -> Any:
        """A boto client of the store, or of another service there; its keys renew themselves."""
        self.keys()
        with _refusals(self._section):
            return self._session.create_client(
                service,
                region_name=self.region,
                endpoint_url=self.endpoint or None,
                config=Config(
                    connect_timeout=10,
                    read_timeout=60,
                    retries={"mode": "standard", "total_max_attempts": 5},
                    s3={"addressing_style": "path" if self.path_style else "virtual"},
                    # Stores other than Amazon's do not know checksums after the data.
                    request_checksum_calculation="when_required",
                    response_checksum_validation="when_required",
                ),
            )

    @property
    def _encrypted(self) -> bool:
        return not self.endpoint.startswith("http://")

    @cached_property
    def _asking(self) -> Session:
        """A session that finds credentials where the settings say."""
        kind, _, name = str(self._settings.get("credentials", "")).partition(":")
        session = Session(profile=name if kind == "profile" else self._connection.get("profile_name"))
        if "login" in self._connection:
            given = (self._connection.get(key) for key in ("login", "password", "aws_session_token"))
            session.set_credentials(*given)
        return session

    @cached_property
    def _session(self) -> Session:
        """A session with the credentials to use: those of the assumed role, if one is set."""
        session = self._asking
        role = self._settings.get("role") or self._connection.get("role_arn")
        if role and (found := session.get_credentials()):
            create = partial(session.create_client, region_name=self.region)
            fetcher = AssumeRoleCredentialFetcher(create, found, str(role))
            session = Session()
            session.register_component("credential_provider", CredentialResolver([_Role(fetcher)]))
        return session

    @cached_property
    def _credentials(self) -> Any:
        found = self._session.get_credentials()
        if found is None:
            raise ConfigError(
                f"[{self._section}] nobody says who asks: no keys in the environment, in a profile, or from a role of "
                "this machine",
                fix=f"export AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or set [{self._section}] credentials",
            )
        return found


class _Role:
    """A botocore provider of credentials: those of an assumed role, which renew themselves."""

    METHOD = "assume-role"

    def __init__(self, fetcher: Any) -> None:
        self._fetcher = fetcher

    def load(self) -> Any:
        return DeferredRefreshableCredentials(self._fetcher.fetch_credentials, self.METHOD)


@contextmanager
def _refusals(section: str) -> Iterator[None]:
    """Turn errors of boto about credentials into Tidemill's errors."""
    try:
        yield
    except ClientError as error:
        raise StoreUnreachable(
            f"[{section}] the role was not given: {error}", fix=f"check [{section}] role and who may assume it"
        ) from None
    except BotoCoreError as error:
        raise ConfigError(
            f"[{section}] {error}", fix=f"check [{section}] credentials in tidemill.toml and the environment"
        ) from None


def _connection(section: str, credentials: str) -> Mapping[str, str]:
    kind, colon, name = credentials.partition(":")
    if not credentials or (kind == "profile" and name):
        return {}
    if kind == "airflow" and name:
        found = connection(name, f"[{section}]")
        if ("login" in found) != ("password" in found):
            raise ConfigError(f"[{section}] the Airflow connection {name}: expected login and password, found one")
        return found
    raise ConfigError(
        f'[{section}] credentials: expected "profile:NAME" or "airflow:CONNECTION", found {kind + colon!r}...',
        fix="leave it out to take them from the environment, a profile or a role",
    )

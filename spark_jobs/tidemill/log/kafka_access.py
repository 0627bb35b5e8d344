"""How to reach a Kafka cluster: addresses, security and credentials, in the form that each client needs.

Secrets come from the environment or from an Airflow connection, never from a file of the project. No `repr` shows them,
and nothing here writes them anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tidemill.core.errors import ConfigError
from tidemill.stores.connections import connection

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
_MODULES = {"PLAIN": "plain.PlainLoginModule"}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_JAAS = "org.apache.kafka.common.security."


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How a client reaches the cluster. `ca` is a PEM file of trusted certificates; without it, the machine's count."""

    servers: str
    protocol: str = "PLAINTEXT"
    mechanism: str = "SCRAM-SHA-512"
    user: str = ""
    password: str = field(default="", repr=False)
    ca: str = ""

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ConfigError(f"Kafka: security is one of {', '.join(PROTOCOLS)}, found {self.protocol!r}")
        if self.mechanism not in MECHANISMS:
            raise ConfigError(f"Kafka: mechanism is one of {', '.join(MECHANISMS)}, found {self.mechanism!r}")
        if self.is_known and not self.user:
            raise ConfigError(
                f"Kafka: {self.protocol} needs a user and a password, and there is none",
                fix="name the environment variable or the Airflow connection that has them: [log] credentials",
            )

    @property
    def is_known(self) -> bool:
        """Whether clients log in."""
        return self.protocol.startswith("SASL")

    def client(self) -> dict[str, str]:
        """Settings of librdkafka, the C client that Python uses."""
        found = {"bootstrap.servers": self.servers, "security.protocol": self.protocol}
        if self.ca:
            found["ssl.ca.location"] = self.ca
        if self.is_known:
            found |= {"sasl.mechanism": self.mechanism, "sasl.username": self.user, "sasl.password": self.password}
        return found

    def java(self) -> dict[str, str]:
        """Settings of Kafka's own client, which Spark uses."""
        found = {"bootstrap.servers": self.servers, "security.protocol": self.protocol}
        if self.ca:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca}
        if self.is_known:
            found |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": self.jaas}
        return found

    @property
    def jaas(self) -> str:
        """The login of Kafka's Java client or broker: its JAAS module with user and password."""
        module = _MODULES.get(self.mechanism, "scram.ScramLoginModule")
        login = f"username={_quoted(self.user)} password={_quoted(self.password)}"
        return f"{_JAAS}{module} required {login};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def access_of(settings: Mapping[str, str], environ: Mapping[str, str]) -> Access:
    """Read the access from a project's `[log]` settings and the environment.

    `credentials` names an environment variable that holds `user:password`. The form `airflow:ID` names an Airflow
    connection; Airflow, too, can take it from the environment.

    Raises:
        ConfigError: a named variable, connection or file is missing or malformed.
    """
    credentials = settings.get("credentials", "")
    user, password = _login(credentials, environ) if credentials else ("", "")
    if credentials and settings.get("security", "PLAINTEXT") in ("PLAINTEXT", "SSL"):
        raise ConfigError(
            "Kafka: [log] credentials are never shown to the cluster without SASL",
            fix='set security = "SASL_SSL" or "SASL_PLAINTEXT", or leave credentials out',
        )
    if (ca := settings.get("ca")) and not Path(ca).is_file():
        raise ConfigError(
            f"Kafka: there is no file {ca}, which [log] ca names", fix="put the certificates there, in PEM"
        )
    return Access(
        servers=settings["kafka"],
        protocol=settings.get("security", "PLAINTEXT"),
        mechanism=settings.get("mechanism", MECHANISMS[0]),
        user=user,
        password=password,
        ca=settings.get("ca", ""),
    )


def _login(credentials: str, environ: Mapping[str, str]) -> tuple[str, str]:
    if credentials.startswith("airflow:"):
        found = connection(credentials.removeprefix("airflow:"), "Kafka", environ)
        return found.get("login", ""), found.get("password", "")
    if not _VARIABLE.match(credentials):
        # The text may be a secret, so the error does not repeat it.
        raise ConfigError(
            "Kafka: [log] credentials: expected the name of an environment variable or airflow:CONNECTION",
            fix='export KAFKA_LOGIN=USER:PASSWORD where batches run, and say credentials = "KAFKA_LOGIN"',
        )
    text = environ.get(credentials)
    if text is None:
        raise ConfigError(
            f"Kafka: the environment has no {credentials}, which [log] credentials names",
            fix=f"export {credentials}=USER:PASSWORD where batches run",
        )
    user, colon, password = text.partition(":")
    if not (user and colon):
        raise ConfigError(f"Kafka: {credentials} in the environment: expected USER:PASSWORD, which it is not")
    return user, password

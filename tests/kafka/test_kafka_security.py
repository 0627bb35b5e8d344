"""A broker that wants to know who comes, over encrypted connections: clients of Python and of Spark get in."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from broker import Broker, Login, Tls
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from support.commands import type_command
from support.projects import EVENTS_CONTRACT, SUMS_CONTRACT, SUMS_PIPELINE, Mill, a_project, an_event
from tidemill.core.errors import ConfigError, LogRefused
from tidemill.log.kafka_access import Access, access_of
from tidemill.log.records import NewRecord
from tidemill.project.project import Project

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

USER, PASSWORD, ROTATED = "miller", 'gr"ain\\; x', "fl'our;y"


def a_certificate(folder: Path) -> Tls:
    """A certificate for 127.0.0.1 that signs itself."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(made.public_bytes(pem))
    plain = serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return Tls(certificate=folder / "ca.pem", key=folder / "key.pem")


@pytest.fixture
def guarded(tmp_path: Path, a_broker: Callable[..., Broker]) -> Broker:
    """A broker with TLS and SASL."""
    return a_broker(tls=a_certificate(tmp_path), login=Login(user=USER, password=PASSWORD)).start()


def rotate(broker: Broker, access: Access, password: str) -> None:
    """From now on the user has another password, and no longer the old one."""
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    changed = UserScramCredentialUpsertion(USER, scram, password.encode())
    admin = AdminClient(access.client())
    for done in admin.alter_user_scram_credentials([changed]).values():
        done.result(20)


def test_batches_come_in_although_the_password_is_rotated_between_them_and_leave_no_secret(
    tmp_path: Path, spark: Any, guarded: Broker, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    text = SUMS_PIPELINE.replace("WINDOW", 'Tumbling("10 seconds")').replace("DELAY", "0 s")
    text = text.replace("LATENESS", "0 s").replace("TRIGGER", "on_close")
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "sums": SUMS_CONTRACT}
    # Python's client asks for offsets; that of Spark reads records, however few.
    folder = a_project(tmp_path / "mill", text, contracts, driver_records=0).folder
    with (folder / "tidemill.toml").open("a") as file:
        file.write(f'[log]\nkafka = "{guarded.servers}"\nsecurity = "{guarded.protocol}"\n')
        file.write('credentials = "airflow:kafka"\nca = "../ca.pem"\n')
    connection = json.dumps({"conn_type": "kafka", "login": USER, "password": PASSWORD})
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA", connection)
    mill = Mill(Project.load(folder), spark, "sums")
    log: Any = mill.project.log()
    log.create_topic("events", 1)
    log.append("events", 0, [NewRecord(value=an_event(s)) for s in (1, 2, 15)])
    assert mill.run().accounts["events"].read == 3
    rotate(guarded, log.access, ROTATED)
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA", connection.replace(json.dumps(PASSWORD), json.dumps(ROTATED)))
    # Every run of a scheduler loads the project, and asks for the credentials anew.
    mill = Mill(Project.load(folder), spark, "sums")
    mill.log.append("events", 0, [NewRecord(value=an_event(s)) for s in (16, 27)])
    assert mill.run(drain=True).accounts["events"].read == 2
    assert [r["n"] for r in mill.published()] == [2, 2, 1]
    written = [p for p in folder.rglob("*") if p.is_file()]
    assert written
    assert type_command(folder, "history", "sums", "--json").code == 0
    said = capfd.readouterr()
    for secret in (PASSWORD, ROTATED):
        assert not [p for p in written if secret.encode() in p.read_bytes()]
        assert secret not in said.out + said.err


@pytest.mark.long
def test_a_wrong_password_is_refused_and_not_repeated(guarded: Broker, tmp_path: Path) -> None:
    from tidemill.log.kafka import KafkaLog

    settings = {
        "kafka": guarded.servers,
        "security": "SASL_SSL",
        "credentials": "LOGIN",
        "ca": str(tmp_path / "ca.pem"),
    }
    log = KafkaLog(access_of(settings, {"LOGIN": f"{USER}:another one"}))
    with pytest.raises(LogRefused, match=r"does not let us in: .*invalid credentials") as refused:
        log.topics()
    assert "another one" not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "environ", "said"),
    [
        ({"security": "SASL_SSL"}, {}, "needs a user and a password"),
        ({"security": "TLS"}, {}, "security is one of"),
        ({"security": "SASL_SSL", "credentials": "LOGIN"}, {}, "the environment has no LOGIN"),
        ({"security": "SASL_SSL", "credentials": "LOGIN"}, {"LOGIN": "nobody"}, "expected USER:PASSWORD"),
        ({"security": "SASL_SSL", "credentials": "nobody:s3cret"}, {}, "expected the name of an environment variable"),
        ({"credentials": "LOGIN"}, {"LOGIN": "a:b"}, "never shown to the cluster without SASL"),
        ({"security": "SSL", "ca": "/nowhere/ca.pem"}, {}, "there is no file /nowhere/ca.pem"),
        ({"security": "SASL_SSL", "mechanism": "MD5", "credentials": "LOGIN"}, {"LOGIN": "a:b"}, "mechanism is one of"),
    ],
)
def test_wrong_settings_say_what_to_do(settings: dict[str, str], environ: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        access_of({"kafka": "broker:9092", **settings}, environ)
    assert "nobody" not in str(refused.value)


def test_a_connection_of_airflow_may_be_a_uri() -> None:
    environ = {"AIRFLOW_CONN_LOG": "kafka://us%40er:p%2Fw@"}
    settings = {"kafka": "broker:9092", "security": "SASL_PLAINTEXT", "credentials": "airflow:log"}
    access = access_of(settings, environ)
    assert (access.user, access.password) == ("us@er", "p/w")
    assert "p/w" not in repr(access)

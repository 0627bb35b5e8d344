"""Who asks a store: from the environment, a profile, an Airflow connection, a role; and nobody tells their keys."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from store import KEY, SECRET, ObjectStore

from tidemill.core.errors import ConfigError
from tidemill.stores.access import Keys, S3Access


@pytest.fixture(scope="module")
def server(moto: ObjectStore) -> ObjectStore:
    return moto


def test_keys_come_from_the_environment(access: S3Access) -> None:
    assert access.keys() == Keys(access=KEY, secret=SECRET)
    assert access.delta()["AWS_ACCESS_KEY_ID"] == KEY
    assert access.spark()["fs.s3a.aws.credentials.provider"].endswith(".SimpleAWSCredentialsProvider")
    assert SECRET not in repr(access)


def test_keys_come_from_a_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[mine]\naws_access_key_id = of-mine\naws_secret_access_key = secret\n")
    (tmp_path / "config").write_text("[profile mine]\nregion = eu-north-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.delenv("AWS_REGION", raising=False)
    access = S3Access({"credentials": "profile:mine"})
    assert (access.keys().access, access.region) == ("of-mine", "eu-north-1")
    with pytest.raises(ConfigError, match="another"):
        S3Access({"credentials": "profile:another"}).keys()


@pytest.mark.parametrize("form", ["json", "uri"])
def test_keys_come_from_an_airflow_connection(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    extra = {"region_name": "eu-west-1", "endpoint_url": "http://127.0.0.1:9000", "aws_session_token": "for an hour"}
    as_json = json.dumps({"conn_type": "aws", "login": "who", "password": "se/cret", "extra": extra})
    more = "region_name=eu-west-1&endpoint_url=http%3A%2F%2F127.0.0.1%3A9000&aws_session_token=for+an+hour"
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", as_json if form == "json" else f"aws://who:se%2Fcret@/?{more}")
    access = S3Access({"credentials": "airflow:lake"})
    assert access.keys() == Keys(access="who", secret="se/cret", token="for an hour")
    assert (access.region, access.endpoint, access.path_style) == ("eu-west-1", "http://127.0.0.1:9000", True)
    assert access.spark()["fs.s3a.impl.disable.cache"] == "true"
    assert access.delta()["AWS_SESSION_TOKEN"] == "for an hour"


def test_a_role_is_assumed_and_renewed(monkeypatch: pytest.MonkeyPatch, server: ObjectStore, bucket: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.endpoint)
    role = "arn:aws:iam::123456789012:role/lake"
    access = S3Access({"endpoint": server.endpoint, "role": role})
    keys = access.keys()
    assert keys.access != KEY
    assert keys.token
    assert access.keys() == keys
    later = datetime.now(UTC) + timedelta(minutes=55)
    monkeypatch.setattr("botocore.credentials._local_now", lambda: later)
    monkeypatch.setattr(access._credentials, "_time_fetcher", lambda: later)
    renewed = access.keys()
    assert renewed.token
    assert renewed != keys, "they would end in five minutes"
    assert [b["Name"] for b in access.client().list_buckets()["Buckets"] if b["Name"] == bucket] == [bucket]


@pytest.mark.parametrize("text", ["mine", "profile:", "airflow:", "key:secret"])
def test_credentials_that_are_no_name_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ConfigError, match="expected") as told:
        S3Access({"credentials": text})
    assert "secret" not in str(told.value)


def test_an_endpoint_without_a_scheme_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"\[kinesis\] endpoint: expected http"):
        S3Access({"endpoint": "minio:9000"}, section="kinesis")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"login": "a", "password": "b", "extra": "no JSON"}', "expected a URI, or JSON with an object"),
        ('{"login": "a", "password": "b", "extra": "[1]"}', "expected a URI, or JSON with an object"),
        ('["a"', "expected a URI, or JSON"),
        ("aws://a@/", "expected login and password"),
    ],
)
def test_connections_that_are_none_are_refused(monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", text if not text.startswith("[") else "{" + text)
    with pytest.raises(ConfigError, match=said):
        S3Access({"credentials": "airflow:lake"})


def test_extras_that_airflow_nests_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    nested = "%7B%22region_name%22%3A%20%22eu-west-1%22%7D"
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", f"aws://a:b@/?__extra__={nested}")
    assert S3Access({"credentials": "airflow:lake"}).region == "eu-west-1"


def test_without_an_endpoint_it_is_amazons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    access = S3Access({})
    assert "AWS_ENDPOINT_URL" not in access.delta()
    assert "fs.s3a.endpoint" not in access.spark()
    assert (access.path_style, access.region) == (False, "eu-central-1")

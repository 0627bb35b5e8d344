"""Objects in a bucket: what a store promises, and what becomes of it when the server or the way to it is in trouble."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.faults import Faults
from tidemill.core.errors import CommitUnknown, ConfigError, StoreError, StoreUnreachable
from tidemill.stores.access import S3Access
from tidemill.stores.interface import Store, Tail
from tidemill.stores.local import LocalStore
from tidemill.stores.s3 import S3Store


@pytest.fixture(params=["s3", "s3 below a prefix", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind, empty."""
    if request.param == "folder":
        return LocalStore(tmp_path / "store")
    bucket, access = request.getfixturevalue("bucket"), request.getfixturevalue("access")
    return S3Store(f"s3://{bucket}/{'a/b/' if 'prefix' in request.param else ''}", access)


def test_objects_are_put_once_listed_and_read(store: Store) -> None:
    assert store.list("") == []
    assert store.put_if_absent("t/x", b"12345")
    assert not store.put_if_absent("t/x", b"other")
    assert store.put_if_absent("t/deep/y", b"")
    assert store.read("t/x") == b"12345"
    assert sorted(store.list("t")) == ["deep", "x"]
    assert [name for name in store.list("") if not name.startswith(".")] == ["t"]
    assert store.sizes("t/deep") == {"y": 0}
    assert store.sizes("t")["x"] == 5


@pytest.mark.parametrize("after", ["a", "b", "b0", "c", "d"])
def test_all_names_after_one_are_listed(store: Store, after: str) -> None:
    names = ["a", "b", "b-", "b2", "c"]
    for name in ("b", "a", "c/d", "b2", "b-/x"):
        store.put_if_absent(f"t/{name}", b"")
    assert {name for name in names if name > after} <= set(store.list("t", after)) <= set(names)
    assert store.list("nothing", after) == []
    assert "t" in store.list("", after)


@pytest.mark.parametrize(("length", "data"), [(2, b"45"), (5, b"12345"), (99, b"12345")])
def test_the_end_of_an_object_is_read_alone(store: Store, length: int, data: bytes) -> None:
    store.put_if_absent("x", b"12345")
    store.put_if_absent("empty", b"")
    assert store.tail("x", length) == Tail(data=data, size=5)
    assert store.tail("empty", length) == Tail(data=b"", size=0)


def test_what_is_not_there_is_not_found(store: Store) -> None:
    with pytest.raises(FileNotFoundError):
        store.read("nothing")
    with pytest.raises(FileNotFoundError):
        store.tail("nothing", 3)
    store.delete("nothing")
    store.delete_folder("nothing")
    assert store.list("nothing") == []


def test_folders_are_deleted_whole_and_nothing_beside_them(store: Store) -> None:
    for name in ("a/1", "a/b/2", "ab/3"):
        store.put_if_absent(name, b"x")
    store.delete_folder("a")
    assert store.list("a") == []
    assert store.read("ab/3") == b"x"
    store.delete("ab/3")
    assert store.list("ab") == []


def test_a_small_object_is_replaced_and_its_age_is_told(store: Store) -> None:
    for data in (b"first", b"second"):
        store.replace("leases/x", data)
    found = store.aged("leases/x")
    assert found.data == b"second"
    assert timedelta(seconds=-2) <= found.age < timedelta(minutes=1)
    with pytest.raises(FileNotFoundError):
        store.aged("leases/y")


def test_of_many_writers_of_a_name_one_gets_it(store: Store) -> None:
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda n: store.put_if_absent("x", b"%d" % n), range(24)))
    assert taken.count(True) == 1
    assert store.read("x") == b"%d" % taken.index(True)


def test_more_objects_than_a_page_are_listed_and_deleted(
    bucket: str, access: S3Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.stores.s3._PAGE", 3)
    store = S3Store(f"s3://{bucket}", access)
    for number in range(10):
        store.put_if_absent(f"many/{number:04}", b"")
    assert len(store.list("many")) == len(store.sizes("many")) == 10
    store.delete_folder("many")
    assert store.list("many") == []


def test_a_bucket_is_not_asked_for_names_up_to_one(
    bucket: str, access: S3Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, pages = S3Store(f"s3://{bucket}/in/it", access), list[int]()
    for number in range(6):
        store.put_if_absent(f"many/{number:04}", b"")
    monkeypatch.setattr("tidemill.stores.s3._PAGE", 2)
    original = S3Store._pages

    def counted(*given: Any, **more: Any) -> Iterator[Any]:
        for page in original(*given, **more):
            pages.append(len(page[0]))
            yield page

    monkeypatch.setattr(S3Store, "_pages", counted)
    assert sorted(store.list("many", "0003")) == ["0004", "0005"]
    assert pages == [2]


def test_a_lost_answer_is_found_out(faulty: tuple[S3Access, Faults], bucket: str) -> None:
    access, faults = faulty
    store = S3Store(f"s3://{bucket}", access)
    faults.first(1, "lost", "PUT", "/x")
    assert store.put_if_absent("x", b"mine")
    assert [method for method, path, _ in faults.asked() if path.endswith(f"{bucket}/x")] == ["PUT", "PUT", "HEAD"]
    faults.first(1, "lost", "PUT", "/x")
    assert not store.put_if_absent("x", b"another's")
    assert store.read("x") == b"mine"


def test_a_name_that_is_free_again_is_nobodys(forged: tuple[S3Access, Faults], bucket: str) -> None:
    access, faults = forged
    store = S3Store(f"s3://{bucket}", access)
    store.put_if_absent("x", b"1")
    faults.first(1, "gone", "HEAD")
    with pytest.raises(CommitUnknown, match="written or not"):
        store.put_if_absent("x", b"2")


@pytest.mark.parametrize("what", ["503", "409", "dropped", "slow"])
def test_trouble_that_passes_is_waited_for(faulty: tuple[S3Access, Faults], bucket: str, what: str) -> None:
    access, faults = faulty
    store = S3Store(f"s3://{bucket}", access)
    faults.first(2, what, "PUT", "/x")
    assert store.put_if_absent("x", b"12345")
    faults.first(1, "slow" if what == "409" else what, "GET", "/x")
    assert store.read("x") == b"12345"


def test_trouble_that_stays_is_told_and_may_be_tried_again(faulty: tuple[S3Access, Faults], bucket: str) -> None:
    access, faults = faulty
    store = S3Store(f"s3://{bucket}", access)
    faults.first(99, "503", "GET")
    with pytest.raises(StoreUnreachable, match="refuses for now") as told:
        store.read("x")
    assert told.value.retryable


def test_a_write_that_is_never_answered_may_have_landed(faulty: tuple[S3Access, Faults], bucket: str) -> None:
    access, faults = faulty
    faults.first(99, "lost", "PUT", f"{bucket}/x")
    assert S3Store(f"s3://{bucket}", access).put_if_absent("x", b"1"), "the second try finds the first one's object"
    faults.first(99, "dropped", "PUT", f"{bucket}/y")
    with pytest.raises(CommitUnknown, match="written or not"):
        S3Store(f"s3://{bucket}", access).put_if_absent("y", b"1")


def test_whose_a_taken_name_is_may_not_be_found_out(faulty: tuple[S3Access, Faults], bucket: str) -> None:
    access, faults = faulty
    store = S3Store(f"s3://{bucket}", access)
    assert store.put_if_absent("x", b"1")
    faults.first(99, "503", "HEAD")
    with pytest.raises(CommitUnknown, match="written or not"):
        store.put_if_absent("x", b"2")
    faults.first(99, "503", "PUT")
    with pytest.raises(CommitUnknown, match="written or not"):
        store.put_if_absent("y", b"1")


def test_a_store_that_refuses_conditions_is_told_so(faulty: tuple[S3Access, Faults], bucket: str) -> None:
    access, faults = faulty
    faults.first(1, "501", "PUT")
    with pytest.raises(StoreError, match="it has no conditional writes"):
        S3Store(f"s3://{bucket}", access, checks_writer=True).check_writer()


def test_nobody_at_the_address_is_told(bucket: str) -> None:
    with pytest.raises(StoreUnreachable, match="no answer"):
        S3Store(f"s3://{bucket}", S3Access({"endpoint": "http://127.0.0.1:9"})).read("x")


def test_a_bucket_that_is_not_there_is_named(access: S3Access) -> None:
    with pytest.raises(StoreError, match="NoSuchBucket") as told:
        S3Store("s3://nobodys", access).list("")
    assert "nobodys" in told.value.fix


def test_a_store_without_conditional_writes_is_refused(forged: tuple[S3Access, Faults], bucket: str) -> None:
    access, faults = forged
    for name in ("x", "y"):
        S3Store(f"s3://{bucket}/good", access, checks_writer=True).put_if_absent(name, b"")
    asked = [headers for method, path, headers in faults.asked() if method == "PUT" and f"{bucket}/good" in path]
    assert [headers["if-none-match"] for headers in asked] == ["*"] * 5
    faults.none(ignored=("if-none-match",))
    with pytest.raises(StoreError, match="no conditional writes"):
        S3Store(f"s3://{bucket}/bad", access, checks_writer=True).put_if_absent("x", b"")


def test_nobody_who_asks_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(ConfigError, match="nobody says who asks"):
        S3Access({}).keys()

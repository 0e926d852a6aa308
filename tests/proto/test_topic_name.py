"""Names Pulsar takes and names it refuses, in its own words (transcript 018, and a released broker asked for more)."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import NamespaceName, SegmentName, TopicName

SHORT = "it should be in the format of <tenant>/<namespace>/<topic> or <topic>"
V1 = (
    "V1 topic names (with cluster component) are no longer supported. "
    "Please use the V2 format: '<domain>://tenant/namespace/topic'. Got: "
)


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("short", "persistent://public/default/short"),
        ("public/default/mid", "persistent://public/default/mid"),
        ("a/b/c", "persistent://a/b/c"),
        ("a b?\n", "persistent://public/default/a b?\n"),
        ("Persistent://public/default/x", "persistent://public/default/x"),
        ("NON-PERSISTENT://public/default/x", "non-persistent://public/default/x"),
        ("persistent://public/default/with space", "persistent://public/default/with space"),
        ("persistent://public/default/\u00fc", "persistent://public/default/\u00fc"),
        ("persistent://public/default/a%2Fb", "persistent://public/default/a%2Fb"),
        ("persistent://a:b.c-d_e=f/./x", "persistent://a:b.c-d_e=f/./x"),
        ("persistent://public/default/..", "persistent://public/default/.."),
        # Java does not call these white space.
        ("persistent://public/default/\x85", "persistent://public/default/\x85"),
        ("\xa0", "persistent://public/default/\xa0"),
        ("\u2007", "persistent://public/default/\u2007"),
    ],
)
def test_valid_names_get_their_full_form(text: str, full: str) -> None:
    name = TopicName.parse(text)
    assert str(name) == full
    assert TopicName.parse(full) == name
    assert TopicName.parse(text.encode()) == name


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "Invalid topic name: . Topic local name must not be blank."),
        (" ", "Invalid topic name:  . Topic local name must not be blank."),
        ("\u3000", "Invalid topic name: \u3000. Topic local name must not be blank."),
        ("public/default/", "Invalid topic name: public/default/. Topic local name must not be blank."),
        ("pub lic/default/", "Invalid topic name: pub lic/default/. Topic local name must not be blank."),
        (
            "persistent://public/default/",
            "Invalid topic name: persistent://public/default/. Topic local name must not be blank.",
        ),
        (
            "persistent://public/default/\x1c",
            "Invalid topic name: persistent://public/default/\x1c. Topic local name must not be blank.",
        ),
        ("a/b", f"Invalid short topic name 'a/b', {SHORT}"),
        ("a/", f"Invalid short topic name 'a/', {SHORT}"),
        ("a/b/c/d", f"Invalid short topic name 'a/b/c/d', {SHORT}"),
        ("a/b/c/", f"Invalid short topic name 'a/b/c/', {SHORT}"),
        ("/", "Invalid topic name /"),
        ("/a/b/c", "Invalid topic name /a/b/c"),
        ("a//", "Invalid topic name a//"),
        ("public//x", "Invalid topic name public//x"),
        ("public/default//x", "Invalid topic name public/default//x"),
        ("public/default/a://b", "Invalid topic name public/default/a://b"),
        ("persistent://", "Invalid topic name persistent://"),
        ("://", "Invalid topic name ://"),
        ("http://", "Invalid topic name http://"),
        ("segment://a", "Invalid topic name segment://a"),
        ("persistent://public/default", "Invalid topic name persistent://public/default"),
        ("persistent://public/", "Invalid topic name persistent://public/"),
        ("persistent://public//", "Invalid topic name public//"),
        ("persistent://public//x", "Invalid topic name public//x"),
        ("persistent:///default/x", "Invalid topic name /default/x"),
        ("persistent://public/default/x/", "Invalid topic name public/default/x/"),
        ("persistent://public/default//x", "Invalid topic name public/default//x"),
        ("persistent://public/default/a/b", f"{V1}persistent://public/default/a/b"),
        ("persistent://public/default/a//b", f"{V1}persistent://public/default/a//b"),
        ("http://public/default/a/b", f"{V1}http://public/default/a/b"),
        ("http://public/default/x", "Invalid topic domain: 'http'"),
        ("http://public/default/", "Invalid topic domain: 'http'"),
        ("http://pub lic/default/x", "Invalid topic domain: 'http'"),
        ("topic://public/default", "Invalid topic name topic://public/default"),
        ("topic://public/default/", "Invalid topic name public/default/"),
        (
            "segment://public/default/x",
            (
                "Invalid segment topic name: local name must contain "
                "'<parent-topic>/<hashStart>-<hashEnd>-<segmentId>'. Got: segment://public/default/x"
            ),
        ),
        (
            "segment://public/default/x/0000-ffff",
            "Invalid segment descriptor: expected '<hexStart>-<hexEnd>-<segmentId>', got: '0000-ffff'",
        ),
        ("segment://public/default/x/zz-ffff-0", 'For input string: "zz" under radix 16'),
        ("segment://public/default/x/2000-1000-0", "Invalid hash range: start=8192, end=4096"),
        ("non_persistent://public/default/x", "Invalid topic domain: 'non_persistent'"),
        ("://a/b/c", "Invalid topic domain: ''"),
        ("persistent://pub lic/default/x", "Invalid named entity: pub lic"),
        ("persistent://public\n/default/x", "Invalid named entity: public\n"),
        ("persistent://p\u00fcb/default/x", "Invalid named entity: p\u00fcb"),
        ("persistent://public/a+b/x", "Invalid named entity: a+b"),
        ("persistent://pub lic/de fault/x", "Invalid named entity: pub lic"),
        ("pub%20lic/default/x", "Invalid named entity: pub%20lic"),
    ],
)
def test_invalid_names_are_refused_with_pulsar_s_text(text: str, error: str) -> None:
    for form in (text, text.encode()):
        with pytest.raises(InvalidTopicName) as caught:
            TopicName.parse(form)
        assert caught.value.args == (error,)


def test_bytes_that_are_not_utf8() -> None:
    assert TopicName.parse(b"a\xff").local_name == "a\ufffd"
    with pytest.raises(InvalidTopicName, match=r"^Invalid named entity: \ufffd\ufffd$"):
        TopicName.parse(b"persistent://\xff\xfe/default/x")


def test_a_topic_name_has_domain_tenant_namespace_and_local_name() -> None:
    name = TopicName.parse("non-persistent://t/ns/x")
    assert (name.domain, name.tenant, name.namespace, name.local_name) == ("non-persistent", "t", "ns", "x")
    assert not name.is_persistent
    assert TopicName.parse("x").is_persistent
    assert name.namespace_name == NamespaceName("t", "ns") == NamespaceName.parse("t/ns")
    assert str(name.namespace_name) == "t/ns"
    assert name.namespace_name.topic("y") == TopicName("persistent", "t", "ns", "y")
    assert name.namespace_name.topic("y", "non-persistent") == TopicName("non-persistent", "t", "ns", "y")
    assert len({name, TopicName.parse("Non-Persistent://t/ns/x")}) == 1


@pytest.mark.parametrize(
    ("local_name", "index"),
    [
        ("x", -1),
        ("x-partition-0", 0),
        ("x-partition-12", 12),
        ("x-partition-2147483647", 2147483647),
        ("x-partition-2147483648", -1),
        ("x-partition-99999999999", -1),
        ("x-partition-01", -1),
        ("x-partition-00", -1),
        ("x-partition--1", -1),
        ("x-partition-+1", -1),
        ("x-partition- 1", -1),
        ("x-partition-1\n", -1),
        ("x-partition-", -1),
        ("x-partition-1x", -1),
        ("x-partition-1-partition-2", 2),
        ("x-partition-1-partition-x", -1),
        ("x-Partition-1", -1),
    ],
)
def test_a_partition_is_known_by_its_index(local_name: str, index: int) -> None:
    name = TopicName("persistent", "public", "default", local_name)
    assert name.partition_index == index
    assert name.is_partition == (index >= 0)
    base = local_name.rpartition("-partition-")[0] if index >= 0 else local_name
    assert name.partitioned_name.local_name == base


def test_a_partition_is_named_by_its_number() -> None:
    name = TopicName.parse("x")
    assert str(name.partition(3)) == "persistent://public/default/x-partition-3"
    assert name.partition(3).partitioned_name == name
    assert name.partition(3).partition(3) == name.partition(3)
    assert name.partition(3).partition(4).local_name == "x-partition-3-partition-4"
    assert name.partition(-1) is name
    assert name.partitioned_name is name


def test_a_partition_of_nothing() -> None:
    name = TopicName.parse("-partition-0")
    with pytest.raises(InvalidTopicName, match=r"^Invalid topic name: persistent://public/default/\. Topic local"):
        name.partitioned_name  # noqa: B018


# As Java's URLEncoder writes them.
@pytest.mark.parametrize(
    ("local_name", "encoded"),
    [
        ("plain-1.2_3*", "plain-1.2_3*"),
        ("a b+c", "a+b%2Bc"),
        ("a/b%2F~", "a%2Fb%252F%7E"),
        ("\u00fc\u20ac", "%C3%BC%E2%82%AC"),
    ],
)
def test_a_local_name_is_encoded_in_paths(local_name: str, encoded: str) -> None:
    name = TopicName("persistent", "t", "ns", local_name)
    assert name.encoded_local_name == encoded
    assert name.rest_path == f"persistent/t/ns/{encoded}"
    assert name.managed_ledger_path == f"t/ns/persistent/{encoded}"
    assert name.schema_name == f"t/ns/{encoded}"
    assert name.partition(0).schema_name == name.schema_name
    assert TopicName.from_managed_ledger(name.managed_ledger_path) == name


@pytest.mark.parametrize("text", ["public/default", "a/b/", "a/b//", "a:b.c-d_e=f/."])
def test_a_valid_namespace_keeps_its_text(text: str) -> None:
    assert str(NamespaceName.parse(text)) == text.rstrip("/")
    assert NamespaceName.parse(text.encode()) == NamespaceName.parse(text)


@pytest.mark.parametrize("text", ["public", "a/b/c", "/b", "a//b", "a b/c", "a/b c", "/", "a/", "a/\u00fc"])
def test_an_invalid_namespace_is_refused_with_pulsar_s_text(text: str) -> None:
    expected = "expected <tenant>/<namespace> or <tenant>/<cluster>/<namespace> but got: "
    with pytest.raises(InvalidTopicName) as caught:
        NamespaceName.parse(text)
    assert caught.value.args == (f"Invalid namespace format. {expected}{text}",)


def test_an_empty_namespace_is_refused() -> None:
    with pytest.raises(InvalidTopicName, match=r"^Invalid null namespace: $"):
        NamespaceName.parse("")


def test_very_long_names() -> None:
    name = TopicName.parse("x" * 100_000)
    assert len(str(name)) == 100_000 + len("persistent://public/default/")
    with pytest.raises(InvalidTopicName):
        NamespaceName.parse("x" * 100_000)


@given(st.text(max_size=40) | st.text("ab/:-partion0 ", max_size=40))
def test_any_text_is_a_name_or_refused(text: str) -> None:
    try:
        name = TopicName.parse(text)
    except InvalidTopicName:
        pass
    else:
        assert TopicName.parse(str(name)) == name
        if name.is_partition and name.local_name.rpartition("-partition-")[0].strip():
            assert name.partitioned_name.partition(name.partition_index) == name


def test_a_segment_is_named_after_its_scalable_topic() -> None:
    name = TopicName.parse("segment://public/default/a/b/0000-7fff-12")
    segment = SegmentName.of(name)
    assert str(segment.parent) == "topic://public/default/a/b"
    assert (segment.start, segment.end, segment.id) == (0, 0x7FFF, 12)
    assert segment.topic == name
    assert TopicName.from_managed_ledger(name.managed_ledger_path) == name


def test_all_segments_have_the_schema_of_their_scalable_topic() -> None:
    names = ("topic://public/default/t", "segment://public/default/t/0000-ffff-0", "persistent://public/default/t")
    assert {TopicName.parse(name).schema_name for name in names} == {"public/default/t"}


@pytest.mark.parametrize("text", ["/" * 10**6, "a/" * 10**6, "persistent://" + "/" * 10**6])
def test_a_name_with_very_many_slashes_is_not_taken_apart(text: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidTopicName):
            TopicName.parse(text)
        assert tracemalloc.get_traced_memory()[1] < 10 * len(text)  # each part would take 50 bytes
    finally:
        tracemalloc.stop()


@given(st.text("a/", max_size=8))
def test_a_short_name_has_one_or_three_parts(text: str) -> None:
    parts = text.split("/")
    if "" not in parts and len(parts) in (1, 3):
        assert str(TopicName.parse(text)).endswith(f"/{parts[-1]}")
        return
    with pytest.raises(InvalidTopicName) as refused:
        TopicName.parse(text)
    assert ("Invalid short topic name" in str(refused.value)) == ("" not in parts[:-1] and len(parts) not in (1, 3))

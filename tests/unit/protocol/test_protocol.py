"""The protocol as a value."""

from __future__ import annotations

import pickle
from typing import Any

import msgspec
import pytest

from tests.support.notebook_page import NotebookPage
from twinlake.errors import UnsupportedFeature, UserError
from twinlake.protocol import Protocol


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ((3, 7, None, ()), "PR-01"),
        ((1, 7, (), ()), "PR-01"),
        ((1, 2, (), None), "PR-01"),
        ((1, 7), "PR-02"),
        ((1, 2, None, ()), "PR-02"),
        ((3, 6, (), None), "PR-03"),
        ((-1, 2), "PR-00"),
    ],
)
def test_malformed(arguments: tuple[Any, ...], rule: str) -> None:
    with pytest.raises(UserError) as caught:
        Protocol(*arguments)
    assert caught.value.rule == rule


@pytest.mark.parametrize(
    ("protocol", "rule"),
    [
        (Protocol(0, 2), "PR-00"),
        (Protocol(3, 7, {"deletionVectors"}, ()), "PR-04"),
        (Protocol(3, 7, {"rowTracking"}, {"rowTracking", "domainMetadata"}), "PR-05"),
        (Protocol(1, 7, None, {"no spaces"}), "PR-07"),
    ],
    ids=str,
)
def test_held_but_never_written(protocol: Protocol, rule: str) -> None:
    with pytest.raises(UserError) as caught:
        protocol.check_storable()
    assert caught.value.rule == rule


def test_normalized_form_is_storable() -> None:
    for odd in (
        Protocol(3, 7, {"deletionVectors"}, ()),
        Protocol(3, 7, {"rowTracking"}, {"rowTracking", "domainMetadata"}),
        Protocol(0, 0).denormalized(),
    ):
        odd.normalized().check_storable()


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"minReaderVersion": 1},
        {"readerVersion": 1, "writerVersion": 2},
        {"minReaderVersion": "1", "minWriterVersion": 2},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["a"]},
        {"minReaderVersion": 1, "minWriterVersion": 2, "writerFeatures": ["a"]},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": "a"},
        {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [1]},
        {"minReaderVersion": 1 << 80, "minWriterVersion": 7.5},
    ],
)
def test_wrong_shapes(data: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        Protocol.from_dict(data)


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(1, 2),
        Protocol(3, 7, (), ()),
        Protocol(1, 7, None, {"b", "a"}),
        Protocol(3, 7, {"deletionVectors"}, {"deletionVectors", "unknown"}),
        Protocol(9, 9),
    ],
    ids=str,
)
def test_round_trips(protocol: Protocol) -> None:
    assert Protocol.from_dict(protocol.to_dict()) == protocol
    assert pickle.loads(pickle.dumps(protocol)) == protocol
    assert eval(repr(protocol)) == protocol
    assert None not in protocol.to_dict().values()


def test_names_are_sorted_in_the_log() -> None:
    names = ["c", "a", "b"]
    assert Protocol(1, 7, None, names).to_dict()["writerFeatures"] == ["a", "b", "c"]


def test_null_lists_are_absent_lists() -> None:
    data: dict[str, Any] = {
        "minReaderVersion": 1,
        "minWriterVersion": 2,
        "readerFeatures": None,
        "writerFeatures": [],
    }
    assert Protocol.from_dict(data) == Protocol(1, 2)


def test_values_compare_and_hash() -> None:
    assert len({Protocol(1, 2), Protocol(1, 2), Protocol(3, 7, ["a"], ["a"])}) == 2
    assert Protocol(3, 7, ["a"], ["a", "b"]) == Protocol(3, 7, {"a"}, ("b", "a"))
    with pytest.raises(AttributeError):
        Protocol(1, 2).min_reader_version = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("protocol", "text"),
    [
        (Protocol(1, 2), "1,2"),
        (Protocol(1, 7, None, {"b", "a"}), "1,7,None,[a,b]"),
        (Protocol(3, 7, (), {"a"}), "3,7,[],[a]"),
    ],
)
def test_display(protocol: Protocol, text: str) -> None:
    assert str(protocol) == text


@pytest.mark.parametrize(
    ("start", "feature", "expected"),
    [
        (Protocol(1, 2), "appendOnly", Protocol(1, 2)),
        (Protocol(1, 7, None, ()), "appendOnly", Protocol(1, 7, None, {"appendOnly"})),
        (Protocol(3, 7, (), ()), "appendonly", Protocol(3, 7, (), {"appendOnly"})),
        (Protocol(2, 7, None, ()), "columnMapping", Protocol(2, 7, None, {"columnMapping"})),
        (
            Protocol(3, 7, (), ()),
            "columnMapping",
            Protocol(3, 7, {"columnMapping"}, {"columnMapping"}),
        ),
        (
            Protocol(3, 7, (), ()),
            "icebergCompatV3",
            Protocol(
                3,
                7,
                {"columnMapping"},
                {"columnMapping", "icebergCompatV3", "rowTracking", "domainMetadata"},
            ),
        ),
        # Listed for writers only: the reader side is mended.
        (
            Protocol(3, 7, (), {"deletionVectors"}),
            "deletionVectors",
            Protocol(3, 7, {"deletionVectors"}, {"deletionVectors"}),
        ),
        (
            Protocol(1, 7, None, ()),
            "rowTracking",
            Protocol(1, 7, None, {"rowTracking", "domainMetadata"}),
        ),
    ],
)
def test_with_feature(start: Protocol, feature: str, expected: Protocol) -> None:
    assert start.with_feature(feature) == expected


@pytest.mark.parametrize(
    ("start", "feature", "side", "required"),
    [
        (Protocol(1, 7, None, ()), "columnMapping", "READER", 2),
        (Protocol(1, 7, None, {"columnMapping"}), "columnMapping", "READER", 2),
        (Protocol(1, 7, None, ()), "deletionVectors", "READER", 3),
        (Protocol(1, 2), "changeDataFeed", "WRITER", 4),
        (Protocol(1, 2), "rowTracking", "WRITER", 7),
        (Protocol(2, 6), "domainMetadata", "WRITER", 7),
        (Protocol(1, 6), "columnMapping", "READER", 2),
    ],
)
def test_with_feature_needs_higher_versions(
    start: Protocol, feature: str, side: str, required: int
) -> None:
    with pytest.raises(UserError) as caught:
        start.with_feature(feature)
    assert caught.value.delta_class == f"DELTA_FEATURE_REQUIRES_HIGHER_{side}_VERSION"
    assert caught.value.fields["required"] == required


def test_with_features_adds_several() -> None:
    start = Protocol(3, 7, (), ())
    assert start.with_features(["rowTracking", "clustering"]) == Protocol(
        3, 7, (), {"rowTracking", "clustering", "domainMetadata"}
    )


def test_unknown_feature_cannot_be_added() -> None:
    with pytest.raises(UserError) as caught:
        Protocol(3, 7, (), ()).with_feature("timeTravelToTheFuture")
    assert caught.value.delta_class == "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"


LEGACY_4 = {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        (Protocol(1, 2), Protocol(1, 2)),
        (
            Protocol(3, 7, (), {"appendOnly", "invariants", "checkConstraints"}),
            Protocol(1, 3),
        ),
        (
            Protocol(3, 7, (), {"rowTracking", "domainMetadata"}),
            Protocol(1, 7, None, {"rowTracking", "domainMetadata"}),
        ),
        (
            Protocol(3, 7, {"columnMapping"}, LEGACY_4 | {"columnMapping"}),
            Protocol(2, 5),
        ),
        (
            Protocol(3, 7, {"columnMapping"}, {"columnMapping"}),
            Protocol(2, 7, None, {"columnMapping"}),
        ),
        (Protocol(1, 7, None, ()), Protocol(1, 1)),
        (Protocol(1, 7, None, {"x"}), Protocol(1, 7, None, {"x"})),
        (Protocol(3, 7, {"x"}, {"x", "appendOnly"}), Protocol(3, 7, {"x"}, {"x", "appendOnly"})),
    ],
    ids=str,
)
def test_normalized(protocol: Protocol, expected: Protocol) -> None:
    assert protocol.normalized() == expected


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        (Protocol(1, 1), Protocol(1, 7, None, ())),
        (Protocol(1, 2), Protocol(1, 7, None, {"appendOnly", "invariants"})),
        (Protocol(2, 5), Protocol(2, 7, None, LEGACY_4 | {"columnMapping"})),
        (Protocol(2, 4), Protocol(1, 7, None, LEGACY_4)),
        (Protocol(3, 7, (), {"a"}), Protocol(3, 7, (), {"a"})),
    ],
    ids=str,
)
def test_denormalized(protocol: Protocol, expected: Protocol) -> None:
    assert protocol.denormalized() == expected


@pytest.mark.parametrize(
    ("given", "mended"), [((2, 3), (1, 3)), ((1, 5), (1, 4)), ((2, 4), (1, 4)), ((1, 6), (1, 6))]
)
def test_over_numbered_versions_are_mended(given: tuple[int, int], mended: tuple[int, int]) -> None:
    assert Protocol(*given).denormalized().normalized() == Protocol(*mended)


@pytest.mark.parametrize(
    ("protocols", "expected"),
    [
        ([Protocol(1, 2), Protocol(1, 4)], Protocol(1, 4)),
        ([Protocol(1, 6), Protocol(2, 5)], Protocol(2, 6)),
        ([Protocol(1, 6), Protocol(2, 1)], Protocol(1, 6)),
        (
            [Protocol(2, 7, None, {"columnMapping"}), Protocol(3, 7, {"new"}, {"new"})],
            Protocol(3, 7, {"columnMapping", "new"}, {"columnMapping", "new"}),
        ),
        ([Protocol(2, 3)], Protocol(1, 3)),
    ],
)
def test_merge(protocols: list[Protocol], expected: Protocol) -> None:
    assert protocols[0].merge(*protocols[1:]) == expected


def test_merge_refuses_versions_nobody_knows() -> None:
    with pytest.raises(UnsupportedFeature):
        Protocol(1, 2).merge(Protocol(4, 8))


def test_upgrade_and_downgrade_relations() -> None:
    assert Protocol(1, 2).can_upgrade_to(Protocol(1, 4))
    assert Protocol(1, 4).can_upgrade_to(Protocol(2, 4))
    assert not Protocol(1, 4).can_upgrade_to(Protocol(1, 2))
    assert not Protocol(1, 7, None, {"x"}).can_upgrade_to(Protocol(1, 7, None, ()))
    full = Protocol(3, 7, {"deletionVectors"}, {"deletionVectors", "appendOnly"})
    less = Protocol(1, 7, None, {"appendOnly"})
    protected = Protocol(1, 7, None, {"appendOnly", "checkpointProtection"})
    assert full.can_downgrade_to(less, ["deletionVectors"])
    assert full.can_downgrade_to(protected, ["deletionVectors"])
    assert not full.can_downgrade_to(Protocol(1, 1), ["deletionVectors"])
    assert not full.can_downgrade_to(Protocol(1, 2), ["deletionVectors"])


def test_remove_feature() -> None:
    assert Protocol(1, 3).remove_feature("checkConstraints") == Protocol(1, 2)
    assert Protocol(1, 4).remove_feature("checkConstraints") == Protocol(
        1, 7, None, LEGACY_4 - {"checkConstraints"}
    )
    vectors = Protocol(3, 7, {"deletionVectors"}, {"deletionVectors", "appendOnly", "invariants"})
    assert vectors.remove_feature("deletionVectors") == Protocol(1, 2)


def test_for_table_feature_takes_direct_requirements_only() -> None:
    assert Protocol.for_table_feature("icebergWriterCompatV1") == Protocol(
        1, 7, None, {"icebergWriterCompatV1", "icebergCompatV2"}
    )
    assert Protocol.for_table_feature("columnMapping") == Protocol(1, 7, None, {"columnMapping"})
    assert Protocol.for_table_feature("deletionVectors") == Protocol(
        3, 7, {"deletionVectors"}, {"deletionVectors"}
    )


def test_with_added_raises_versions_by_policy() -> None:
    assert Protocol(1, 2).with_added(["changeDataFeed"]) == Protocol(1, 4)
    assert Protocol(1, 2).with_added(["changedatafeed"], policy="minimal") == Protocol(
        1, 7, None, {"appendOnly", "invariants", "changeDataFeed"}
    )
    assert Protocol(1, 4).with_added(["changeDataFeed"]) == Protocol(1, 4)


def test_notebooks_show_every_feature_and_who_needs_it() -> None:
    names = {"deletionVectors", "appendOnly", "<b>new</b>"}
    found = NotebookPage(Protocol(3, 7, {"deletionVectors", "<b>new</b>"}, names))
    assert "reader 3, writer 7" in found.text
    assert [row[:3] for row in found.rows[1:]] == [
        ["<b>new</b>", "reading and writing", "none"],
        ["appendOnly", "writing", "write"],
        ["deletionVectors", "reading and writing", "write"],
    ]
    legacy = NotebookPage(Protocol(2, 5)).rows
    assert ["columnMapping", "reading and writing"] in [row[:2] for row in legacy]

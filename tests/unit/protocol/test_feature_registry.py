"""The rows of the registry, held against the reference table."""

from __future__ import annotations

import pytest

from twinlake.protocol import (
    FEATURES,
    Metadata,
    Protocol,
    auto_enabled_features,
    dependency_closure,
    find_feature,
    minimum_versions,
    render_feature_table,
)
from twinlake.protocol.feature_lookup import active_features
from twinlake.schema import (
    INTEGER,
    STRING,
    TIMESTAMP_NTZ,
    VARIANT,
    Array,
    DataType,
    Geometry,
    Map,
    Struct,
    StructField,
)

# name, kind, minimum versions, existing, concurrent, removable, history-protected
EXPECTED = """
appendOnly                   W  0 2 yes yes no  no
invariants                   W  0 2 yes no  no  no
checkConstraints             W  0 3 yes no  yes no
changeDataFeed               W  0 4 yes yes no  no
generatedColumns             W  0 4 yes no  no  no
columnMapping                RW 2 5 yes yes yes yes
identityColumns              W  0 6 yes no  no  no
deletionVectors              RW 3 7 yes yes yes yes
rowTracking                  W  0 7 yes yes yes no
domainMetadata               W  0 7 no  yes yes no
timestampNtz                 RW 3 7 no  yes no  no
v2Checkpoint                 RW 3 7 yes yes yes yes
icebergCompatV1              W  0 7 yes yes no  no
icebergCompatV2              W  0 7 yes yes no  no
icebergCompatV3              W  0 7 yes yes no  no
icebergWriterCompatV1        W  0 7 yes no  no  no
icebergWriterCompatV3        W  0 7 yes no  no  no
clustering                   W  0 7 no  no  no  no
allowColumnDefaults          W  0 7 yes no  no  no
inCommitTimestamp            W  0 7 yes yes yes no
vacuumProtocolCheck          RW 3 7 no  yes yes yes
checkpointProtection         W  0 7 no  no  yes no
typeWidening                 RW 3 7 yes yes yes yes
typeWidening-preview         RW 3 7 no  yes yes yes
variantType                  RW 3 7 yes no  no  no
variantType-preview          RW 3 7 no  no  no  no
variantShredding             RW 3 7 yes no  no  no
variantShredding-preview     RW 3 7 no  no  no  no
catalogManaged               RW 3 7 no  yes yes yes
coordinatedCommits-preview   W  0 7 yes no  yes no
materializePartitionColumns  W  0 7 yes no  yes no
geospatial                   RW 3 7 yes no  yes yes
geospatial-dev               RW 3 7 no  no  yes yes
collations                   W  0 7 yes no  no  no
collations-preview           W  0 7 no  no  no  no
redirectReaderWriter-preview RW 3 7 yes no  yes no
redirectWriterOnly-preview   W  0 7 yes no  yes no
adaptiveMetadata-preview     RW 3 7 no  no  no  no
columnMappingUsageTracking   W  0 7 no  no  no  no
timestampNanos               RW 3 7 no  no  no  no
""".strip().splitlines()


def test_every_feature_of_the_reference_is_there() -> None:
    assert [line.split()[0] for line in EXPECTED] == list(FEATURES)


@pytest.mark.parametrize("line", EXPECTED, ids=lambda line: str(line).split()[0])
def test_row(line: str) -> None:
    row = FEATURES[line.split()[0]]
    flags = (row.existing, row.concurrent, row.removable, row.history_protected)
    found = (
        row.name,
        str(row.kind),
        str(row.min_reader),
        str(row.min_writer),
        *("yes" if value else "no" for value in flags),
    )
    assert found == tuple(line.split())


def test_names_are_unique_ignoring_case() -> None:
    assert len({name.casefold() for name in FEATURES}) == len(FEATURES)
    assert find_feature("V2CHECKPOINT") is FEATURES["v2Checkpoint"]
    assert find_feature("nothing") is None


def test_rows_refer_to_known_features() -> None:
    for row in FEATURES.values():
        assert set(row.requires) <= FEATURES.keys()
        if row.alias:
            assert FEATURES[row.alias].alias == row.name


@pytest.mark.parametrize(
    ("name", "added"),
    [
        ("icebergWriterCompatV1", {"icebergCompatV2", "columnMapping"}),
        (
            "icebergWriterCompatV3",
            {"icebergCompatV3", "columnMapping", "rowTracking", "domainMetadata"},
        ),
        (
            "adaptiveMetadata-preview",
            {
                "catalogManaged",
                "inCommitTimestamp",
                "vacuumProtocolCheck",
                "rowTracking",
                "domainMetadata",
                "deletionVectors",
                "columnMapping",
            },
        ),
        ("timestampNanos", {"timestampNtz"}),
    ],
)
def test_closure(name: str, added: set[str]) -> None:
    assert dependency_closure([name]) == added | {name}


def test_minimum_versions() -> None:
    assert minimum_versions([]) == (1, 1)
    assert minimum_versions(["rowTracking"]) == (1, 7)
    assert minimum_versions(["columnMapping", "identityColumns"]) == (2, 6)
    assert minimum_versions(["appendOnly"], floor=(0, 0)) == (0, 2)


@pytest.mark.parametrize(
    ("configuration", "features"),
    [
        ({"delta.appendOnly": "TRUE"}, {"appendOnly"}),
        ({"delta.appendOnly": "false"}, set()),
        ({"delta.constraints.x": "a > 1"}, {"checkConstraints"}),
        ({"delta.columnMapping.mode": "none"}, set()),
        ({"delta.columnMapping.mode": "id"}, {"columnMapping"}),
        ({"delta.checkpointPolicy": "v2"}, {"v2Checkpoint"}),
        ({"delta.checkpointPolicy": "classic"}, set()),
        ({"delta.enableInCommitTimestamps": "true"}, {"inCommitTimestamp"}),
        (
            {"delta.coordinatedCommits.commitCoordinator-preview": "dynamodb"},
            {"coordinatedCommits-preview"},
        ),
        ({"delta.redirectWriterOnly-preview": "{}"}, {"redirectWriterOnly-preview"}),
        ({"delta.enableVariantShredding": "true"}, {"variantShredding"}),
    ],
)
def test_properties_switch_features_on(configuration: dict[str, str], features: set[str]) -> None:
    assert auto_enabled_features(Metadata(configuration=configuration)) == features


def nested(kind: DataType) -> DataType:
    return Array(Map(STRING, Struct((StructField("deep", kind),))))


@pytest.mark.parametrize(
    ("column", "features"),
    [
        (StructField("a", INTEGER), set()),
        (StructField("a", INTEGER, nullable=False), {"invariants"}),
        (
            StructField("s", Struct((StructField("a", INTEGER, nullable=False),))),
            {"invariants"},
        ),
        # NOT NULL inside arrays and maps is not looked for.
        (StructField("l", Array(Struct((StructField("a", INTEGER, nullable=False),)))), set()),
        (StructField("a", INTEGER, metadata={"delta.invariants": "{}"}), {"invariants"}),
        (
            StructField("a", INTEGER, metadata={"delta.generationExpression": "1"}),
            {"generatedColumns"},
        ),
        (
            StructField("a", INTEGER, metadata={"delta.identity.allowExplicitInsert": True}),
            {"identityColumns"},
        ),
        (StructField("a", nested(TIMESTAMP_NTZ)), {"timestampNtz"}),
        (StructField("a", nested(VARIANT)), {"variantType"}),
        (StructField("a", nested(Geometry())), {"geospatial"}),
        (StructField("a", STRING, metadata={"__COLLATIONS": {"a": "ICU.de"}}), {"collations"}),
        (StructField("a", INTEGER, metadata={"CURRENT_DEFAULT": "1"}), {"allowColumnDefaults"}),
    ],
)
def test_schemas_switch_features_on(column: StructField, features: set[str]) -> None:
    metadata = Metadata().with_schema(Struct((column,)))
    assert auto_enabled_features(metadata) == features


@pytest.mark.parametrize(
    ("preview", "metadata"),
    [
        ("typeWidening-preview", Metadata(configuration={"delta.enableTypeWidening": "true"})),
        ("variantType-preview", Metadata().with_schema(Struct((StructField("v", VARIANT),)))),
        ("geospatial-dev", Metadata().with_schema(Struct((StructField("g", Geometry()),)))),
    ],
)
def test_preview_keeps_the_stable_name_out(preview: str, metadata: Metadata) -> None:
    current = Protocol(3, 7, {preview}, {preview})
    assert current.upgraded_for(metadata) == current


def test_not_null_is_no_active_invariant() -> None:
    not_null = Metadata().with_schema(Struct((StructField("a", INTEGER, nullable=False),)))
    assert "invariants" in auto_enabled_features(not_null)
    assert "invariants" not in active_features(not_null, frozenset({"invariants"}))


def test_feature_table_has_a_line_for_each() -> None:
    lines = render_feature_table().splitlines()
    assert len(lines) == len(FEATURES) + 2
    assert len({line.count("|") for line in lines}) == 1
    assert all(f"`{name}`" in line for name, line in zip(FEATURES, lines[2:], strict=True))

"""The protocol action as an immutable value, with all that can be done to one.

Guards the structural rules of the Delta protocol (Protocol Evolution): feature lists are there
exactly where the versions call for them. What is only illegal to write (``check_storable``) can
still be held, because tables like that exist and must be told apart from damaged ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.errors import (
    Code,
    UnsupportedFeature,
    UserError,
    how_to_add_feature,
    how_to_drop_feature,
)
from twinlake.protocol import features, gates
from twinlake.protocol.feature_lookup import (
    FEATURES,
    NAME_PATTERN,
    auto_enabled_features,
    dependency_closure,
    find_feature,
    implied_features,
    minimum_versions,
)
from twinlake.protocol.integers import Int
from twinlake.protocol.policies import Policy, find_policy
from twinlake.protocol.properties.protocol_keys import ProtocolRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.protocol.feature import Feature
    from twinlake.protocol.metadata import Metadata

__all__ = ["Protocol"]

READER_LISTS: Final = 3
WRITER_LISTS: Final = 7
_NO_FEATURES: Final[frozenset[str]] = frozenset()


class _Wire(msgspec.Struct, rename="camel"):
    min_reader_version: Int
    min_writer_version: Int
    reader_features: list[str] | None = None
    writer_features: list[str] | None = None


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Protocol:
    """What a client must understand to read and to write a table.

    >>> Protocol(1, 2).with_feature("appendOnly") == Protocol(1, 2)
    True
    >>> print(Protocol(3, 7, {"deletionVectors"}, {"deletionVectors"}))
    3,7,[deletionVectors],[deletionVectors]
    """

    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str] | None
    writer_features: frozenset[str] | None

    def __init__(
        self,
        min_reader_version: int = 1,
        min_writer_version: int = 3,
        reader_features: Iterable[str] | None = None,
        writer_features: Iterable[str] | None = None,
    ) -> None:
        object.__setattr__(self, "min_reader_version", min_reader_version)
        object.__setattr__(self, "min_writer_version", min_writer_version)
        object.__setattr__(self, "reader_features", _names(reader_features))
        object.__setattr__(self, "writer_features", _names(writer_features))
        broken = self._malformed()
        if broken:
            raise UserError(
                Code.PROTOCOL_INVALID,
                f"Protocol {self} is malformed.",
                why=" ".join(text for _, text in broken),
                fix="Lists of features belong to reader version 3 and writer version 7, only.",
                rule=broken[0][0],
                fields={"rules": [rule for rule, _ in broken]},
            )

    def _malformed(self) -> list[tuple[str, str]]:
        reader, writer = self.min_reader_version, self.min_writer_version
        found = []
        if (reader == READER_LISTS and self.reader_features is None) or (
            reader < READER_LISTS and self.reader_features is not None
        ):
            found.append(("PR-01", "readerFeatures must be there exactly at reader version 3."))
        if (writer == WRITER_LISTS and self.writer_features is None) or (
            writer < WRITER_LISTS and self.writer_features is not None
        ):
            found.append(("PR-02", "writerFeatures must be there exactly at writer version 7."))
        if reader == READER_LISTS and writer < WRITER_LISTS:
            found.append(("PR-03", "Reader version 3 needs writer version 7."))
        if reader < 0 or writer < 0:
            found.append(("PR-00", "Versions cannot be negative."))
        return found

    # -- what it supports ---------------------------------------------------------------------

    @property
    def uses_lists(self) -> bool:
        """Whether features are listed, on either side."""
        return self.reader_features is not None or self.writer_features is not None

    @property
    def implicit_features(self) -> frozenset[str]:
        """The features that legacy versions stand for; none once a side is on lists."""
        if self.uses_lists:
            return _NO_FEATURES
        return implied_features(self.min_reader_version, self.min_writer_version)

    @property
    def explicit_features(self) -> frozenset[str]:
        """All listed names, known or not."""
        return (self.reader_features or _NO_FEATURES) | (self.writer_features or _NO_FEATURES)

    @property
    def feature_names(self) -> frozenset[str]:
        """All names, listed or implied, known or not."""
        return self.explicit_features | self.implicit_features

    @property
    def supported_features(self) -> frozenset[str]:
        """The known features, listed or implied."""
        return frozenset(name for name in self.feature_names if name in FEATURES)

    @property
    def reader_requirements(self) -> frozenset[str]:
        """What a reader must support; the integer 2 stands for column mapping."""
        if self.reader_features is not None:
            return self.reader_features
        names = self.feature_names if self.min_reader_version >= 2 else _NO_FEATURES
        return frozenset(
            name
            for name in names
            if name in FEATURES and FEATURES[name].is_reader and FEATURES[name].legacy
        )

    @property
    def writer_requirements(self) -> frozenset[str]:
        """What a writer must support."""
        return (self.writer_features or _NO_FEATURES) | self.implicit_features

    def is_supported(self, feature: str | Feature) -> bool:
        """Whether the feature is listed or implied."""
        return str(feature) in self.feature_names

    def supports_either(self, feature: str) -> bool:
        """Whether the feature is supported under one of its names, stable or preview."""
        alias = FEATURES[feature].alias
        return self.is_supported(feature) or (alias is not None and self.is_supported(alias))

    # -- forms --------------------------------------------------------------------------------

    def at(self, reader: int, writer: int, names: Iterable[str] = ()) -> Protocol:
        """A protocol at these versions; the names are listed where the versions call for lists.

        Unknown reader features of this protocol stay reader features.
        """
        if writer < WRITER_LISTS:
            return Protocol(min(reader, 2), writer)
        return _spelled(reader, frozenset(names), self._unknown_readers)

    @property
    def _unknown_readers(self) -> frozenset[str]:
        return frozenset(n for n in self.reader_features or () if n not in FEATURES)

    def denormalized(self) -> Protocol:
        """Legacy versions spelled out as a writer list; others as they are."""
        if self.min_writer_version >= WRITER_LISTS:
            return self
        implied = self.implicit_features
        return _spelled(minimum_versions(implied)[0], implied, _NO_FEATURES)

    def normalized(self) -> Protocol:
        """The weakest protocol for the listed features: legacy versions where they say the same.

        >>> names = {"appendOnly", "invariants", "checkConstraints"}
        >>> print(Protocol(3, 7, set(), names).normalized())
        1,3
        """
        if self.min_writer_version < WRITER_LISTS:
            return self
        self._check_known_versions()
        return _weakest(self.feature_names, self._unknown_readers)

    def _check_known_versions(self) -> None:
        if self.min_reader_version > READER_LISTS or self.min_writer_version > WRITER_LISTS:
            gates.check_read_write(self, gates.Client.of(()))

    # -- arithmetic ---------------------------------------------------------------------------

    def with_feature(self, feature: str | Feature) -> Protocol:
        """With one more feature and what it requires; raises if the versions are too low for it."""
        row = _known(str(feature))
        result = self
        for required in row.requires:
            result = result.with_feature(required)
        if result.is_supported(row.name) and not result._lacks_reader_side(row):
            return result
        # Legacy column mapping on (2, 7) has its reader side in the integer 2.
        if result.min_reader_version < row.min_reader:
            _refuse_version(row, "reader", row.min_reader, result.min_reader_version)
        needed = WRITER_LISTS if not row.legacy else row.min_writer
        if result.min_writer_version < needed or result.writer_features is None:
            _refuse_version(row, "writer", needed, result.min_writer_version)
        readers = result.reader_features
        if readers is not None and row.is_reader:
            readers = readers | {row.name}
        return Protocol(
            result.min_reader_version,
            result.min_writer_version,
            readers,
            (result.writer_features or _NO_FEATURES) | {row.name},
        )

    def _lacks_reader_side(self, row: Feature) -> bool:
        if not row.is_reader or self.writer_features is None:
            return False
        if self.reader_features is not None:
            return row.name not in self.reader_features
        return self.min_reader_version < row.min_reader

    def with_features(self, features: Iterable[str]) -> Protocol:
        """With several more features."""
        result = self
        for name in sorted(features):
            result = result.with_feature(name)
        return result

    def merge(self, *others: Protocol) -> Protocol:
        """The weakest protocol that supports what any of them supports; keeps unknown names.

        Features are united, never the integers: the larger of two over-numbered versions would
        stand for features that neither table has, and the order of merging would matter.
        """
        protocols = (self, *others)
        for protocol in protocols:
            protocol._check_known_versions()
        return _weakest(
            frozenset().union(*(p.feature_names for p in protocols)),
            frozenset().union(*(p._unknown_readers for p in protocols)),
        )

    def remove_feature(self, feature: str | Feature) -> Protocol:
        """Without the feature, in the weakest form."""
        row = find_feature(str(feature))
        name = row.name if row else str(feature)
        spelled = self.denormalized()
        readers = spelled.reader_features
        return Protocol(
            spelled.min_reader_version,
            spelled.min_writer_version,
            None if readers is None else readers - {name},
            (spelled.writer_features or _NO_FEATURES) - {name},
        ).normalized()

    def can_upgrade_to(self, other: Protocol) -> bool:
        """Whether the other supports all that this one does."""
        return self.feature_names <= other.feature_names

    def can_downgrade_to(self, other: Protocol, dropped: Iterable[str]) -> bool:
        """Whether the other is this one without the dropped features, give or take protection."""
        gone = frozenset(dropped)
        gained = other.feature_names - self.feature_names
        return gained <= {features.CHECKPOINT_PROTECTION} and (
            self.feature_names - gone == other.feature_names - gained
        )

    @classmethod
    def for_table_feature(cls, feature: str | Feature) -> Protocol:
        """The least that names the feature and its direct requirements; meant to be merged."""
        row = _known(str(feature))
        names = frozenset((row.name, *row.requires))
        readers = {n for n in names if FEATURES[n].is_reader and not FEATURES[n].legacy}
        return cls(READER_LISTS if readers else 1, WRITER_LISTS, readers or None, names)

    # -- metadata -----------------------------------------------------------------------------

    @classmethod
    def for_new_table(
        cls,
        metadata: Metadata | None = None,
        *,
        policy: str | Policy = "bundled",
        session: Mapping[str, str] | None = None,
    ) -> Protocol:
        """The protocol that a new table with this metadata starts with.

        >>> from twinlake.protocol import Metadata
        >>> print(Protocol.for_new_table(Metadata(configuration={"delta.appendOnly": "true"})))
        1,2
        """
        asked = ProtocolRequest.of(metadata.configuration if metadata else {})
        asked = asked.over(ProtocolRequest.of_session(session or {}))
        lowest = 1 if asked.ignore_defaults else 2
        base = cls(1, 1)._raised(
            asked.min_reader_version or 1,
            lowest if asked.min_writer_version is None else max(asked.min_writer_version, 1),
        )
        auto = auto_enabled_features(metadata, asked.features) if metadata else _NO_FEATURES
        return find_policy(policy).extend(base, dependency_closure(asked.features | auto))

    @classmethod
    def apply(cls, metadata: Metadata | None = None) -> Protocol:
        """The same as ``for_new_table``, under its older name."""
        return cls.for_new_table(metadata)

    def upgraded_for(self, metadata: Metadata, *, policy: str | Policy = "bundled") -> Protocol:
        """The protocol after this metadata is set on the table; itself where it is enough.

        Properties that ask for a protocol (``delta.feature.*``, ``delta.min*Version``) count if
        they are still in the configuration.

        >>> from twinlake.protocol import Metadata
        >>> feed = Metadata(configuration={"delta.enableChangeDataFeed": "true"})
        >>> print(Protocol(1, 2).upgraded_for(feed))
        1,4
        """
        strategy = find_policy(policy)
        asked = ProtocolRequest.of(metadata.configuration)
        result = self
        if asked.min_reader_version is not None or asked.min_writer_version is not None:
            result = result._upgraded(
                max(asked.min_reader_version or 0, self.min_reader_version),
                max(asked.min_writer_version or 0, self.min_writer_version),
                strategy,
            )
        result = result.with_added(asked.features, policy=strategy)
        listed = (result.writer_features or _NO_FEATURES) & FEATURES.keys()
        auto = auto_enabled_features(metadata, result.feature_names)
        needed = dependency_closure(listed | auto)
        missing = needed - result.feature_names
        # What a listed feature requires shuts nobody out: who knows the one knows the other.
        new = missing - dependency_closure(listed)
        manual = sorted(n for n in new if FEATURES[n].auto and not FEATURES[n].existing)
        if manual:
            _refuse_manual(manual, metadata)
        return strategy.extend(result, needed) if missing else result

    def with_added(self, features: Iterable[str], *, policy: str | Policy = "bundled") -> Protocol:
        """With features and what they require, raising the versions as the policy does."""
        wanted = dependency_closure(_known(name).name for name in features)
        if wanted <= self.feature_names:
            return self
        return find_policy(policy).extend(self, wanted)

    def upgraded_to(
        self, reader: int, writer: int, *, policy: str | Policy = "bundled"
    ) -> Protocol:
        """With the versions raised by hand; lowering is refused."""
        if reader < self.min_reader_version or writer < self.min_writer_version:
            raise UserError(
                Code.PROTOCOL_INVALID,
                f"The protocol cannot be lowered from {self} to {reader},{writer}.",
                why="Older clients would misread what newer ones wrote.",
                fix=f"Run {how_to_drop_feature('NAME')} for features that are not needed; the "
                "versions then follow.",
                delta_class="DELTA_INVALID_PROTOCOL_DOWNGRADE",
                fields={"current": str(self), "asked": [reader, writer]},
            )
        return self._upgraded(reader, writer, find_policy(policy))

    def _upgraded(self, reader: int, writer: int, policy: Policy) -> Protocol:
        return policy.extend(self._raised(reader, writer), _NO_FEATURES)

    def _raised(self, reader: int, writer: int) -> Protocol:
        if reader > READER_LISTS or writer > WRITER_LISTS:
            raise UnsupportedFeature(
                Code.PROTOCOL_VERSION,
                f"There are no protocol versions {reader},{writer}.",
                why="The last ones are reader version 3 and writer version 7.",
                fix=f"Add features by name instead: {how_to_add_feature('NAME')}.",
                delta_class="DELTA_INVALID_PROTOCOL_VERSION",
                fields={"asked": [reader, writer]},
            )
        return self.at(reader, writer, self.feature_names)

    # -- gates --------------------------------------------------------------------------------

    def check_readable(
        self,
        client: gates.ClientLike = None,
        *,
        table: str | None = None,
        metadata: Metadata | None = None,
    ) -> None:
        """Raise, naming what blocks, if the client cannot read the table.

        >>> Protocol(1, 4).check_readable(set())
        """
        gates.check_read(self, client, table=table, metadata=metadata)

    def check_writable(
        self,
        client: gates.ClientLike = None,
        *,
        table: str | None = None,
        metadata: Metadata | None = None,
    ) -> None:
        """Raise, naming what blocks, if the client cannot write without reading data."""
        gates.check_write(self, client, table=table, metadata=metadata)

    def check_read_write(
        self,
        client: gates.ClientLike = None,
        *,
        table: str | None = None,
        metadata: Metadata | None = None,
    ) -> None:
        """Raise, naming what blocks, if the client cannot both read and write."""
        gates.check_read_write(self, client, table=table, metadata=metadata)

    def check_metadata(self, metadata: Metadata, *, table: str | None = None) -> None:
        """Raise if the metadata uses a feature that the lists do not name."""
        gates.check_matches_metadata(self, metadata, table=table)

    def check_storable(self) -> None:
        """Raise if this may be held but must never be written into a log."""
        readers, writers = self.reader_features or _NO_FEATURES, self.writer_features
        rules = (
            ("PR-00", [] if self.min_reader_version and self.min_writer_version else ["version 0"]),
            ("PR-04", sorted(readers - (writers or _NO_FEATURES))),
            ("PR-05", sorted(n for n in readers if n in FEATURES and not FEATURES[n].is_reader)),
            ("PR-07", sorted(n for n in self.explicit_features if not NAME_PATTERN.fullmatch(n))),
        )
        broken = {rule: names for rule, names in rules if names}
        if broken:
            raise UserError(
                Code.PROTOCOL_INVALID,
                f"Protocol {self} must not be written.",
                why=" ".join(
                    f"{_STORABLE_RULES[rule]}: {', '.join(names)}."
                    for rule, names in broken.items()
                ),
                fix="Write its normalized form.",
                rule=next(iter(broken)),
                fields={"rules": broken},
            )

    # -- text ---------------------------------------------------------------------------------

    @classmethod
    def from_dict(cls, data: Any) -> Protocol:
        """From the JSON of the log; ``msgspec.ValidationError`` on a wrong shape."""
        wire = msgspec.convert(data, _Wire)
        reader, writer = wire.min_reader_version, wire.min_writer_version
        # Checkpoints of some writers carry empty lists where there should be none.
        readers = wire.reader_features or (None if reader < READER_LISTS else wire.reader_features)
        writers = wire.writer_features or (None if writer < WRITER_LISTS else wire.writer_features)
        try:
            return cls(reader, writer, readers, writers)
        except UserError as error:
            raise msgspec.ValidationError(f"{error.what} {error.why}") from error

    def to_dict(self) -> dict[str, Any]:
        """As the log spells it: sorted names, and no list where there is none."""
        lists = {"readerFeatures": self.reader_features, "writerFeatures": self.writer_features}
        return {
            "minReaderVersion": self.min_reader_version,
            "minWriterVersion": self.min_writer_version,
            **{key: sorted(names) for key, names in lists.items() if names is not None},
        }

    def __str__(self) -> str:
        versions = f"{self.min_reader_version},{self.min_writer_version}"
        if not self.uses_lists:
            return versions
        return f"{versions},{_list(self.reader_features)},{_list(self.writer_features)}"

    def __repr__(self) -> str:
        lists = {"reader_features": self.reader_features, "writer_features": self.writer_features}
        shown = "".join(
            f", {key}={{{', '.join(map(repr, sorted(names)))}}}" if names else f", {key}=set()"
            for key, names in lists.items()
            if names is not None
        )
        return f"Protocol({self.min_reader_version}, {self.min_writer_version}{shown})"

    def _repr_html_(self) -> str:
        from twinlake._html import grid, page

        rows = []
        for name in sorted(self.feature_names):
            row, reads = FEATURES.get(name), name in self.reader_requirements
            said = (row.client, row.description) if row else ("none", "unknown to twinlake")
            rows.append((name, "reading and writing" if reads else "writing", *said))
        title = f"Protocol: reader {self.min_reader_version}, writer {self.min_writer_version}"
        return page(title, grid(("feature", "needed for", "twinlake can", "what it is"), rows))


_STORABLE_RULES: Final = {
    "PR-00": "Versions start at 1",
    "PR-04": "Reader features that are not writer features",
    "PR-05": "Writer-only features among the reader features",
    "PR-07": "Names may hold letters, digits, - and _ only",
}


def _names(names: Iterable[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset([names] if isinstance(names, str) else names)


def _list(names: frozenset[str] | None) -> str:
    return "None" if names is None else f"[{','.join(sorted(names))}]"


def _spelled(reader: int, names: frozenset[str], unknown_readers: frozenset[str]) -> Protocol:
    """Writer version 7 with the names listed; on the reader side too if that is on lists."""
    writers = names | unknown_readers
    if reader < READER_LISTS:
        return Protocol(reader, WRITER_LISTS, None, writers)
    readers = {name for name in writers if name in FEATURES and FEATURES[name].is_reader}
    return Protocol(READER_LISTS, WRITER_LISTS, readers | unknown_readers, writers)


def _weakest(names: frozenset[str], unknown_readers: frozenset[str]) -> Protocol:
    reader, writer = minimum_versions(names)
    if names == implied_features(reader, writer):
        return Protocol(reader, writer)
    return _spelled(READER_LISTS if unknown_readers else reader, names, unknown_readers)


def _known(name: str) -> Feature:
    row = find_feature(name)
    if row is None:
        raise UserError(
            Code.FEATURE_UNKNOWN,
            f"There is no table feature {name!r}.",
            why="Adding a name that nobody understands would lock the table.",
            fix="Run `twinlake features` for the names of all features.",
            delta_class="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            fields={"feature": name},
        )
    return row


def _refuse_version(row: Feature, side: str, required: int, current: int) -> None:
    raise UserError(
        Code.FEATURE_ENABLE,
        f"Feature {row.name} needs {side} version {required}; the protocol has {current}.",
        why="The feature cannot be expressed in these versions.",
        fix="Raise the versions together with adding the feature: "
        f"{how_to_add_feature(row.name)} does both.",
        delta_class=f"DELTA_FEATURE_REQUIRES_HIGHER_{side.upper()}_VERSION",
        fields={"feature": row.name, "required": required, "current": current},
    )


def _refuse_manual(names: list[str], metadata: Metadata) -> None:
    calls = ", ".join(how_to_add_feature(name) for name in names)
    raise UserError(
        Code.FEATURE_ENABLE,
        f"Table {metadata.label} needs features that must be added by hand: {', '.join(names)}.",
        why="The change needs them, but adding them shuts out clients that can use the table now.",
        fix=f"Run {calls} first.",
        delta_class="DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
        fields={"table": metadata.label, "features": names},
    )

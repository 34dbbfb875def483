"""Which of our rules a complaint of the Java kernel is about, by the words it uses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tests.support.kernel.mutations import rule_id
from twinlake.compat import COMPATS

if TYPE_CHECKING:
    from tests.support.kernel.validators import KernelVerdict

__all__ = ["blamed_rules", "is_about_compat"]

_COMPLAINTS: Final = tuple(
    (re.compile(pattern, re.DOTALL), aims)
    for pattern, aims in (
        # The kernel asks the base feature first, so it never gets to the twin of the writers.
        (r"requires the feature 'icebergCompatV\d' to be enabled", ("base-01",)),
        (r"requires the feature 'columnMapping' to be enabled", ("base-02",)),
        (r"requires the feature 'rowTracking' to be enabled", ("base-18",)),
        (r"requires the feature 'icebergWriterCompatV\d' to be enabled", ("writer-03",)),
        (r"'delta\.columnMapping\.mode' is not compatible with icebergCompat", ("base-03",)),
        (r"'delta\.columnMapping\.mode' is not compatible with icebergWriter", ("writer-05",)),
        (r"Invalid value for table property 'delta\.columnMapping\.mode'", ("base-03",)),
        (r"'delta\.enableIcebergCompatV\d' is not compatible", ("writer-04",)),
        (r"'delta\.enableRowTracking' is not compatible", ("base-18",)),
        (r"Only one IcebergCompat version can be enabled", ("base-04",)),
        (r"features \[deletionVectors\] are incompatible with icebergCompat", ("base-05",)),
        (r"features \[invariants\] are incompatible with icebergWriter", ("writer-11",)),
        (r"features \[changeDataFeed\] are incompatible with icebergWriter", ("writer-12",)),
        (r"features \[checkConstraints\] are incompatible with icebergWriter", ("writer-13",)),
        (r"features \[identityColumns\] are incompatible with icebergWriter", ("writer-14",)),
        (r"features \[generatedColumns\] are incompatible with icebergWriter", ("writer-15",)),
        (r"features \[rowTracking\] are incompatible with icebergWriter", ("writer-16",)),
        (r"features \[.+\] are incompatible with icebergWriter", ("writer-10", "writer-17")),
        (r"table requires feature \".+\" which is unsupported", ("writer-10",)),
        (r"icebergCompatV\d does not support the data types", ("base-07", "base-16")),
        (r"icebergWriterCompatV\d does not support the data types", ("writer-07",)),
        (r"unsupported Delta data type: VOID", ("base-07",)),
        (r"interval .+ is not a supported delta data type", ("base-17",)),
        (r"MapType does not support collated string types as keys", ("base-07",)),
        (r"does not support the data type .+ for a partition column", ("base-08",)),
        (r"Partition column .+ not found in the schema", ("base-08",)),
        (r"does not support type widening present in table", ("base-15",)),
        (r"Both columnId and physicalName must be present", ("writer-06", "base-13")),
        (r"physical names be equal to 'col-\[fieldId\]'", ("writer-06",)),
        (r"Inconsistent IDENTITY metadata", ("writer-14",)),
        (r"Cannot change the type key of Map field", ("writer-09",)),
        (r"Disabling delta\.enableIcebergCompatV3 on an existing table", ("base-20",)),
        (r"Cannot enable delta\.enableIcebergCompatV3 on an existing table", ("base-19",)),
        (r"enable delta\.enableIcebergWriterCompatV1 on an existing table", ("writer-19",)),
        (r"Disabling delta\.enableIcebergWriterCompatV1 on an existing table", ("writer-19",)),
        (r"requires the default value to be literal", ("base-21",)),
        (r"does not support column defaults for", ("base-21",)),
    )
)


#: What the kernel asks of any table whose schema changes, whatever features it has.
_BESIDE_THE_POINT: Final = re.compile(r"Found column defaults in the schema but the table does not")


def is_about_compat(verdict: KernelVerdict) -> bool:
    """Whether the verdict is one on the compat features, and not on the change of any schema."""
    return not _BESIDE_THE_POINT.search(verdict.message)


def blamed_rules(feature: str, verdict: KernelVerdict) -> frozenset[str]:
    """The rules the complaint can be about; none where the words are not known."""
    is_writer = COMPATS[feature].is_writer
    for words, aims in _COMPLAINTS:
        if words.search(verdict.message):
            known = [aim for aim in aims if is_writer or not aim.startswith("writer")]
            return frozenset(rule_id(aim, feature) for aim in known)
    return frozenset()

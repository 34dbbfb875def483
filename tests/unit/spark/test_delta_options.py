"""The options of Delta's readers and writers as values."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from twinlake.errors import UserError
from twinlake.spark.delta_options import (
    OPTIONS,
    OptionUse,
    OptionValues,
    UnknownOptionWarning,
    table_properties,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


def test_names_are_found_whatever_their_case() -> None:
    values = OptionValues.of({"MERGEschema": "True", "versionAsOf": None})
    assert values.truth("mergeSchema") is True
    assert values.number("versionAsOf") is None
    assert not values.has("versionAsOf")


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"mergeSchema": "maybe"}, "DELTA_ILLEGAL_OPTION"),
        ({"txnAppId": "a"}, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"),
        ({"txnVersion": "1"}, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"),
        ({"txnAppId": "a", "txnVersion": "-1"}, "DELTA_ILLEGAL_OPTION"),
    ],
    ids=str,
)
def test_values_that_cannot_be_meant(options: Mapping[str, str], condition: str) -> None:
    values = OptionValues.of(options)
    with pytest.raises(UserError) as error:
        values.txn()
        values.truth("mergeSchema")
    assert error.value.delta_class == condition


def test_unknown_names_are_reported_once_and_prefixes_are_not() -> None:
    values = OptionValues.of(
        {"aMisspeltOption": "1", "delta.appendOnly": "true", "fs.s3a.endpoint": "x", "path": "/t"}
    )
    with pytest.warns(UnknownOptionWarning, match="amisspeltoption"):
        values.warn_of_unknown(OptionUse.WRITE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values.warn_of_unknown(OptionUse.WRITE)


def test_properties_keep_their_spelling() -> None:
    assert table_properties({"delta.appendOnly": "true", "Delta.x": None}) == {
        "delta.appendOnly": "true"
    }


def test_every_option_says_what_it_is_for() -> None:
    assert len({option.name.lower() for option in OPTIONS}) == len(OPTIONS)
    assert all(option.meaning.endswith(".") for option in OPTIONS)

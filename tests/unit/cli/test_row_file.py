"""Files of rows are read by the columns of the table, and nothing is guessed."""

from __future__ import annotations

import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinlake.cli import row_file
from twinlake.cli.row_file import RowFile, format_of
from twinlake.errors import Code, UserError
from twinlake.schema import parse_ddl

SCHEMA = parse_ddl(
    "id INT NOT NULL, name STRING, price DECIMAL(10,2), day DATE, seen TIMESTAMP, "
    "local TIMESTAMP_NTZ, ok BOOLEAN, ratio DOUBLE, small BYTE, raw BINARY, "
    "place STRUCT<zip: STRING NOT NULL, since: DATE>, days ARRAY<DATE>, tags MAP<STRING, INT>"
)


def read(path: Path, kind: str | None = None) -> list[dict[str, Any]]:
    rows = RowFile(path, kind or format_of(path), SCHEMA)
    found: list[dict[str, Any]] = rows.reader().read_all().to_pylist()
    assert rows.num_rows == len(found)
    return found


def refused(path: Path, kind: str | None = None) -> UserError:
    with pytest.raises(UserError) as found:
        read(path, kind)
    return found.value


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows"


def written(file: Path, suffix: str, text: str) -> Path:
    path = file.with_suffix(suffix)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.parquet", "parquet"), ("a.b.CSV", "csv"), ("a.csv.gz", "csv"), ("a.jsonl", "jsonl"),
        ("a.ndjson.zst", "jsonl"), ("a.json", "jsonl"), ("part-0.snappy.parquet", "parquet"),
    ],
)  # fmt: skip
def test_the_name_says_the_format(name: str, kind: str) -> None:
    assert format_of(Path(name)) == kind


@pytest.mark.parametrize("name", ["a", "a.txt", "a.gz", ".csv/x"])
def test_a_name_that_says_nothing(name: str) -> None:
    with pytest.raises(UserError, match="does not say"):
        format_of(Path(name))


def test_csv_has_the_types_of_the_table(file: Path) -> None:
    path = written(
        file,
        ".csv",
        "\ufeffID,name,price,day,seen,local,ok,ratio,small\n"
        '1,"a,\nb",1.5,2024-05-01,2024-05-01T10:00:00+02:00,2024-05-01 10:00:00,true,1e3,-1\n'
        '2,"",,,,,,,\n'
        "3,007,,,,,,,\n",
    )
    first, second, third = read(path)
    assert first == {
        "id": 1, "name": "a,\nb", "price": Decimal("1.50"), "day": dt.date(2024, 5, 1),
        "seen": dt.datetime(2024, 5, 1, 8, tzinfo=dt.UTC), "local": dt.datetime(2024, 5, 1, 10),
        "ok": True, "ratio": 1000.0, "small": -1,
    }  # fmt: skip
    assert second == {**dict.fromkeys(first), "id": 2, "name": ""}
    assert third["name"] == "007"


def test_json_has_the_types_of_the_table(file: Path) -> None:
    path = written(
        file,
        ".jsonl",
        '{"id": 1, "price": 1.5, "day": "2024-05-01", "seen": "2024-05-01T10:00:00Z", '
        '"place": {"zip": "0815", "since": "2020-01-01"}, "days": ["2024-05-01", null]}\n'
        "\n"
        '{"id": 2, "name": "7", "price": "2.25", "ok": false, "place": null}\n',
    )
    first, second = read(path)
    assert first == {
        "id": 1, "price": Decimal("1.50"), "day": dt.date(2024, 5, 1),
        "seen": dt.datetime(2024, 5, 1, 10, tzinfo=dt.UTC),
        "place": {"zip": "0815", "since": dt.date(2020, 1, 1)}, "days": [dt.date(2024, 5, 1), None],
        "name": None, "ok": None,
    }  # fmt: skip
    assert (second["price"], second["place"]) == (Decimal("2.25"), None)


def test_parquet_keeps_its_types(file: Path) -> None:
    path = file.with_suffix(".parquet")
    pq.write_table(pa.table({"Id": pa.array([1], pa.int16()), "tags": [None]}), path)
    rows = RowFile(path, "parquet", SCHEMA).reader()
    assert rows.schema.names == ["id", "tags"]
    assert rows.schema.field("id").type == pa.int16()
    assert rows.read_all().num_rows == 1


def test_compressed_text(file: Path) -> None:
    for suffix, text in ((".csv.gz", "id\n1\n"), (".jsonl.gz", '{"id": 1}\n')):
        path = file.with_suffix(suffix)
        path.write_bytes(gzip.compress(text.encode()))
        assert read(path) == [{"id": 1}]


def test_files_without_rows(file: Path) -> None:
    assert read(written(file, ".csv", "id,name\n")) == []
    assert read(written(file, ".jsonl", "\n")) == []
    assert "no header line" in refused(written(file, ".csv", "")).why


def test_a_long_line_fits(file: Path) -> None:
    name = "x" * (17 << 20)
    (row,) = read(written(file, ".jsonl", f'{{"name": "{name}"}}\n'))
    assert row["name"] == name


@pytest.mark.parametrize(
    ("suffix", "text", "names"),
    [
        (".csv", "id,nope,nada\n1,2,3\n", ["nope", "nada"]),
        (".jsonl", '{"id": 1, "nope": 1}\n{"nada": 2}\n', ["nope", "nada"]),
        (".jsonl", '{"place": {"x": 1, "zip": ""}}\n{"place": {"y": 1}}\n', ["place.x", "place.y"]),
    ],
    ids=["csv", "json", "json struct"],
)  # fmt: skip
def test_unknown_columns_are_reported_at_once(
    file: Path, suffix: str, text: str, names: list[str]
) -> None:
    error = refused(written(file, suffix, text))
    assert error.code == Code.COLUMN_NOT_FOUND
    assert error.fields["missing"] == names


def test_unknown_columns_of_parquet(file: Path) -> None:
    path = file.with_suffix(".parquet")
    pq.write_table(pa.table({"id": [1], "nope": [1], "nada": [1]}), path)
    assert refused(path).fields["missing"] == ["nope", "nada"]


@pytest.mark.parametrize(
    ("suffix", "text", "why"),
    [
        (".csv", "id\nx\n", "invalid value 'x'"),
        (".csv", "small\n300\n", "300"),
        (".csv", "price\n1.255\n", "data loss"),
        (".csv", "seen\n2024-05-01T10:00:00\n", "zone offset"),
        (".csv", "id,name\n1\n", "Expected 2 columns"),
        (".csv", "id,ID\n1,2\n", "id more than once"),
        (".csv", "raw,tags,place\n1,2,3\n", "raw (binary), tags (map"),
        (".jsonl", '{"id": "1"}\n', "number to string"),
        (".jsonl", '{"name": 1}\n', "string to number"),
        (".jsonl", '{"day": "yesterday"}\n', "yesterday"),
        (".jsonl", '{"id": 1}\n{"id": 2\n', "line 2 is no JSON"),
        (".jsonl", "[1]\n", "line 1 is no JSON object"),
        (".jsonl", '{"id": 1, "ID": 2}\n', "id more than once"),
        (".jsonl", '{"tags": {"a": 1}, "raw": "a"}\n', "tags (map<string, int32>"),
        (".parquet", "no parquet", "magic bytes"),
    ],
)
def test_what_does_not_fit_is_refused(file: Path, suffix: str, text: str, why: str) -> None:
    error = refused(written(file, suffix, text))
    assert error.code == Code.INVALID_ARGUMENT
    assert why in error.why
    assert error.fix


def test_bytes_that_are_no_text(file: Path) -> None:
    path = file.with_suffix(".csv")
    path.write_bytes(b"name\n\xff\xfe\n")
    assert refused(path).code == Code.INVALID_ARGUMENT
    path.write_bytes(b"\xff\xfe\n")
    assert refused(path).code == Code.INVALID_ARGUMENT


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_a_file_that_is_not_there(file: Path, kind: str) -> None:
    assert "There is no file" in refused(file, kind).what
    file.mkdir()
    assert refused(file, kind).code == Code.INVALID_ARGUMENT


def test_a_failure_in_the_middle_is_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_file, "_BLOCK", 64)
    rows = RowFile(written(file, ".csv", "id\n" + "1\n" * 1000 + "x\n"), "csv", SCHEMA)
    # A consumer of the Arrow stream interface sees text only.
    reader = pa.RecordBatchReader.from_stream(rows.reader())
    with pytest.raises((UserError, pa.ArrowException, OSError)):
        reader.read_all()
    assert rows.failure is not None
    assert "invalid value 'x'" in rows.failure.why

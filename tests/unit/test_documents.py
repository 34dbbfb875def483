"""The documents tell the truth: their code runs, their links lead somewhere.

Pages that need Spark are run by tests/interop/test_documents_on_spark.py.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.support import documents
from tests.support.documents import PAGES, ROOT, blocks, name_of, needs_spark, run_page

EVERY = sorted({*PAGES, *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")})
PLAIN = [
    page for page in PAGES if any(block.is_code for block in blocks(page)) and not needs_spark(page)
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

PUBLIC = (
    *("twinlake", "twinlake.protocol", "twinlake.spark", "twinlake.spark.exceptions"),
    *("twinlake.verify", "twinlake.verify.models"),
)
#: An import of something of ours, in a module or in a block of a page.
IMPORT = re.compile(
    r"^ *(?:from|import) (twinlake[\w.]*)(?: import (?:\(([^)]*)\)|(.*)))?", re.MULTILINE
)

#: A command to type, and not its synopsis.
COMMAND = r"^(\$ |(twinlake|python|pytest|make|pip) (?!.*\[OPTIONS\]))"

#: Blocks that are not run, with the reason they give; a new one is added here, too.
NOT_RUN = {
    "CONTRIBUTING.md": ["it sets up the machine"],
    "README.md": [
        "it installs packages",
        "--watch runs until Ctrl-C, and the import needs an Iceberg table",
        "it needs a session without the jar of Delta Spark",
    ],
    "docs/explanation/the-iceberg-anomaly.md": ["it is a test already"],
    "docs/how-to/import-an-iceberg-table.md": [
        "it needs an object store and a catalog of the reader's own",
        "it needs an object store",
    ],
    "docs/how-to/run-the-benchmarks.md": ["it takes 40 minutes", "it takes minutes"],
    "docs/how-to/run-sql.md": ["it starts Spark"],
    "docs/how-to/serve-iceberg-clients.md": [
        "it installs packages, and serves until it is stopped",
        "it needs the server",
        "it needs the database of a server",
    ],
    "docs/how-to/stream-tables.md": ["the stream of rates has no end"],
    "docs/how-to/verify-a-twin.md": ["it downloads a jar"],
    "docs/how-to/verify-commits.md": ["it takes minutes", "it takes minutes"],
    "docs/how-to/write-a-model.md": ["it is a test already", "the file is the reader's"],
}


@pytest.mark.slow
@pytest.mark.parametrize("page", PLAIN, ids=name_of)
def test_the_code_of_a_page_runs_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TWINLAKE_CATALOG", str(tmp_path / ".twinlake" / "catalog.db"))
    run_page(page)


def test_blocks_that_are_not_run_are_listed() -> None:
    found: dict[str, list[str]] = {}
    for page in PAGES:
        for block in blocks(page):
            if block.not_run is not None:
                assert block.is_code, block
                found.setdefault(name_of(page), []).append(block.not_run)
    assert found == NOT_RUN


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("```python\nx = 1\n```\ntext\n```python\nassert x == 2\n```\n", AssertionError),
        ("```console\n$ twinlake show ./nowhere\n```\n", AssertionError),
        ("```console\n$ make it\n```\n", AssertionError),
        ("```console\n$ twinlake show ./nowhere  # exit status 1\n```\n", None),
        ("<!-- not run: why -->\n```python\n1 / 0\n```\n", None),
        ("<!-- setup\n1 / 0\n-->\n", ZeroDivisionError),
    ],
)
def test_a_block_that_fails_is_seen(
    code: str, problem: type[Exception] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(documents, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(code, encoding="utf-8")
    if problem is None:
        run_page(page)
    else:
        with pytest.raises(problem):
            run_page(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_stand_in_blocks_that_are_run(page: Path) -> None:
    for block in blocks(page):
        if block.language == "console":
            assert all(line.startswith("$ ") for line in block.text.splitlines() if line), block
        elif not block.is_code:
            assert not re.search(COMMAND, block.text, re.MULTILINE), block


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=name_of)
def test_only_public_names_are_imported(page: Path) -> None:
    private = [
        f"{package}.{name}"
        for package, *names in IMPORT.findall(page.read_text(encoding="utf-8"))
        for name in ["__all__", *re.findall(r"\w+", re.sub("#.*", "", "".join(names)))]
        if package not in PUBLIC
        or name not in ("__all__", *getattr(import_module(package), "__all__", ()))
    ]
    assert private == []


@pytest.mark.parametrize("page", EVERY, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_the_architecture_page_names_modules_that_exist() -> None:
    page = (ROOT / "docs/explanation/architecture.md").read_text("utf-8")
    modules = [
        f"/{path.relative_to(ROOT)}"
        for top in ("docs", "src", "tests")
        for path in (ROOT / top).rglob("*.py")
    ]
    named = set(re.findall(r"`([\w/]+\.py)`", page))

    assert len(named) > 50
    assert {name for name in named if not any(m.endswith(f"/{name}") for m in modules)} == set()

"""The page of ``twinlake verify --html``: whole, well-formed, and in need of nothing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.running import run
from twinlake.cli.verify.page import Page, Shown, render_page
from twinlake.verify import check
from twinlake.verify.models import IcebergV2

if TYPE_CHECKING:
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "seed.html"
    assert run("verify", "iceberg", "--config", "seed", "--html", path).exit_code == 1
    return path.read_text(encoding="utf-8")


def parsed(page: str) -> ET.Element:
    assert page.startswith("<!DOCTYPE html>\n")
    return ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))


def everything(root: ET.Element) -> str:
    return " ".join("".join(root.itertext()).split())


def test_page_needs_nothing_but_itself(seed: str) -> None:
    root = parsed(seed)
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags.isdisjoint({"script", "link", "img", "iframe", "object", "image", "use"})
    for element in root.iter():
        assert {"src", "href"}.isdisjoint(element.attrib)
    # The only addresses are those of name spaces.
    addresses = set(re.findall(r"https?://[^\s\"'<]+", seed))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert set(re.findall(r"url\(([^)]*)\)", seed)) == {"#head-1"}
    assert "@import" not in seed


def test_page_follows_the_reader_into_the_dark(seed: str) -> None:
    assert '<meta name="color-scheme" content="light dark"/>' in seed
    light, _, dark = seed.partition("@media (prefers-color-scheme:dark)")
    names = set(re.findall(r"(--[a-z-]+):", light))
    assert names == set(re.findall(r"(--[a-z-]+):", dark.partition("}}")[0]))
    assert set(re.findall(r"var\((--[a-z-]+)\)", seed)) <= names
    # No colour is fixed outside the two palettes.
    assert "#" not in dark.partition("}}")[2].partition("</style>")[0]


def test_page_tells_the_comparison_and_every_step_in_text(seed: str) -> None:
    root = parsed(seed)
    text = everything(root)
    assert "row 'jack', column col2, version 3: expected None, read blue" in text
    (table,) = (one for one in root.iter("table") if one.findtext("caption") == "Every step")
    body = table.find("tbody")
    assert body is not None
    assert [row.findtext("th") for row in body] == [str(number) for number in range(1, 15)]
    assert "V1 referenced files exist passed" in everything(body)


def test_diagram_has_a_lifeline_an_actor_and_an_arrow_a_step(seed: str) -> None:
    (drawing,) = parsed(seed).iter(f"{SVG}svg")
    assert drawing.get("role") == "img"
    ids = {element.get("id") for element in drawing.iter()}
    assert set(str(drawing.get("aria-labelledby")).split()) <= ids
    heads = [one.text for one in drawing.iter(f"{SVG}text") if one.get("class") == "who"]
    assert heads == ["writer-0", "writer-1", "object store", "catalog"]
    steps = list(drawing.iter(f"{SVG}g"))
    assert len(steps) == 14
    assert all(
        sum(part.get("class", "").startswith("arrow") for part in step) == 1 for step in steps
    )
    assert all(step.findtext(f"{SVG}title") for step in steps)
    width = float(str(drawing.get("width")))
    drawn = [float(one.get(name, 0)) for one in drawing.iter() for name in ("x", "x1", "x2")]
    assert min(drawn) >= 0
    assert max(drawn) <= width


def test_page_of_a_proof_has_no_diagram(tmp_path: Path) -> None:
    path = tmp_path / "fixed.html"
    assert run("verify", "iceberg", "--fix", "--html", path).exit_code == 0
    root = parsed(path.read_text(encoding="utf-8"))
    assert list(root.iter(f"{SVG}svg")) == []
    assert "all 6 properties hold" in everything(root)


def test_values_of_the_user_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "odd.html"
    words = ("--col1-values", "<b>&amp;</b>", "--html", path)
    assert run("verify", "iceberg", *words).exit_code == 1
    root = parsed(path.read_text(encoding="utf-8"))
    assert list(root.iter("b")) == []
    assert "row '<b>&amp;</b>', column col2" in everything(root)


def test_page_of_several_traces_has_a_drawing_each() -> None:
    trace = check(IcebergV2()).trace
    assert trace is not None
    shown = [Shown(title=name, trace=trace) for name in ("one", "two")]
    root = parsed(render_page(Page(title="t", verdict="v", ok=True, traces=shown)))
    assert len(list(root.iter(f"{SVG}svg"))) == 2
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(set(ids)) == len(ids) == 6

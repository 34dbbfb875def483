"""Statistics that a foreign writer left in the log never end the process, nor move to other files.

Every example runs in a child process: what is looked for is a reader that crashes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.processes.stats_parser import StatsParser
from tests.support.scale import scale

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.process

NAMES = ("l", "b", "f", "d", "n", "t", "flag", "day", "at", "s", "x", "q", "y", "a", "other")
MEMBERS = ("numRecords", "minValues", "maxValues", "nullCount", "tightBounds", "other", "")
DEEP = 20_000

SOUND = '{"numRecords":7,"minValues":{"l":1,"t":"a"},"maxValues":{"l":9},"nullCount":{"l":0}}'
TEXTS = (
    "null", " null", "null ", "\nnull", "null\n", "\rnull", "null,null", "null null", "null{}",
    "{}null", "{} null {}", "{}\nnull{}", "{}\rnull{}", "{}{}", "{}\n{}", "{\n}", "{},{}", "",
    " ", "\n", "1", '"x"', "true", "[]", "[null]", "[{}]", "[", "{", "}", '{"', "nul", ",", "\x00",
    "\ufeff{}", "/**/{}", "{'a':1}", '{"a":1,}', "{}", '{"":{}}', '{"numRecords":NaN}',
    '{"numRecords":1,"numRecords":2}', '{"minValues":{"l":1},"minValues":{"l":2}}',
    '{"minValues":{"l":1,"l":2}}', '{"minValues":null,"minValues":{}}',
    '{"numRecords":99999999999999999999999999}', '{"numRecords":-0}', '{"numRecords":1e3}',
    '{"numRecords":' + "9" * 5_000 + "}", '{"minValues":{"n":' + "9" * 5_000 + "}}",
    '{"minValues":{"n":1e-99999}}', '{"minValues":{"d":1e99999}}', '{"minValues":{"d":Infinity}}',
    '{"minValues":{"t":"\\ud800"}}', '{"minValues":{"t":"\\u0000"}}', '{"minValues":{"t":"\x00"}}',
    '{"minValues":{"t":"}\n{"}}', '{"minValues":{"t":"}', '{"}}', '{"numRecords":1', "}{}",
    '{"minValues":{"at":"99999-01-01T00:00:00Z"}}', '{"minValues":{"day":"99999-01-01"}}',
    '{"other":' + "[" * DEEP + "]" * DEEP + "}", "[" * DEEP, '{"minValues":' * DEEP,
    '{"minValues":' * DEEP + "1" + "}" * DEEP, SOUND,
)  # fmt: skip


def _member(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(children, max_size=3) | st.dictionaries(
        st.sampled_from(NAMES), children, max_size=3
    )


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec="utf-8"), max_size=4)
    | st.sampled_from(["NaN", "-Infinity", "2024-01-01", "2024-01-01T00:00:00.000Z"]),
    _member,
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(MEMBERS), VALUES, max_size=4).map(json.dumps)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """An object of which a piece was cut out, doubled, or replaced."""
    text = draw(OBJECTS)
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 8)))
    piece = draw(st.sampled_from(["", "null", "{", "}", "[", "]", '"', ",", "\n", "\r", "{}"]))
    return text[:start] + piece + text[end:]


@pytest.fixture(scope="module")
def parser() -> Iterator[StatsParser]:
    found = StatsParser()
    yield found
    found.close()


@pytest.mark.parametrize("position", [0, 1, 2])
def test_no_odd_text_ends_the_process(parser: StatsParser, position: int) -> None:
    for text in TEXTS:
        texts = [SOUND, SOUND]
        texts.insert(position, text)
        answer = parser.parse(texts)
        assert answer["whole"] == answer["alone"], text[:200]
        assert answer["whole"].count([7, 1, 9]) == (3 if text == SOUND else 2)


def test_no_odd_text_after_another_ends_the_process(parser: StatsParser) -> None:
    for first in TEXTS[:: scale(5, 1)]:
        for second in TEXTS:
            answer = parser.parse([first, second, SOUND])
            assert answer["whole"] == answer["alone"], (first[:200], second[:200])


def test_odd_text_at_the_edge_of_a_block_does_not_end_the_process(parser: StatsParser) -> None:
    # The reader cuts its input into blocks of at least a mebibyte, each parsed by itself.
    long = '{"minValues":{"t":"' + "x" * (1 << 19) + '"}}'
    for odd in ("null", "{}\nnull{}", "{}\rnull{}", "\nnull", ""):
        parser.parse([long, odd, long, odd, long, odd, long, odd])
        parser.parse([odd + long + odd] * 4)
        parser.parse(["{}" + odd * (1 << 19) + "{}"] * 4)


@settings(max_examples=scale(150, 20_000), deadline=None)
@given(st.lists(OBJECTS | damaged() | st.sampled_from(TEXTS), min_size=1, max_size=4))
def test_statistics_do_not_depend_on_those_of_other_files(
    parser: StatsParser, texts: list[str]
) -> None:
    answer = parser.parse(texts)
    assert answer["whole"] == answer["alone"]

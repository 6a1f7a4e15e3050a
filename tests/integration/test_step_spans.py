"""Token spans of steps in sampled tokens: multi-byte text, fences, prose, truncation, tokens no tokenizer makes."""

import random
from collections.abc import Sequence

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
from hypothesis import given, settings
from hypothesis import strategies as st

from verl_sql.integration.step_spans import (
    StepFinder,
    TokenBytes,
    char_offsets,
    disjoint,
    tokens_by_decoding,
)
from verl_sql.integration.tiny_policy import train_tokenizer

BODIES = (
    "SELECT * FROM singer WHERE name = 'Jürgen'",
    "SELECT [Größe (m)], \"日本語\" FROM café WHERE x = ')'",
    "SELECT count(*), '😀😀' AS `a, b` FROM t -- ), not the end\n",
    "SELECT 1",
)
TEXTS = [f"WITH a AS ({body}), b2 AS ({body}) SELECT avg(x) FROM a WHERE y IN (SELECT 1)" for body in BODIES]
TOKENIZER = train_tokenizer(TEXTS * 40, 460)
FINDER = StepFinder(TOKENIZER)
BYTES = TokenBytes(TOKENIZER)
BYTE_TOKENS = {BYTES(i): i for i in range(len(TOKENIZER)) if len(BYTES(i)) == 1}


def steps_text(ids: Sequence[int]) -> list[str]:
    """The decoded text of each step's tokens."""
    return [TOKENIZER.decode(ids[start:end]) for start, end in FINDER.find(ids).spans]


@st.composite
def chains(draw):
    """A chain as (items, whole text), some of it in a fence, in tags or behind prose."""
    bodies = draw(st.lists(st.sampled_from(BODIES), min_size=1, max_size=4))
    comma = draw(st.sampled_from([",", ", ", " ,\n", ",/* ), */ "]))
    items = [f"{name} AS ({body})" for name, body in zip(("a", '"ö 1"', "`c`", "d"), bodies, strict=False)]
    chain = f"WITH {comma.join(items)}\nSELECT * FROM a"
    before, after = draw(
        st.sampled_from(
            [("", ""), ("```sql\n", "\n```"), ("Erst das: 😀\n```sql\n", ";\n```\nFertig."), ("<answer>", "</answer>")]
        )
    )
    return items, before + chain + after


def resampled(text: str, seed: int) -> list[int]:
    """Tokens of the same text that the tokenizer would not choose: cut anywhere, even inside a character."""
    cuts, data, ids = random.Random(seed), text.encode(), []
    at = 0
    while at < len(data):
        size = cuts.randint(1, 12)
        part = data[at : at + size]
        whole = part.decode(errors="ignore").encode() == part
        ids += TOKENIZER.encode(part.decode()) if whole else [BYTE_TOKENS[part[i : i + 1]] for i in range(len(part))]
        at += size
    return ids


@given(chains(), st.integers(0, 2**31), st.booleans())
@settings(max_examples=60, deadline=None)
def test_each_span_is_the_least_that_holds_its_step(chain, seed: int, canonical: bool) -> None:
    items, text = chain
    ids = [*(TOKENIZER.encode(text) if canonical else resampled(text, seed)), TOKENIZER.eos_token_id]
    found = FINDER.find(ids)
    assert found.text == text == TOKENIZER.decode(ids, skip_special_tokens=True)
    assert len(found.spans) == len(items)
    last = 0
    for item, (start, end) in zip(items, found.spans, strict=True):
        held = b"".join(map(BYTES, ids[start:end]))
        # One token may hold the end of a step, a comma and a quote: it is the earlier step's.
        core = item.encode() if item.encode() in held else item.encode()[1:]
        assert core in held
        assert core not in held[len(BYTES(ids[start])) :]
        assert core not in held[: -len(BYTES(ids[end - 1]))]
        assert last <= start < end
        last = end
    assert found.spans[-1][1] < len(ids)


@given(chains(), st.integers(0, 2**31), st.data())
@settings(max_examples=60, deadline=None)
def test_a_chain_that_breaks_off_gives_its_whole_steps(chain, seed: int, data) -> None:
    items, text = chain
    ids = resampled(text, seed)
    cut = ids[: data.draw(st.integers(0, len(ids)))]
    found = FINDER.find(cut)
    whole = FINDER.find(ids).spans
    if found.chain is not None and found.chain.has_ctes:
        assert found.spans == whole[: len(found.spans)]
        assert found.spans == tuple(span for span in whole if span[1] <= len(cut))[: len(found.spans)]
        assert [step.name for step in found.chain.steps] == ["a", "ö 1", "c", "d"][: len(found.spans)]
    assert len(found.spans) <= len(items)


@given(st.lists(st.integers(0, len(TOKENIZER) + 3), max_size=40))
@settings(max_examples=100, deadline=None)
def test_pieces_add_up_to_what_the_tokenizer_decodes(ids: list[int]) -> None:
    data = b"".join(map(BYTES, ids))
    assert data.decode("utf-8", "replace") == TOKENIZER.decode(ids, skip_special_tokens=True)
    assert len(FINDER.find(ids).spans) >= 0


@given(st.binary(max_size=40))
@settings(max_examples=100, deadline=None)
def test_offsets_of_characters(data: bytes) -> None:
    offsets = char_offsets(data)
    text = data.decode("utf-8", "replace")
    assert len(offsets) == len(text) + 1
    assert offsets[-1] == len(data)
    for char, start, end in zip(text, offsets, offsets[1:], strict=False):
        assert data[start:end].decode("utf-8", "replace") == char


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("I do not know.", []),
        ("SELECT name FROM singer;", ["SELECT name FROM singer"]),
        ("WITH a AS (SELECT 1), b AS (SELECT 2", [" a AS (SELECT 1),"]),
        ("WITH a AS (SELECT 1)", [" a AS (SELECT 1)"]),
        ("WITH a AS (SELECT ')' FROM", []),
        (
            "WITH x AS (WITH y AS (SELECT 1) SELECT * FROM y) SELECT * FROM x",
            [" x AS (WITH y AS (SELECT 1) SELECT * FROM y)"],
        ),
    ],
)
def test_what_the_spans_hold(text: str, expected: list[str]) -> None:
    assert [found.strip(", ") for found in steps_text(TOKENIZER.encode(text))] == [e.strip(", ") for e in expected]


def test_special_tokens_are_no_text() -> None:
    inside = [*TOKENIZER.encode("WITH a AS (SELECT"), TOKENIZER.pad_token_id, *TOKENIZER.encode(" 1) SELECT 2")]
    found = FINDER.find([TOKENIZER.pad_token_id, *inside, TOKENIZER.eos_token_id])
    assert found.text == "WITH a AS (SELECT 1) SELECT 2"
    start, end = found.spans[0]
    assert TOKENIZER.decode(([0, *inside])[start:end], skip_special_tokens=True).strip() == "a AS (SELECT 1)"


@given(chains(), st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_prefix_decoding_finds_the_same_spans(chain, seed: int) -> None:
    """The way for tokenizers whose pieces are no bytes, on one whose pieces are."""
    items, text = chain
    ids = resampled(text, seed)
    where = [(text.index(item), text.index(item) + len(item)) for item in items]
    found = tokens_by_decoding(lambda part: TOKENIZER.decode(part, skip_special_tokens=True), ids, text, where)
    assert tuple(disjoint(found)) == FINDER.find(ids).spans

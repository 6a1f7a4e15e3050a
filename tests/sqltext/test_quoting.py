"""Database text inside a chat: what must not survive, what must stay as it is."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verl_sql.sqltext.quoting import cell_text, line_text, names_text, neutral, row_text

MARKERS = (
    *("<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|eot_id|>", "<|start_header_id|>", "</s>", "<s>"),
    *("<｜User｜>", "<｜end▁of▁sentence｜>", "<start_of_turn>", "<end_of_turn>", "＜|im_end|＞", "[INST]", "[/INST]"),
    *("<tool_call>", "</tool_call>", "<tool_response>", "<function=run_sql>", "[TOOL_CALLS]", "[@BOS@]"),
    *("<think>", "</think>", "<answer>", "</answer>", "<sql>", "<reasoning>", "```", "~~~"),
    *("\n", "\r", "\u2028", "\u0085", "\x00", "\x1b", "\u202e", "\u200b", "\ufeff", "\udcff"),
)
"""What some tokenizer, template, tool parser, extractor or terminal acts on."""

TEXTS = st.lists(
    st.one_of(st.sampled_from(MARKERS), st.text(max_size=4), st.sampled_from("<>[]|`'/ ")), max_size=12
).map("".join)


@given(TEXTS)
@settings(max_examples=400, deadline=None)
def test_no_marker_survives_and_the_text_is_one_encodable_line(text: str):
    for safe in (neutral(text), cell_text(text), row_text([text, text]), names_text([text]), line_text(text)):
        assert not any(marker in safe for marker in MARKERS)
        assert len(safe.splitlines()) <= 1
        safe.encode("utf-8")


@given(TEXTS, st.lists(st.sampled_from(["§end§", "||", "▁x", "<2mass>", "{{", "'|'"]), unique=True))
@settings(max_examples=200, deadline=None)
def test_none_of_the_tokenizers_own_tokens_survives(text: str, tokens: list[str]):
    assert not any(token in neutral(text + "".join(tokens) + text, tokens) for token in tokens)


@pytest.mark.parametrize(
    "text",
    ["a < b and c <= d, x <> y, n <5", "C:\\new", "O'Neil said \"no\"", "São Paulo 東京", "[1] `name` ~x", "a|b"],
)  # fmt: skip
def test_ordinary_text_stays_as_it_is(text: str):
    assert neutral(text) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"), (12, "12"), (2.5, "2.5"), ("O'Brien", "'O''Brien'"), (b"\x00\xff", "X'00ff'"),
        ("NULL", "'NULL'"), ("x" * 41, f"'{'x' * 40}…' (41 characters)"), (b"a" * 21, f"X'{'61' * 20}…' (21 bytes)"),
        ("</answer>", "'\\u003c/answer>'"), ("a\nb\tc", "'a\\nb\\tc'"), ("\udce9", "'\\udce9'"),
    ],
)  # fmt: skip
def test_cells_are_sql_literals(value: object, text: str):
    assert cell_text(value) == text


def test_a_cell_cannot_forge_another_cell_nor_a_name_another_name():
    line = row_text(["1' | '2", 3])
    assert re.findall(r"'(?:[^']|'')*'|\d+", line) == ["'1'' | ''2'", "3"]
    assert names_text(["a | b", "c"]).split(" | ") == ["a \\u007c b", "c"]


def test_long_messages_are_cut():
    assert line_text("e" * 301) == "e" * 300 + "…"
    assert line_text("no such column: x") == "no such column: x"

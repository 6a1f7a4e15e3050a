"""Format and tag terms on the outputs that real policies write."""

import pytest

from verl_sql.rewards.output_format import final_answer_format, is_exactly, matches
from verl_sql.rewards.tag_count import share_of_single_tags


class Text:
    """What a format term reads of a sample."""

    def __init__(self, completion: str) -> None:
        self.completion = completion


@pytest.mark.parametrize(
    ("completion", "exact", "fits"),
    [
        ("<think>a</think><answer>b</answer>", True, True),
        ("<think>a</think>\n\n<answer>b</answer>", True, True),
        ("\n<think>a\nb</think> <answer>c\nd</answer>\n<|im_end|>", True, True),
        ("<think></think><answer></answer>", True, True),
        ("<think>a</think><think>b</think><answer>c</answer>", False, True),
        ("<think>a</think><answer>b</answer><answer>c</answer>", False, True),
        ("<think>a</think> so <answer>b</answer>", False, False),
        ("Sure. <think>a</think><answer>b</answer>", False, False),
        ("<think>a</think><answer>b</answer> done", False, False),
        ("<answer>b</answer><think>a</think>", False, False),
        ("<think>a<answer>b</answer>", False, False),
        ("<THINK>a</THINK><answer>b</answer>", False, False),
        ("", False, False),
    ],
)
def test_two_blocks(completion: str, exact: bool, fits: bool):
    assert is_exactly(completion, "think", "answer") is exact
    assert matches(completion, "think", "answer") is fits


@pytest.mark.parametrize(
    ("completion", "value"),
    [
        ("<answer>a</answer>", 1.0),
        ("<think>a</think> tool output <think>b</think><answer>c</answer></s>", 1.0),
        ("<think>a<answer>b</answer>", 0.0),
        ("<answer>a</answer> and more", 0.0),
        ("<answer>a</answer><answer>b</answer>", 0.0),
        ("<answer>a", 0.0),
        ("</answer><answer>", 0.0),
        ("a", 0.0),
    ],
)
def test_final_answer(completion: str, value: float):
    assert final_answer_format(Text(completion)) == value  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("completion", "share"),
    [
        ("<think>a</think><answer>b</answer>", 1.0),
        ("<think>a</think><answer>b", 0.75),
        ("<think><think></think><answer></answer>", 0.75),
        ("<answer></answer>", 0.5),
        ("<think></think><think></think>", 0.0),
        ("", 0.0),
    ],
)
def test_tag_count(completion: str, share: float):
    assert share_of_single_tags(completion) == share

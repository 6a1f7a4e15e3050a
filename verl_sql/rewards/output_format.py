"""The format terms: does the whole completion stand in the tags the paper asks for?"""

import re

from verl_sql.rewards.sample import Sample

_END_OF_TURN = re.compile(r"(?:\s|<\|im_end\|>|<\|endoftext\|>|<\|eot_id\|>|</s>)+\Z")


def reasoning_format(sample: Sample) -> float:
    """1 when the output is exactly `<reasoning>…</reasoning><answer>…</answer>` (Reasoning-SQL §3.2), else 0.

    White space between the two blocks and around them is let pass; any tag that stands twice is not.
    """
    return float(is_exactly(sample.completion, "reasoning", "answer"))


def think_format(sample: Sample) -> float:
    """1 when the output fully matches `<think>…</think>\\s*<answer>…</answer>` (Think2SQL, Eq. 10), else 0.

    A tag inside a block is let pass here, as the pattern does: the tag count pays for that.
    """
    return float(matches(sample.completion, "think", "answer"))


def final_answer_format(sample: Sample) -> float:
    """1 when the output ends in its one `<answer>…</answer>` and every `<think>` is closed before it, else 0.

    ReToolSQL, Table 1 (R_format), names a template without printing it: this one fits outputs of one turn and of many.
    """
    text = ended(sample.completion)
    head, opened, body = text.partition("<answer>")
    once = opened and text.count("<answer>") == 1 and text.count("</answer>") == 1 and body.endswith("</answer>")
    return float(bool(once) and head.count("<think>") == head.count("</think>") and "<think>" not in body)


def matches(completion: str, first: str, second: str) -> bool:
    """Whether the completion is `<first>…</first>` and `<second>…</second>`, white space alone between them."""
    pattern = rf"<{first}>.*?</{first}>\s*<{second}>.*?</{second}>"
    return re.fullmatch(pattern, ended(completion), re.DOTALL) is not None


def is_exactly(completion: str, first: str, second: str) -> bool:
    """`matches`, and each of the four tags stands exactly once."""
    tags = (f"<{first}>", f"</{first}>", f"<{second}>", f"</{second}>")
    return all(completion.count(tag) == 1 for tag in tags) and matches(completion, first, second)


def ended(completion: str) -> str:
    """The completion without white space around it and without end-of-turn tokens left at its end."""
    return _END_OF_TURN.sub("", completion).strip()

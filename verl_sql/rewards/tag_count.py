"""The tag-count term of Think2SQL."""

from verl_sql.rewards.sample import Sample

TAGS = ("<think>", "</think>", "<answer>", "</answer>")


def tag_count(sample: Sample) -> float:
    """0.25 for each of the four tags that stands exactly once (Think2SQL, Appendix D, TCR)."""
    return share_of_single_tags(sample.completion)


def share_of_single_tags(completion: str) -> float:
    """The share of TAGS that occur exactly once in the text."""
    return sum(completion.count(tag) == 1 for tag in TAGS) / len(TAGS)

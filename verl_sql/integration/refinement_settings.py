"""Options of the agent loop `verl_sql_refine`, read from the trainer's configuration.

They stand in a node `refinement` at its top, and those that scoring shares with the reward (database root, comparator,
timeout, where the answer stands) in `reward.custom_reward_function.reward_kwargs`, so that loop and reward cannot
differ on what is right.
"""

from dataclasses import dataclass, fields
from typing import Any

from omegaconf import DictConfig, OmegaConf

from verl_sql.rewards.settings import Settings
from verl_sql.sqltext.diagnosis_text import MAX_LINES

SOURCES = ("diagnosis", "execution", "both")


@dataclass(frozen=True, slots=True)
class RefinementSettings:
    """How a policy refines its SQL; the paper's own numbers are not public.

    Attributes:
        turns: attempts a trajectory has at most.
        feedback: what is told in training: `diagnosis` against the gold, what `execution` gave, or `both`. Validation
            and inference are told what the execution gave, whatever stands here.
        turn_tokens: new tokens an attempt may take; None leaves it to the response length.
        min_tokens: tokens that must be left in the response for another attempt to begin.
        max_lines: clauses that a diagnosis tells.
        trajectories: folder that every trajectory is written to as JSONL; None writes none.
    """

    turns: int = 3
    feedback: str = "diagnosis"
    turn_tokens: int | None = None
    min_tokens: int = 16
    max_lines: int = MAX_LINES
    trajectories: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no loop can do."""
        if self.feedback not in SOURCES:
            raise ValueError(f"refinement.feedback={self.feedback!r} is none of {', '.join(SOURCES)}")
        if self.turns < 1 or self.min_tokens < 1 or (self.turn_tokens is not None and self.turn_tokens < 1):
            raise ValueError("refinement.turns, min_tokens and turn_tokens must be at least 1")

    @classmethod
    def from_config(cls, config: DictConfig) -> "RefinementSettings":
        """Read the node `refinement`.

        Raises:
            ValueError: an option nobody knows, or a value that makes no sense.
        """
        given = _plain(config, "refinement")
        if unknown := sorted(set(given) - {field.name for field in fields(cls)}):
            raise ValueError(f"refinement.{unknown[0]} is no option of the agent loop verl_sql_refine")
        return cls(**given)


def reward_settings(config: DictConfig) -> Settings:
    """The reward's settings, as the reward function itself reads them."""
    return Settings.from_kwargs(_plain(config, "reward.custom_reward_function.reward_kwargs"))


def _plain(config: DictConfig, key: str) -> dict[str, Any]:
    """A node as a plain dict, empty when it is not there."""
    node = OmegaConf.select(config, key)
    found = {} if node is None else OmegaConf.to_container(node, resolve=True)
    return {str(name): value for name, value in found.items()} if isinstance(found, dict) else {}

"""verl's SFT dataset with the tools in the prompt: `data.custom_cls.path=pkg://verl_sql.integration.tool_sft`.

A chat template that describes tools (Qwen's does) puts them into the system turn. In a rollout verl passes the tools'
schemas to it, so the warm start has to, or the policy meets its prompts for the first time in reinforcement learning.
The schemas stand in no parquet column: as nested structs they would come back with null fields in them. They are ours,
in the order of `conf/tools.yaml`. Written against verl 0.9.1.
"""

from typing import Any

from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

from verl_sql.tools.schemas import SCHEMAS


class ToolSFTDataset(MultiTurnSFTDataset):
    """Conversations with tool calls; loss on what the assistant wrote, none on prompts and on tools' answers."""

    def _read_files_and_process(self) -> None:
        super()._read_files_and_process()
        schemas: list[dict[str, Any]] = list(SCHEMAS.values())
        self.tools = [schemas] * len(self.messages)

"""The step scores of one completion, for a reward function: its steps run, are rendered, and the model judges them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from verl_sql.database.execution import Execution
from verl_sql.database.executor import shared_executor
from verl_sql.prm.rendering import prompt_text, render_chain
from verl_sql.prm.stepping import aexecute_steps, execute_steps
from verl_sql.sqltext.chain import Chain


class StepJudge(Protocol):
    """A process reward model as a reward function asks it: served, or in this process."""

    def ask(self, text: str) -> tuple[float, ...]:
        """P(correct) at each tag of a rendered chain."""
        ...

    async def aask(self, text: str) -> tuple[float, ...]:
        """`ask`, awaited."""
        ...


@dataclass(frozen=True, slots=True)
class PRMSettings:
    """`reward_kwargs.prm`: where the process reward model is.

    Attributes:
        folder: a model to load in the reward function's own process, instead of one that is served.
        base_url: `http://host:port` of a vLLM server; without it verl's router, whose address verl passes.
        tokenizer: folder of the model, or of its tokenizer alone; without it the one that verl serves.
        in_validation: whether samples of a validation are judged, too.
        timeout: seconds a request may take.
        tries: requests for a text before it fails.
        concurrency: requests under way at once, in each process.
    """

    folder: str | None = None
    base_url: str | None = None
    tokenizer: str | None = None
    in_validation: bool = False
    timeout: float = 60.0
    tries: int = 6
    concurrency: int = 64

    @classmethod
    def from_kwargs(cls, prm: Mapping[str, Any] | None, kwargs: Mapping[str, Any]) -> "PRMSettings":
        """Read `reward_kwargs.prm`, and beside it what verl passes to every reward function.

        Raises:
            ValueError: a name that is none of ours.
        """
        given = {name: value for name, value in (prm or {}).items() if value is not None}
        known = {field.name for field in fields(cls)}
        if not given.keys() <= known:
            raise ValueError(f"reward_kwargs.prm knows {sorted(known)}, not {sorted(given.keys() - known)}")
        router, tokenizer = kwargs.get("reward_router_address"), kwargs.get("reward_model_tokenizer")
        if router:
            given.setdefault("base_url", f"http://{router}")
        if tokenizer is not None:
            given.setdefault("tokenizer", tokenizer.name_or_path)
        return cls(**given)

    def judge(self) -> StepJudge:
        """The model.

        Raises:
            ValueError: none is named.
        """
        if self.folder:
            from verl_sql.prm.local import local_prm

            return local_prm(self.folder)
        if not self.base_url or not self.tokenizer:
            raise ValueError(
                "no process reward model: have verl serve one (+prm=served), or set reward_kwargs.prm.folder, or "
                "prm.base_url and prm.tokenizer; mode=rule_or does without"
            )
        from verl_sql.prm.served import served_prm

        return served_prm(self.base_url, self.tokenizer, self.timeout, self.tries, self.concurrency)


def score_steps(
    model: PRMSettings, database: Path, chain: Chain, extra_info: Mapping[str, Any], timeout: float
) -> Sequence[float]:
    """P(correct) of each whole step of a chain; nothing for a chain without steps.

    Args:
        model: where the process reward model is.
        database: SQLite file that the steps run on.
        chain: the answer, split.
        extra_info: what the reward function got; `raw_prompt` is the chat in front of the chain.
        timeout: seconds a query may run.

    Raises:
        ValueError: no model, or no prompt.
        PRMUnavailable: a served model did not answer.
    """
    judge, prompt = model.judge(), _prompt(extra_info)
    if not chain.steps:
        return ()
    return judge.ask(_text(prompt, chain, execute_steps(shared_executor(), database, chain, timeout=timeout)))


async def ascore_steps(
    model: PRMSettings, database: Path, chain: Chain, extra_info: Mapping[str, Any], timeout: float
) -> Sequence[float]:
    """`score_steps` for an event loop."""
    judge, prompt = model.judge(), _prompt(extra_info)
    if not chain.steps:
        return ()
    results = await aexecute_steps(shared_executor(), database, chain, timeout=timeout)
    return await judge.aask(_text(prompt, chain, results))


def _text(prompt: str, chain: Chain, results: Sequence[Execution]) -> str:
    """What the model reads."""
    return render_chain(prompt, chain, results).text


def _prompt(extra_info: Mapping[str, Any]) -> str:
    """The prompt in front of the chain."""
    messages = extra_info.get("raw_prompt")
    if messages is None:
        raise ValueError(
            "the process reward model reads the prompt, and extra_info has no raw_prompt: set "
            "actor_rollout_ref.rollout.agent.default_agent_loop=verl_sql_steps, which passes it on"
        )
    return prompt_text(messages)

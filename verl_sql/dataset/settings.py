"""What a data preparation was asked to do: one frozen record, filled from a hydra config."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from verl_sql.dataset.reasons import Action, Reason
from verl_sql.dataset.sampling import Stratum
from verl_sql.generation.asked import Asked
from verl_sql.schema.render import SchemaForm
from verl_sql.schema.restrict import SchemaScope

# What models did not answer says nothing against a question.
TELLING = (Reason.UNJUDGED, Reason.UNLINKED, Reason.UNKNOWN_NAMES)
TRAINING = dict.fromkeys(Reason, Action.DROP) | dict.fromkeys(TELLING, Action.FLAG)
# An evaluation keeps whatever can be scored, so that its questions stay those of the benchmark; judges are not asked.
EVALUATION = {
    reason: Action.DROP
    if reason
    in {
        *(Reason.NO_DATABASE, Reason.GOLD_ERROR, Reason.GOLD_UNCOMPILABLE, Reason.GOLD_TIMEOUT, Reason.GOLD_TOO_LARGE),
        *(Reason.LONG_PROMPT, Reason.UNFIT_SCHEMA),
    }
    else Action.FLAG
    for reason in Reason
} | {Reason.CONSENSUS: Action.IGNORE}


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that decides what a prepared split holds.

    Attributes:
        template: prompt template, a name of `verl_sql/prompts` or a path to a `.jinja` file.
        form: the schema's form.
        scope: how much of the schema a prompt shows in a split to train on.
        evaluation_scope: the same in every other split, where the gold must not choose it.
        examples: how many example values M-Schema shows of a column.
        descriptions: whether comments come from the databases' description CSVs.
        value_descriptions: whether comments say what the values mean, too.
        max_prompt_tokens: longest prompt in tokens of `tokenizer`; None for no limit.
        max_prompt_characters: longest prompt in characters; None for no limit.
        tokenizer: folder or hub name of the policy's tokenizer.
        timeout: seconds a gold query may run.
        slow_seconds: seconds above which a gold query counts as slow.
        databases: only questions about these; empty for all.
        limit: at most this many questions a split are read; None for all.
        sample_size: keep a stratified sample of so many in each split to train on; None for all.
        sample_by: what the sample is balanced by.
        sample_seed: another seed gives another sample.
        train_actions: what to do for each reason in a split to train on.
        evaluation_actions: the same in every other split.
        train_splits: the splits to train on.
        judges: the two models of the consensus filter; None leaves it out. They are asked in splits whose action for
            `consensus` is not `ignore`.
        linker: the model that links schemas; None links by names and values.
        replies: folder where models' replies are remembered; None takes the default.
    """

    template: str = "reward_sql"
    form: SchemaForm = SchemaForm.MSCHEMA
    scope: SchemaScope = SchemaScope.FULL
    evaluation_scope: SchemaScope = SchemaScope.FULL
    examples: int = 3
    descriptions: bool = True
    value_descriptions: bool = False
    max_prompt_tokens: int | None = None
    max_prompt_characters: int | None = None
    tokenizer: str | None = None
    timeout: float = 30.0
    slow_seconds: float = 10.0
    databases: tuple[str, ...] = ()
    limit: int | None = None
    sample_size: int | None = None
    sample_by: Stratum = Stratum.DIFFICULTY
    sample_seed: int = 0
    train_actions: Mapping[Reason, Action] = field(default_factory=lambda: dict(TRAINING))
    evaluation_actions: Mapping[Reason, Action] = field(default_factory=lambda: dict(EVALUATION))
    train_splits: tuple[str, ...] = ("train",)
    judges: tuple[Asked, Asked] | None = None
    linker: Asked | None = None
    replies: str | None = None

    def __post_init__(self) -> None:
        """Refuse a token limit without a tokenizer to count with, and to drop what a model did not judge.

        Raises:
            ValueError: saying which.
        """
        if Action.DROP in (self.train_actions[Reason.UNJUDGED], self.evaluation_actions[Reason.UNJUDGED]):
            raise ValueError("unjudged never drops a question; flag or ignore it")
        if self.max_prompt_tokens is not None and not self.tokenizer:
            raise ValueError("max_prompt_tokens needs a tokenizer; give tokenizer=… or use max_prompt_characters")

    @property
    def unit(self) -> str:
        """What prompts are measured in."""
        return "tokens" if self.tokenizer else "characters"

    def shared_by(self, hands: int) -> "Settings":
        """The same for one of `hands` places that ask the same models at once."""
        judges = (self.judges[0].shared_by(hands), self.judges[1].shared_by(hands)) if self.judges else None
        return replace(self, judges=judges, linker=self.linker.shared_by(hands) if self.linker else None)

    def actions(self, split: str) -> Mapping[Reason, Action]:
        """What to do for each reason in one split."""
        return self.train_actions if split in self.train_splits else self.evaluation_actions

    def fingerprint(self, *more: str) -> str:
        """A digest of the settings and of `more`, which says whether earlier work may be taken up."""
        text = json.dumps([asdict(self), *more], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def settings_from(config: Mapping[str, Any]) -> Settings:
    """Settings from a plain dict whose `filters.train` and `filters.evaluation` override the default actions.

    Raises:
        ValueError: a reason, an action or the schema's form is none of ours.
        TypeError: a key is none of ours.
    """
    values = dict(config)
    filters = values.pop("filters", None) or {}
    return Settings(
        form=SchemaForm(values.pop("form", SchemaForm.MSCHEMA)),
        scope=SchemaScope(values.pop("scope", SchemaScope.FULL)),
        sample_by=Stratum(values.pop("sample_by", Stratum.DIFFICULTY)),
        evaluation_scope=SchemaScope(values.pop("evaluation_scope", SchemaScope.FULL)),
        databases=tuple(values.pop("databases", None) or ()),
        train_splits=tuple(values.pop("train_splits", None) or ("train",)),
        train_actions=_actions(TRAINING, filters.get("train")),
        evaluation_actions=_actions(EVALUATION, filters.get("evaluation")),
        judges=_judges(values.pop("consensus", None)),
        linker=_endpoint(values.pop("linker", None)),
        **values,
    )


def _actions(defaults: Mapping[Reason, Action], changes: Mapping[str, str] | None) -> dict[Reason, Action]:
    """The default actions with a config's changes."""
    return {**defaults, **{Reason(reason): Action(action) for reason, action in (changes or {}).items()}}


def _judges(config: Mapping[str, Any] | None) -> tuple[Asked, Asked] | None:
    """The two endpoints of the consensus filter; None when neither has an address."""
    first, second = (_endpoint((config or {}).get(name)) for name in ("first", "second"))
    if first is None and second is None:
        return None
    if first is None or second is None:
        raise ValueError(
            "the consensus filter needs two models: consensus.first.base_url and consensus.second.base_url"
        )
    return first, second


def _endpoint(config: Mapping[str, Any] | None) -> Asked | None:
    """An endpoint; None when it has no address."""
    return Asked(**config) if config and config.get("base_url") else None

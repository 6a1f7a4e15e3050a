"""From completions to judged candidates: run them and their steps, render the chains, ask the reward models.

Equal work is done once: a query on a database, a prefix of a chain, a rendered chain that several candidates share.
Queries run in the executor's processes; `judge_all` runs the next block there while the reward models score this one.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

from verl_sql.database.execution import Execution
from verl_sql.database.executor import Executor
from verl_sql.dataset.sft.questions import Question
from verl_sql.evaluation.candidates import NO_ANSWER, Answered, Candidate
from verl_sql.generation.sampler import Completion
from verl_sql.prm.rendering import prompt_text, render_chain
from verl_sql.prm.scoring import StepScorer
from verl_sql.prm.stepping import execute_chains
from verl_sql.sqltext.chain import Chain, prefix_sql, split_chain
from verl_sql.sqltext.extract import extract_answer

Block = Sequence[tuple[Question, Sequence[Completion]]]
"""Questions with their completions, the greedy one first."""
Chains = dict[str, Chain]
"""The different queries of a question, split."""


@dataclass(frozen=True, slots=True)
class Judges:
    """Who judges.

    Attributes:
        executor: runs queries.
        prm: the process reward model, if there is one.
        orm: the outcome reward model, if there is one; its score at the last tag counts.
        timeout: seconds a query may run; None takes the executor's.
    """

    executor: Executor
    prm: StepScorer | None = None
    orm: StepScorer | None = None
    timeout: float | None = None

    @property
    def models(self) -> dict[str, StepScorer]:
        """Those that there are, as `prm` and `orm`."""
        return {name: model for name, model in (("prm", self.prm), ("orm", self.orm)) if model is not None}

    @property
    def read_final(self) -> bool:
        """Whether one of them reads the final query as well."""
        return any(reads_final(model) for model in self.models.values())


def reads_final(model: StepScorer) -> bool:
    """Whether a model wants chains rendered with their final query (its `score_final`)."""
    return bool(getattr(model, "score_final", False))


@dataclass(slots=True)
class Work:
    """What judging took and how much of it was different.

    Attributes:
        seconds: by stage: execution (candidates and steps), rendering, prm, orm.
        prefixes: steps of all candidates.
        distinct_prefixes: different ones among the candidates of each question, summed over questions.
        texts: rendered chains, for each model.
        distinct_texts: different ones.
        gold_failed: questions whose gold query fails: none of their candidates can be right.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    prefixes: int = 0
    distinct_prefixes: int = 0
    texts: int = 0
    distinct_texts: int = 0
    gold_failed: int = 0

    def took(self, stage: str, since: float) -> None:
        """Add the seconds since a `perf_counter` reading to a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + perf_counter() - since

    def counts(self) -> dict[str, int]:
        """The counts by name."""
        names = ("prefixes", "distinct_prefixes", "texts", "distinct_texts", "gold_failed")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Executed:
    """A block that ran.

    Attributes:
        questions: of the block.
        candidates: of each question, without scores.
        texts: for each model and question the rendered chain of each query that has a whole step.
        work: what it took so far.
    """

    questions: list[Question]
    candidates: list[list[Candidate]]
    texts: dict[str, list[dict[str, str]]]
    work: Work


def judge_all(blocks: Sequence[Block], judges: Judges) -> Iterator[tuple[list[Answered], Work]]:
    """Judge blocks in order; while one is scored the next one runs."""
    with ThreadPoolExecutor(1) as ahead:
        running: Future[Executed] | None = ahead.submit(execute_block, blocks[0], judges) if blocks else None
        for following in (*blocks[1:], None):
            if running is None:
                return
            executed = running.result()
            running = ahead.submit(execute_block, following, judges) if following is not None else None
            yield score_block(executed, judges), executed.work


def execute_block(block: Block, judges: Judges) -> Executed:
    """Run every candidate and every step of its chain, and render the chains for those who will score them."""
    work, since = Work(), perf_counter()
    queries = [[extract_answer(c.text).sql or "" for c in completions] for _, completions in block]
    chains = [{sql: split_chain(sql) for sql in dict.fromkeys(group) if sql} for group in queries]
    ran = _run(block, chains, judges)
    work.gold_failed = sum(not ran[_database(question), question.gold].ok for question, _ in block)
    results = _run_steps(block, chains, judges) if judges.models else []
    work.took("execution", since)
    since = perf_counter()
    texts = {name: _render(block, chains, results, reads_final(model)) for name, model in judges.models.items()}
    work.took("rendering", since)
    _count_prefixes(queries, chains, work)
    candidates = [
        [_candidate(q, c, sql, split[sql] if sql else None, ran) for c, sql in zip(cs, sqls, strict=True)]
        for (q, cs), sqls, split in zip(block, queries, chains, strict=True)
    ]
    return Executed([question for question, _ in block], candidates, texts, work)


def score_block(executed: Executed, judges: Judges) -> list[Answered]:
    """Ask the reward models for every rendered chain, equal ones once."""
    scores = {name: _ask(model, executed, name) for name, model in judges.models.items()}
    answered = []
    for place, (question, candidates) in enumerate(zip(executed.questions, executed.candidates, strict=True)):
        known = {name: found[place] for name, found in scores.items()}
        answered.append(_answered(question, [_scored(candidate, known) for candidate in candidates]))
    return answered


def _run(block: Block, chains: Sequence[Chains], judges: Judges) -> dict[tuple[Path, str], Execution]:
    """Every different query on its database, golds included, with the digest of its result."""
    wanted = dict.fromkeys(
        (_database(question), sql)
        for (question, _), known in zip(block, chains, strict=True)
        for sql in (question.gold, *known)
    )
    return dict(zip(wanted, judges.executor.execute_many(wanted, timeout=judges.timeout, digest=True), strict=True))


def _run_steps(block: Block, chains: Sequence[Chains], judges: Judges) -> list[list[list[Execution]]]:
    """The results of every step, and of the final query if a model reads it, by question and different chain."""
    items = [(_database(q), chain) for (q, _), known in zip(block, chains, strict=True) for chain in known.values()]
    ran = execute_chains(judges.executor, items, timeout=judges.timeout, score_final=judges.read_final)
    results = iter(ran)
    return [[next(results) for _ in known] for known in chains]


def _render(
    block: Block, chains: Sequence[Chains], results: Sequence[Sequence[Sequence[Execution]]], final: bool
) -> list[dict[str, str]]:
    """For each question the rendered chain of each of its queries that has a whole step."""
    rendered = []
    for (question, _), known, found in zip(block, chains, results, strict=True):
        prompt, texts = prompt_text(question.prompt), {}
        for (sql, chain), rows in zip(known.items(), found, strict=True):
            if chain.steps:
                shown = rows if final else rows[: len(chain.steps)]
                texts[sql] = render_chain(prompt, chain, shown, score_final=final).text
        rendered.append(texts)
    return rendered


def _count_prefixes(queries: Sequence[Sequence[str]], chains: Sequence[Chains], work: Work) -> None:
    """Count the steps of all candidates, and the different ones of each question."""
    for sqls, known in zip(queries, chains, strict=True):
        prefixes = {sql: [prefix_sql(chain, step.index) for step in chain.steps] for sql, chain in known.items()}
        work.prefixes += sum(len(prefixes[sql]) for sql in sqls if sql)
        work.distinct_prefixes += len({prefix for found in prefixes.values() for prefix in found})


def _candidate(
    question: Question, completion: Completion, sql: str, chain: Chain | None, ran: dict[tuple[Path, str], Execution]
) -> Candidate:
    """A completion after it ran. Two digests are equal exactly when bird_set calls the results equal."""
    if chain is None:
        return Candidate(completion.text, sql, NO_ANSWER, finished=completion.finished)
    execution, gold = ran[_database(question), sql], ran[_database(question), question.gold]
    return Candidate(
        text=completion.text,
        sql=sql,
        status=execution.status.value,
        digest=execution.digest if execution.ok else "",
        n_steps=len(chain.steps),
        right=execution.ok and gold.ok and execution.digest == gold.digest,
        finished=completion.finished,
    )


def _ask(model: StepScorer, executed: Executed, name: str) -> list[dict[str, list[float]]]:
    """For each question the scores that a model gives to each of its queries."""
    since, shown = perf_counter(), executed.texts[name]
    texts = [text for known in shown for text in known.values()]
    distinct = list(dict.fromkeys(texts))
    scores = dict(zip(distinct, model.score(distinct) if distinct else [], strict=True))
    executed.work.took(name, since)
    executed.work.texts += sum(c.sql in known for known, cs in zip(shown, executed.candidates, strict=True) for c in cs)
    executed.work.distinct_texts += len(distinct)
    return [{sql: scores[text] for sql, text in known.items()} for known in shown]


def _scored(candidate: Candidate, known: Mapping[str, Mapping[str, list[float]]]) -> Candidate:
    """A candidate with its scores; one without a whole step gets no step scores and 0 of the outcome model."""
    steps = tuple(known["prm"].get(candidate.sql, ())) if "prm" in known else None
    outcome = known["orm"].get(candidate.sql, [0.0])[-1] if "orm" in known else None
    return replace(candidate, step_scores=steps, outcome_score=outcome)


def _answered(question: Question, candidates: Sequence[Candidate]) -> Answered:
    info = question.info
    greedy, *samples = candidates
    head = (question.key, info["split"], info["db_id"], question.gold, info["difficulty"] or "")
    return Answered(*head, greedy, tuple(samples))


def _database(question: Question) -> Path:
    """The question's database.

    Raises:
        ValueError: it was not found.
    """
    if question.database is None:
        raise ValueError(f"the database {question.info['db_id']!r} of question {question.key} is not under the root")
    return question.database

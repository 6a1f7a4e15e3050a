"""Packaging of verl_sql: metadata, extras and the entry points that verl and vLLM load.

`reward_fns/`, `data_prep/` and `recipes/` stand at the top of the repository for people; in the wheel they are
`verl_sql.reward_fns`, `verl_sql.data_prep` and `verl_sql.recipes`, so that no common name lands in site-packages.
"""

import runpy
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
DEV = [
    "hypothesis>=6.100",
    "matplotlib>=3.8",
    "mypy>=1.11",
    "pytest>=8",
    "pytest-asyncio>=0.24",
    "ruff>=0.8",
    "scipy>=1.11",
    "setuptools>=70.1",
]
# What a training run needs beside the core, at the versions it was run with.
VERSIONS = runpy.run_path(str(HERE / "verl_sql" / "integration" / "versions.py"))

TOP_LEVEL = ["reward_fns", "data_prep", "recipes"]
MOVED = find_packages(include=[pattern for name in TOP_LEVEL for pattern in (name, f"{name}.*")])
DATA = ["jinja", "json", "jsonl", "md", "sh", "sql", "txt", "yaml"]

setup(
    name="verl_sql",
    version="0.1.0",
    description="Reinforcement learning for text-to-SQL on verl: exact rewards, safe execution, step-level credit",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.11,<3.13",
    install_requires=CORE,
    extras_require={
        "cpu": VERSIONS["requirements"]("cpu"),
        "gpu": VERSIONS["requirements"]("gpu"),
        "flash": [VERSIONS["FLASH_ATTENTION"]],
        "dpo": [VERSIONS["TRL"]],
        "judge": ["openai>=1.50"],
        "dev": DEV,
    },
    packages=[*find_packages(include=["verl_sql", "verl_sql.*"]), *(f"verl_sql.{name}" for name in MOVED)],
    package_dir={"verl_sql": "verl_sql", **{f"verl_sql.{name}": name for name in TOP_LEVEL}},
    include_package_data=False,
    package_data={
        "verl_sql": ["py.typed", *(f"**/*.{suffix}" for suffix in DATA)],
        **{f"verl_sql.{name}": [f"**/*.{suffix}" for suffix in DATA] for name in TOP_LEVEL},
    },
    entry_points={
        "console_scripts": ["verl-sql=verl_sql.cli:main"],
        "verl.plugins": ["verl_sql=verl_sql.integration.plugin:register"],
        "vllm.general_plugins": ["verl_sql=verl_sql.integration.vllm_plugin:register"],
    },
)

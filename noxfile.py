"""Every check by its name: `nox -s tests`, or `nox -l` for the list.

Each session builds an environment of its own from requirements.txt. CI runs
lint, all, references and site; oldest and newest need those Pythons installed.
"""

import re
import shutil
from pathlib import Path

import nox

nox.options.sessions = ["lint", "tests"]
nox.options.default_venv_backend = "venv"

REFERENCES = ["torch==2.13.0", "transformers", "tokenizers"]
REFERENCES += ["sentence-transformers", "dask[bag,distributed]"]
BROWSERS = ["chromium", "google-chrome", "chromium-browser"]
COVERAGE = ["--cov=bert_np", "--cov-branch", "--cov-report=term:skip-covered"]


def pytest(session, *arguments):
    parallel = ["-n", "auto", "--dist", "worksteal"]
    session.run("python", "-m", "pytest", *parallel, *arguments, *session.posargs)


@nox.session
def tests(session):
    """Run the quick tests, as the README's command does."""
    session.install("-r", "requirements.txt")
    pytest(session)


@nox.session(name="all")
def everything(session):
    """Run the slow tests, the notebooks and the browser too, with coverage."""
    session.install("-r", "requirements.txt", "pytest-cov")
    marks = "not references"
    if not any(map(shutil.which, BROWSERS)):
        session.warn("no Chromium here: the tests of the live page are left out")
        marks += " and not browser"
    pytest(session, "-m", marks, *COVERAGE)


@nox.session
def references(session):
    """Compare with HuggingFace's libraries and PyTorch."""
    session.install("-r", "requirements.txt", *REFERENCES)
    pytest(session, "-m", "references")


@nox.session(python="3.10")
def oldest(session):
    """Run all tests with the oldest versions that pyproject.toml allows."""
    text = Path("pyproject.toml").read_text("utf-8")
    block = re.search(r"^dependencies = \[(.*?)^\]", text, re.M | re.S)[1]
    bounds = [f"{name}=={low}" for name, low in re.findall(r'"(.+?)>=(.+?)"', block)]
    # The oldest matplotlib calls names that the newest pyparsing warns of.
    session.install("-r", "requirements.txt", *bounds, "pyparsing<3.3")
    pytest(session, "-m", "not references and not browser")


@nox.session(python="3.13")
def newest(session):
    """Run all tests with the newest versions of everything."""
    session.install(
        "--upgrade", "--upgrade-strategy", "eager", "-r", "requirements.txt"
    )
    pytest(session, "-m", "not references and not browser")


@nox.session
def notebooks(session):
    """Run the notebooks from top to bottom and rewrite their outputs."""
    session.install("-r", "requirements.txt")
    session.run("python", "tests/tools/run_notebooks.py", *session.posargs)


@nox.session
def site(session):
    """Build the course as a site, and walk through it for faults."""
    session.install("-e", ".[docs]")
    session.run("python", "tests/tools/site/build.py", *session.posargs)
    session.run("python", "tests/tools/site/crawl.py", *session.posargs)


@nox.session
def lint(session):
    """Check format and lint rules."""
    session.install("ruff==0.17.6")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")

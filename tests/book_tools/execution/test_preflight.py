"""What is wrong with a request or a chapter is said before the first cell runs."""

import json
import sys
import venv
from pathlib import Path

import pytest
from toy import PARAMETERS, REPOSITORY, Toy

from book_tools.execution import preflight
from book_tools.execution.preflight import package_problems
from cfltr_book.reporting import claim_registry


def refused(toy: Toy, *arguments: str) -> str:
    """Return what a refused command says, after checking that it was refused and started nothing."""
    done = toy.cli(*arguments, code=2)
    assert not (toy.root / "_build").exists()
    return done


@pytest.fixture
def plain(toy: Toy) -> Toy:
    toy.chapter("91_alpha", "x = 1")
    toy.contents("91_alpha")
    return toy


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seed", "-1"], "seeds start at 0"),
        (["--scale", "huge"], "choose one of smoke, ci, paper"),
        (["--corpus", "bing"], "choose yahoo-like, digits or letor:<folder>"),
        (["--corpus", "letor:MQ2008"], "CFLTR_DATA is not set"),
        (["--chapter", "07"], "--chapter 07: not in _toc.yml; choose from 91_alpha"),
    ],
)
def test_a_request_that_cannot_be_met(plain: Toy, options: list[str], message: str) -> None:
    assert message in refused(plain, "run", *options)


def test_a_collection_that_is_not_in_the_data_folder(plain: Toy, tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name in ("mslr", "istella", ".cache"):
        (data / name).mkdir(parents=True)
    for folder, messages in (
        (data, (f"no folder {data.resolve() / 'MQ2008'}", f"CFLTR_DATA is {data}, which holds istella, mslr")),
        (tmp_path / "nowhere", (f"there is no folder {(tmp_path / 'nowhere').resolve()}, which CFLTR_DATA names",)),
    ):
        done = plain.cli("run", "--corpus", "letor:MQ2008", CFLTR_DATA=str(folder), code=2)
        assert [message for message in messages if message not in done] == []


def test_a_registry_with_a_slip(plain: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_registry, "registry", lambda: claim_registry.parse_registry([{"id": "a", "corpora": []}]))
    assert "claims/NN.yml, a: corpora is a list of at least one" in refused(plain, "run", "--scale", "smoke")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ((), "0 cells are tagged 'parameters', expected exactly one"),
        ((PARAMETERS, PARAMETERS), "2 cells are tagged 'parameters', expected exactly one"),
        ((f"{PARAMETERS}\nclicks = 5",), "assigns 'clicks', which no run sets"),
        (('scale = "ci"\nseed = 0',), "does not assign 'corpus'"),
    ],
)
def test_a_wrong_parameters_cell(toy: Toy, parameters: tuple[str, ...], message: str) -> None:
    toy.chapter("91_alpha", "x = 1", parameters=parameters)
    toy.chapter("92_beta", parameters=())
    toy.contents("91_alpha", "92_beta")
    said = refused(toy, "run")
    (first,) = (line for line in said.splitlines() if line.startswith("91_alpha.ipynb"))
    assert message in first
    assert "92_beta.ipynb" in said, "everything is reported at once"


def test_files_that_are_not_what_they_should_be(toy: Toy, tmp_path: Path) -> None:
    toy.chapter("Alpha", "x = 1")
    (toy.root / "chapters" / "92_beta.ipynb").write_text("{")
    path = toy.chapter("93_gamma", "x = 1")
    content = json.loads(path.read_text())
    content["cells"][2]["execution_count"] = 7
    path.write_text(json.dumps(content))
    for pages, messages in (
        (("Alpha",), ("Alpha.ipynb: chapters are called NN_snake_case.ipynb",)),
        (("Alpha", "92_beta"), ("92_beta.ipynb: not a readable notebook",)),
        (("93_gamma",), ("93_gamma.ipynb, cell 2: has a stored output",)),
        (("94", "scoreboard"), ("chapters/94 has neither chapters/94.ipynb nor chapters/94.md",)),
    ):
        toy.contents(*pages)
        said = refused(toy, "check")
        assert [message for message in messages if message not in said] == []
        assert "scoreboard" not in said, "generated pages need no file"
    assert "is --root right?" in refused(Toy.at(tmp_path), "check")


def test_an_environment_that_belongs_to_another_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared VENV: the working folder and PYTHONPATH are this checkout's, and a kernel sees neither."""
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    mine, other = tmp_path / "mine", tmp_path / "other"
    packages = ("cfltr_core", "cfltr_book", "book_tools")
    for place in (checkout / name for checkout in (mine, other) for name in packages):
        place.mkdir(parents=True)
        (place / "__init__.py").touch()
    environment = other / ".venv"
    venv.create(environment, with_pip=False, symlinks=True)
    python = str(environment / "bin" / "python")
    *missing, remedy = package_problems(python, other)
    assert missing == [f"{name}: {python} finds no such package, expected {other}/{name}" for name in packages[:2]]
    assert remedy.endswith(f": remove {environment}/.whole and run 'make setup'")
    (site,) = environment.glob("lib/*/site-packages")
    (site / "clone.pth").write_text(f"{other}\n")
    assert package_problems(python, other) == []
    *wrong, remedy = package_problems(python, mine)
    assert wrong == [f"{name}: {python} imports {other}/{name}, expected {mine}/{name}" for name in packages]
    assert remedy.endswith(": run 'make setup' here, and set no VENV")


def test_nothing_runs_on_the_code_of_another_checkout(
    plain: Toy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert package_problems(sys.executable, REPOSITORY) == []
    monkeypatch.setattr(preflight, "CHECKOUT", tmp_path)
    for command in (["run"], ["paper", "--chapter", "91"]):
        assert f"cfltr_core, expected {tmp_path}/cfltr_core" in refused(plain, *command)

"""The front door: what `import bert_np` offers, and how its parts fit together."""

import inspect
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from oracle import CONFIG, random_params

import bert_np
from bert_np import Tokenizer, bert, fill_mask, load_pretrained
from bert_np.tokenizer import SPECIAL_TOKENS

ROOT = Path(bert_np.__file__).parents[1]
PARAMS = random_params()
TOKENIZER = Tokenizer.from_tokens([*SPECIAL_TOKENS, "the", "cat", "sat", "."])


def words_printed_by(code, folder=ROOT):
    """What a fresh Python prints that runs the code in a folder."""
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_every_public_name_resolves_and_is_documented():
    assert bert_np.__version__.count(".") == 2
    assert len(set(bert_np.__all__)) == len(bert_np.__all__)
    for name in bert_np.__all__:
        assert inspect.getdoc(getattr(bert_np, name)), name
        assert name in dir(bert_np)
    with pytest.raises(AttributeError, match="'bert_np' has no attribute 'nothing'"):
        getattr(bert_np, "nothing")  # noqa: B009


def test_importing_it_loads_numpy_and_nothing_else_from_outside():
    loaded = words_printed_by("import bert_np, sys; print(*sys.modules)")
    numpys = words_printed_by("import numpy, sys; print(*sys.modules)")
    packages = {name.split(".")[0] for name in set(loaded) - set(numpys)}
    assert packages - sys.stdlib_module_names == {"bert_np"}


def test_submodules_are_listed_and_found_by_attribute():
    modules = [m.name for m in pkgutil.iter_modules(bert_np.__path__)]
    assert {"analysis", "fast", "minimal", "plotting", "training"} <= set(modules)
    code = f"import bert_np; print(*[getattr(bert_np, n).__name__ for n in {modules}])"
    assert words_printed_by(code) == [f"bert_np.{name}" for name in modules]
    assert set(modules) <= set(words_printed_by("import bert_np; print(*dir(bert_np))"))


def test_it_is_found_from_the_folder_above_a_clone(tmp_path):
    (tmp_path / "bert_np" / "bert_np").mkdir(
        parents=True
    )  # as a clone looks from there
    code = "import bert_np; print(bert_np.__version__)"
    assert words_printed_by(code, tmp_path) == [bert_np.__version__]
    assert words_printed_by(code, ROOT.parent) == [bert_np.__version__]


@pytest.mark.parametrize(
    "package", ["", ".analysis", ".course", ".files", ".plotting", ".training"]
)
def test_no_public_name_of_a_package_is_that_of_a_submodule(package):
    package = import_module(f"bert_np{package}")
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert modules
    names = {n for n in dir(package) if not inspect.ismodule(getattr(package, n))}
    assert not modules & (names | set(getattr(package, "__all__", ())))


def test_bert_takes_the_inputs_of_an_encoding_single_or_a_batch():
    model = {"params": PARAMS, "config": CONFIG}
    single = bert(**TOKENIZER.encode("the cat", "sat.").inputs, **model)
    batch = TOKENIZER.encode_batch(["the cat sat . the cat .", ("the cat", "sat.")])
    found = bert(**batch.inputs, **model)["last_hidden_state"][1, :7]
    np.testing.assert_allclose(single["last_hidden_state"][0], found, atol=1e-12)


def test_a_loaded_model_can_be_unpacked_or_asked_by_name():
    model = load_pretrained("toy")
    params, config, tokenizer = model
    assert model.params is params and model.config is config
    text = "the [MASK] sat ."
    assert fill_mask(text, *model) == fill_mask(text, params, config, tokenizer)

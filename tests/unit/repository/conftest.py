import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def tool():
    def load(name):
        key = f"counterveil_tools.{name}"
        if key not in sys.modules:
            spec = importlib.util.spec_from_file_location(key, ROOT / "tools" / f"{name}.py")
            module = importlib.util.module_from_spec(spec)
            # Registered first: dataclasses look their module up while it is being read.
            sys.modules[key] = module
            spec.loader.exec_module(module)
        return sys.modules[key]

    return load


@pytest.fixture
def write(tmp_path):
    def put(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return put

import pytest


@pytest.mark.parametrize("package", ["src/counterveil", "lab/src/counterveil_lab"])
def test_noise_is_drawn_in_one_package(tool, root, package):
    assert tool("check_noise").problems(root / package) == []


@pytest.mark.parametrize(
    "text",
    [
        "import random\n",
        "import random as r\n",
        "from secrets import token_bytes\n",
        "import numpy as np\n\nx = np.random.normal()\n",
        "import numpy\n\nrng = numpy.random.default_rng(3)\n",
        "from numpy import random\n",
        "from numpy.random import default_rng\n",
        "import os\n\nbits = os.urandom(8)\n",
        "from os import urandom\n",
        "from scipy.stats import norm\n\nx = norm.rvs(size=3)\n",
    ],
)
def test_randomness_elsewhere_is_named(tool, write, tmp_path, text):
    write("estimators/sly.py", text)
    found = tool("check_noise").problems(tmp_path)
    assert found
    assert all(line.startswith("estimators/sly.py:") for line in found)
    assert tool("check_noise").main([str(tmp_path)]) == 1


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("import numpy as np\n\nrng = np.random.default_rng(seed)\n", True),
        ("import numpy as np\n\n\ndef f(rng: np.random.Generator):\n    return rng.normal()\n", True),
        ("import numpy as np\n\nrng = np.random.default_rng()\n", False),
        ("import numpy as np\n\nrng = np.random.default_rng(None)\n", False),
        ("import numpy as np\n\nx = np.random.normal(0, 1)\n", False),
        ("from numpy.random import default_rng\n\nrng = default_rng()\n", False),
        ("import random\n", False),
    ],
)
@pytest.mark.parametrize("package", ["audit", "datasets", "counterveil_lab"])
def test_audits_and_generators_draw_from_a_seed_that_is_passed_in(tool, write, tmp_path, package, text, fine):
    write(f"{package}/thing.py", text)
    checked = tmp_path / package if package == "counterveil_lab" else tmp_path
    assert (tool("check_noise").problems(checked) == []) is fine

"""Build the wheel and the sdist, and use each in an environment that has nothing else.

    python tools/release.py            (make release-check)

Both are built, checked by `twine check --strict`, installed with their dependencies in an empty
virtual environment, and run outside the source tree: the demo, and `SMOKE`. The environments are
removed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "build" / "release"
SMOKE = """
import sys
from pathlib import Path
import numpy as np
import psiphi as pp

folder, version = Path(sys.argv[1]), sys.argv[2]
assert Path(pp.__file__).is_relative_to(folder), pp.__file__
assert pp.__version__ == version, pp.__version__
assert "psiphi_bench" not in sys.modules
robot = pp.load("ur5")
q = robot.random(seed=0)
a = robot.forward_dynamics(q, np.zeros(6), robot.gravity(q))
assert np.abs(a).max() < 1e-9
motion = pp.simulate(robot, q, duration=0.2)
assert motion.drift < 1e-6
robot.html("ur5.html")
motion.save("motion.npz")
scene = pp.scenes.load("two_arms").system
assert scene.nv == 18
print(f"psiphi {pp.__version__} works on Python {sys.version.split()[0]}")
"""


def run(*words: str | Path, cwd: Path = ROOT) -> None:
    """Run a program without the caller's Python path; its failure ends this one."""
    clean = {k: x for k, x in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=clean, check=False)
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, words))}")


def build() -> list[Path]:
    """The sdist, and the wheel that is built from it."""
    for old in OUTPUT.glob("psiphi-*"):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", OUTPUT, ROOT)
    files = sorted(OUTPUT.glob("psiphi-*"))
    names = [f"psiphi-{version()}-py3-none-any.whl", f"psiphi-{version()}.tar.gz"]
    if [file.name for file in files] != names:
        sys.exit(f"built {[file.name for file in files]}, expected {names}")
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    return files


def version() -> str:
    """The version, from its one place."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "version"
    ]


def use(file: Path) -> None:
    """Install a file in an empty environment, and run the smoke test and the demo from there."""
    with tempfile.TemporaryDirectory(prefix="psiphi-release-") as name:
        folder = Path(name).resolve()
        venv.create(folder / "environment", with_pip=True)
        scripts = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
        python, work = scripts / "python", folder / "work"
        work.mkdir()
        run(python, "-m", "pip", "install", "--quiet", file)
        run(python, "-c", SMOKE, folder / "environment", version(), cwd=work)
        run(scripts / "psiphi", "--version", cwd=work)
        run(scripts / "psiphi", "demo", cwd=work)
        if not any(work.glob("*.html")):
            sys.exit(f"{file.name}: the demo wrote no page")


def main() -> None:
    """Build, check and use both files."""
    for file in build():
        print(f"-- {file.name}: in an empty environment", flush=True)
        use(file)
    print(f"{OUTPUT} is ready to be published")


if __name__ == "__main__":
    main()

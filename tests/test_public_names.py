"""Before 1.0, a public name that changes keeps its old form for one minor version, with a
DeprecationWarning.

`released_names.txt` has the version and the public names of the last release. Running this file
writes those of today: `python tests/test_public_names.py`.
"""

import inspect
import re
import tomllib
import warnings
from pathlib import Path

import pytest
import yaml

import psiphi as pp

ROOT = Path(__file__).parent.parent
FILE = Path(__file__).with_name("released_names.txt")
SENTENCE = "keeps working, with a `DeprecationWarning`, for one minor version"


def public_names():
    """`load`, `Robot.gravity`, ...: the names of psiphi, and the members of its classes."""
    for name in sorted(dir(pp)):
        if name.startswith("_"):
            continue
        yield name
        value = getattr(pp, name)
        if inspect.isclass(value) and not issubclass(value, BaseException):
            own = [x for x in dir(value) if not x.startswith("_")]
            yield from (f"{name}.{member}" for member in own)


def minor(version):
    return tuple(map(int, version.split(".")[:2]))


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_released_names_work_for_one_more_minor_version():
    released, *names = FILE.read_text(encoding="utf-8").split()
    (major, old), (now_major, now) = minor(released), minor(project()["version"])
    assert (major, old) <= (now_major, now)
    if now_major > major or now > old + 1:
        pytest.fail(f"{FILE.name} is of {released}: run this file to write the names of today")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        gone = []
        for name in names:
            owner, _, member = name.partition(".")
            value = getattr(pp, owner, None)
            if value is None or (member and not hasattr(value, member)):
                gone.append(name)
    assert not gone, "keep the old names, with a DeprecationWarning (_util/deprecation.py)"


def test_the_policy_and_the_version_are_told_in_one_place():
    changes = " ".join((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split())
    assert SENTENCE in changes
    cited = re.search(
        r"^version: (\S+)", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert cited and cited[1] == project()["version"]


def test_files_for_a_public_repository_are_well_formed():
    """They cannot run here: they are YAML, and call targets that the Makefile has."""
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    for path in sorted((ROOT / ".github").rglob("*.yml")):
        text = path.read_text(encoding="utf-8")
        assert yaml.safe_load(text), path.name
        for target in re.findall(r"\bmake ([a-z-]+)", text):
            assert re.search(rf"^{target}:", made, re.MULTILINE), (path.name, target)
    names = {path.name for path in (ROOT / ".github").rglob("*.yml")}
    assert names == {"config.yml", "missing.yml", "release.yml", "test.yml", "wrong.yml"}


if __name__ == "__main__":
    FILE.write_text("\n".join([project()["version"], *public_names(), ""]), encoding="utf-8")
    print(f"wrote {FILE}")

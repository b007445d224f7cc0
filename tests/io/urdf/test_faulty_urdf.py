"""Faulty descriptions: each ends in an error that names file, line, element and remedy, or in a
line of the report."""

import time

import pytest

from psiphi._util.errors import Error, ModelError, SingularError
from psiphi.io.urdf.urdf import load_urdf
from psiphi.model.diagnostics import ReaderWarning
from tests.io.urdf.faulty_files import DOCUMENTS, MESHES
from tests.io.urdf.faulty_urdf import FAULTY, REPAIRED, REPORTED, ROBOT, apply, meshed


def names(rows) -> list[str]:
    found = [row[0] for row in rows]
    assert len(set(found)) == len(found)
    return found


def refused(source, file: str, words: str, kind: type[Error] = ModelError, **options) -> Error:
    start = time.perf_counter()
    with pytest.raises(kind) as caught:
        load_urdf(source, **options)
    error = caught.value
    assert time.perf_counter() - start < 5.0
    assert type(error) is kind
    assert error.file == file and isinstance(error.line, int) and error.line >= 1 and error.element
    assert error.remedy and words in f"{error.element}: {error.cause}. {error.remedy}", str(error)
    assert len(str(error)) < 1000
    return error


def test_the_corpus_is_large():
    assert len(FAULTY) + len(DOCUMENTS) + len(MESHES) >= 150


def test_the_sound_robot_loads():
    model = load_urdf(ROBOT)
    (line,) = model.report
    assert model.nv == 3 and "meshes that are not found are drawn as boxes" in line
    assert not isinstance(line, ReaderWarning)


@pytest.mark.parametrize(("name", "old", "new", "words"), FAULTY, ids=names(FAULTY))
def test_faulty(name, old, new, words, tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text(apply(old, new), encoding="utf-8")
    kind = SingularError if words.startswith("D:") else ModelError
    error = refused(file, str(file), words.removeprefix("D:"), kind)
    if "\n" not in old and kind is ModelError and "second" not in error.cause:
        assert abs(error.line - (ROBOT[: ROBOT.index(old)].count("\n") + 1)) <= 8, (
            "the line is near the fault"
        )


@pytest.mark.parametrize(("name", "data", "words"), DOCUMENTS, ids=names(DOCUMENTS))
def test_faulty_document(name, data, words, tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    refused(file, str(file), words)


@pytest.mark.parametrize(("name", "filename"), MESHES, ids=names(MESHES))
def test_mesh_outside(name, filename, tmp_path):
    folder = tmp_path / "pkg"
    folder.mkdir()
    (tmp_path / "secret.stl").touch()
    (folder / "link.stl").symlink_to(tmp_path / "secret.stl")
    file = folder / "robot.urdf"
    file.write_text(
        meshed(filename.replace("TMP", str(tmp_path))), encoding="utf-8", errors="surrogateescape"
    )
    for source in (file, file.read_text(encoding="utf-8", errors="surrogateescape")):
        if name == "link that leads out" and source is not file:
            continue
        shapes: list = []
        model = load_urdf(source, shapes=shapes)
        (line,) = (line for line in model.report if "outside the package" in line)
        assert isinstance(line, ReaderWarning) and "allow_outside=True" in line
        assert model.nv == 3 and all(shape.path is None for shape in shapes if shape.filename)
    accepted = load_urdf(file, allow_outside=True)
    assert accepted.nv == 3 and not any("outside the package" in x for x in accepted.report)


@pytest.mark.parametrize(("name", "old", "new", "words"), REPORTED, ids=names(REPORTED))
def test_reported(name, old, new, words, tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text(apply(old, new), encoding="utf-8")
    report = load_urdf(file).report
    assert any(words in line and line.startswith(str(file)) for line in report), report


@pytest.mark.parametrize(("name", "old", "new", "words"), REPAIRED, ids=names(REPAIRED))
def test_repaired(name, old, new, words):
    text = apply(old, new)
    refused(text, "<text>", f'repair=("{name.split()[0]}",)')
    for repair in (name.split()[0], (name.split()[0],), "all"):
        assert any(words in line for line in load_urdf(text, repair=repair).report)


def test_not_a_file(tmp_path):
    refused(tmp_path, str(tmp_path), "directory")
    refused(str(tmp_path / "no.urdf"), str(tmp_path / "no.urdf"), "No such file")
    refused("a\0b", "a\0b", "null")
    refused("x" * 5000, "x" * 500 + "...", "too long")
    refused("", "", "No such file")
    refused("/dev/null", "/dev/null", "device")
    refused(
        "robot.urdf but not really\n<robot/>", "robot.urdf but not really\n<robot/>", "No such file"
    )
    refused(None, "<text>", "expected a path")  # type: ignore[arg-type]
    refused("<robot name='\ud800'/>", "<text>", "characters")


def test_caps(tmp_path):
    refused(ROBOT, "<text>", "larger", max_bytes=100)
    refused(ROBOT, "<text>", "deeper", max_depth=2)
    refused(ROBOT, "<text>", "elements", max_elements=10)
    refused(ROBOT, "<text>", "links", max_bodies=2)


def test_free_base_without_inertia():
    """A massless root that carries an arm cannot float: the arm's free joint makes D of the root
    joint singular."""
    text = apply('<link name="base"/>', '<link name="base"/><link name="stand"/>').replace(
        "</robot>",
        '<joint name="mount" type="fixed"><parent link="stand"/><child '
        'link="base"/></joint></robot>',
    )
    assert load_urdf(text).nv == 3
    refused(text, "<text>", "root_joint", SingularError, base="free")

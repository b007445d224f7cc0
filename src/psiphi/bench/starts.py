"""What a start costs: the first call with an empty and with a warm cache, the import, the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from psiphi.bench import example_robots, fresh
from psiphi.bench.row import Measured, Size


def compile_time(name: str, base: str) -> Callable[[Size], Iterator[Measured]]:
    """From the first call of forward dynamics to its answer, in a fresh process with an empty cache."""

    def measure(size: Size) -> Iterator[Measured]:
        runs = []
        for _ in range(size.starts):
            with fresh.empty_cache():
                runs.append(fresh.first_call(_load(name, base)))
        yield _least(name, runs)

    return measure


def warm_start(size: Size) -> Iterator[Measured]:
    """The same call in a second process."""
    for name, base in (("UR5", "fixed"), ("G1", "free")):
        with fresh.empty_cache():
            fresh.first_call(_load(name, base))
            yield _least(name, [fresh.first_call(_load(name, base)) for _ in range(size.starts + 2)])


def _load(name: str, base: str) -> str:
    return f"pp.load({str(example_robots.urdf(name))!r}, base={base!r})"


def _least(name: str, runs: list[dict[str, float]]) -> Measured:
    load = min(run["load"] for run in runs)
    return Measured(name, min(run["call"] for run in runs), note=f"import and load before it: {load:.2g} s")


def imports(size: Size) -> Iterator[Measured]:
    """`import psiphi`, interpreter and all."""
    yield _start("python -c 'import psiphi'", "-c", "import psiphi", size=size)


def command_line(size: Size) -> Iterator[Measured]:
    """`psiphi --help`, interpreter and all."""
    yield _start("psiphi --help", "-m", "psiphi.cli", "--help", size=size)


def _start(subject: str, *arguments: str, size: Size) -> Measured:
    bare = min(fresh.seconds("-c", "pass") for _ in range(size.starts + 2))
    figure = min(fresh.seconds(*arguments) for _ in range(size.starts + 2))
    return Measured(subject, figure, note=f"of which the bare interpreter: {bare:.2g} s")

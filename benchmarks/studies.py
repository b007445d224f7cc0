"""Run time of a study of UR5 motions (1 s at 1 kHz, masses +-20 %), and a study killed often.

    python benchmarks/studies.py [MOTIONS] [KILLS]

The killed study (25 000 motions in chunks of 128) is compared bit for bit with an undisturbed run.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import psiphi as pp

MASSES = "[vary]\nmass = { uniform = [0.8, 1.2], relative = true }\n"
RUN = "import sys, psiphi as pp; pp.study(sys.argv[1], out=sys.argv[2])"


def study_file(folder: Path, motions: int, chunk: str = "") -> Path:
    """Write the TOML file of a study."""
    file = folder / f"ur5_{motions}.toml"
    file.write_text(
        f"robot = 'ur5'\nmotions = {motions}\nseed = 1\n{chunk}\n{MASSES}", encoding="utf-8"
    )
    return file


def run_and_kill(file: Path, out: Path, kills: int, seed: int = 0) -> list[int]:
    """The number of finished chunks at each kill."""
    rng, done = random.Random(seed), []
    while len(done) < kills:
        child = subprocess.Popen(
            [sys.executable, "-c", RUN, str(file), str(out)], start_new_session=True
        )
        before, end = len(list(out.glob("done/*"))), time.monotonic() + 120.0
        while (
            child.poll() is None
            and len(list(out.glob("done/*"))) == before
            and time.monotonic() < end
        ):
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.1))  # a random time within the next chunks
        child.kill()
        if child.wait(60) == 0:
            raise SystemExit("the study finished before it was killed: use more motions")
        done.append(len(list(out.glob("done/*"))))
    return done


def main(motions: int = 1_000_000, kills: int = 20) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        pp.study(study_file(folder, motions), out=folder / "timed", progress=True)
        took = time.perf_counter() - start
        print(
            f"{motions} motions: {took:.1f} s, {motions / took:.4g} per second, "
            f"{pp.get_threads()} threads"
        )
        file = study_file(folder, 25_000, "chunk = 128")
        done = run_and_kill(file, folder / "killed", kills)
        again, plain = pp.study(file, out=folder / "killed"), pp.study(file, out=folder / "plain")
        same = all(
            np.array_equal(getattr(again.final, x), getattr(plain.final, x)) for x in ("q", "v")
        )
        result = "bitwise equal" if same else "DIFFERENT"
        print(f"killed {kills} times, with {done} of {again.config.chunks} chunks done: {result}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

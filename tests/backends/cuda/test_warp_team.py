"""Several warps for one state, a limb each: the bits of one thread, on trees with limbs; and who
does what."""

import pytest

import psiphi as pp
from psiphi.backends.cuda import cuda_kernel, warp_team
from psiphi.backends.cuda.cuda_target import CUDA
from psiphi.backends.cuda.shared_memory import CudaGrid
from psiphi.backends.cuda.warp_team import INWARDS, OUTWARDS, TRUNK
from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.compiler.axes.link_axes import frame_tree
from psiphi.compiler.ir.segments import operands
from psiphi.compiler.sweeps.limbs import limbs_of
from tests import zoo
from tests.backends.cuda.emulated_gpu import run
from tests.backends.cuda.test_cuda_kernel import alike
from tests.backends.kernels import batch, known, limbed, lowered

FP = {"d": "double", "f": "float"}


@pytest.fixture
def teams(monkeypatch):
    """Teams wherever there are limbs, of threads that hold few numbers or, in float32, many."""
    for fp, held in (("double", 6), ("float", 40)):
        monkeypatch.setitem(cuda_kernel.CAPACITY, fp, 0)
        monkeypatch.setitem(cuda_kernel.SPILL_CAPACITY, fp, 3)
        monkeypatch.setitem(cuda_kernel.TEAM_CAPACITY, fp, held)
    monkeypatch.setattr(warp_team, "MAX_TRUNK_SHARE", 1.0)


def shared(code, char: str = "d"):
    return cuda_kernel._CutTape.of(code).team(code, Width(FP[char], 1))


@pytest.mark.parametrize("char", "df")
@pytest.mark.parametrize(
    ("model", "quantity"),
    [
        ("limbs", "forward_dynamics"),
        ("limbs", "inverse_dynamics"),
        ("limbs", "kinetic_energy"),
        ("crab", "forward_dynamics"),
    ],
)
def test_the_bits_of_one_thread(model, quantity, char, teams):
    code = lowered(model, quantity)
    given = batch(model, 33, char)[: len(code.program.inputs)]
    assert CudaGrid.of(CUDA.emit(code, char)) == CudaGrid(128, 32)
    (found,) = run(code, char, given)
    assert alike(found, known(model, quantity, 1, char)(*given))


@pytest.mark.parametrize("quantity", ["forward_dynamics", "inverse_dynamics", "bias"])
def test_who_does_what(quantity):
    """Every number is made by one role, or by all who need it from the trunk alone; what comes from
    another was made in an earlier phase; one does the trunk."""
    code = lowered("limbs", quantity)
    found, rest = shared(code), cuda_kernel._CutTape.of(code).rest
    assert found is not None and len(found.tasks) == 4
    made: dict[int, list[tuple[int, int]]] = {}
    for r, role in enumerate(found.tasks):
        for node in role.nodes:
            made.setdefault(node, []).append((r, role.phase[node]))
    assert set(made) == set(rest.nodes)
    for r, role in enumerate(found.tasks):
        for node in role.nodes:
            for x in operands(rest.tape, node):
                if x in made and r not in [who for who, _ in made[x]]:
                    assert (
                        len(made[x]) == 1
                        and made[x][0][1] < role.phase[node]
                        and role.loads[x][0] == warp_team.CELLS
                    )
    phases = [{role.phase[node] for node in role.nodes} for role in found.tasks]
    assert sum(TRUNK in x for x in phases) == 1 and all(INWARDS in x for x in phases)
    assert all((OUTWARDS in x) == (quantity == "forward_dynamics") for x in phases)
    handed = {
        store.node for role in found.tasks for store in role.stores if store.base == warp_team.CELLS
    }
    assert found.cells == len(handed) < len(made) / 4


def test_limbs_meet_in_a_trunk():
    limbs = limbs_of(frame_tree(limbed(seed=1), None))
    assert [limbs["v"].get(i) for i in range(6 + 1 + 20)] == [None] * 7 + [
        k for k in range(4) for _ in range(5)
    ]
    assert sorted(limbs["q"]) == list(range(8, 28)) and set(limbs["q"].values()) == set(range(4))
    alone = limbs_of(frame_tree(zoo.chain("arm", ["revolute"] * 5, seed=1), None))
    assert sorted(alone["v"]) == [3, 4] and set(alone["v"].values()) == {
        0
    }  # the end of a chain: a limb, but no team


def test_no_team_where_it_does_not_help():
    """An arm; a robot of which one thread holds nearly all; matrices whose columns know all
    limbs."""
    assert shared(lowered("arm", "forward_dynamics")) is None
    assert CudaGrid.of(CUDA.emit(lowered("limbs", "forward_dynamics"), "f")).states > 32
    assert shared(lowered("limbs", "mass_matrix_inverse")) is None


def test_a_team_of_a_humanoid():
    """The forward dynamics of G1 in float64: the work of four warps is even, and little of it is
    done twice."""
    code = pp.load("g1", base="free").function("forward_dynamics").source.code
    found, nodes = shared(code), cuda_kernel._CutTape.of(code).rest.nodes
    assert found is not None and found.cells <= 130
    work = [len(role.nodes) for role in found.tasks]
    assert max(work) < 0.4 * len(nodes) and sum(work) < 1.2 * len(nodes)
    assert CudaGrid.of(CUDA.emit(code, "d")) == CudaGrid(128, 32)

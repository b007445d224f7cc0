"""Several frames in one call are those of calls for one frame, stacked before the core axes."""

import numpy as np
import pytest

import psiphi as pp

ROBOT = pp.load("pelican")
FRAMES = [frame for frame in ROBOT.frames if frame != "world"][:3]


@pytest.mark.parametrize("lead", [(), (4,)])
@pytest.mark.parametrize(
    ("name", "count", "core"),
    [
        ("frame_pose", 1, 2),
        ("jacobian", 1, 2),
        ("frame_velocity", 2, 1),
        ("frame_acceleration", 3, 1),
    ],
)
def test_several_frames_are_stacked(name, count, core, lead):
    states = np.random.default_rng(0).standard_normal((count, *lead, 2))
    method = getattr(ROBOT, name)
    together = method(*states, FRAMES)
    want = np.stack([method(*states, frame) for frame in FRAMES], axis=-1 - core)
    np.testing.assert_array_equal(together, want)
    assert together.shape[: len(lead) + 1] == (*lead, len(FRAMES))


def test_axes_types_and_names():
    q = np.array([0.3, -0.2])
    local = ROBOT.jacobian(q, FRAMES, axes="frame")
    np.testing.assert_array_equal(local[1], ROBOT.jacobian(q, FRAMES[1], axes="frame"))
    assert ROBOT.frame_pose(q.astype(np.float32), FRAMES).dtype == np.float32
    with pytest.raises(pp.StateError, match=r"no frame 'tol'.*'tool'"):
        ROBOT.jacobian(q, ["tool", "tol"])
    with pytest.raises(pp.StateError, match="no frame is given"):
        ROBOT.jacobian(q, [])
    with pytest.raises(pp.StateError, match="out= is given with several frames"):
        ROBOT.frame_pose(q, FRAMES, out=np.empty((3, 4, 4)))


def test_tensors_and_their_gradients():
    torch = pytest.importorskip("torch")
    q = torch.tensor([0.3, -0.2], dtype=torch.float64, requires_grad=True)
    T = ROBOT.frame_pose(q, FRAMES)
    T[:, 0, 3].sum().backward()
    want = sum(ROBOT.jacobian(q.detach().numpy(), frame)[3] for frame in FRAMES)
    np.testing.assert_allclose(q.grad.numpy(), want, atol=1e-12)

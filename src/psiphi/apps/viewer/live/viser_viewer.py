"""The live viewer: a viser server for the browser on this machine; needs the extra `viewer`."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import Error, StateError
from psiphi._util.escape import html, line
from psiphi._util.extras import install_command
from psiphi._util.text import shown
from psiphi._util.validate import flag, real_array, whole_number
from psiphi.apps.viewer.geometry.link_poses import link_poses
from psiphi.apps.viewer.live import server_security, viser_scene
from psiphi.apps.viewer.scene import Scene, is_trajectory, scene
from psiphi.model.spatial.rotations import quaternions

if TYPE_CHECKING:  # viser comes with the extra `viewer`
    from viser import GuiEvent, ViserServer

HOST = "127.0.0.1"
PORTS = 65_535
RATE = 40.0  # frames per second
RED = (212, 50, 44)
WRITE_A_PAGE = "write a page with pp.viewer.html (psiphi view --html)"
PANEL_TEXT = '<div style="padding: 0 0.75em; font-size: 0.85em; overflow-wrap: anywhere">{}</div>'


def view(thing: object, *, port: int = 8080, sliders: bool | None = None, **options: Any) -> Viewer:
    """Show a robot, a closed chain or a trajectory live in the browser. Returns immediately.

    A robot gets a slider for each joint; in a closed chain the other joints follow. A motion gets a
    time slider and a play button. Forces, frames and plots can be switched on. Options are those of
    `scene`. The server listens on 127.0.0.1 only, on `port` or the next free port.
    """
    port = read_port(port)
    if sliders is not None:
        flag("sliders", sliders, "omit it: robots get sliders")
    is_motion = is_trajectory(thing) or np.ndim(options.get("q", ())) > 1
    with_sliders = (not is_motion) if sliders is None else sliders
    return Viewer(scene(thing, **options), port, with_sliders, getattr(thing, "assemble", None))


def read_port(port: int) -> int:
    """Check a port number."""
    if not 0 < (port := whole_number("port", port)) <= PORTS:
        raise StateError(f"port is {port}, expected 1 to {PORTS}", "8080 is the default")
    return port


def _server(port: int, label: str) -> ViserServer:
    """A restricted viser server on this machine, without viser's banner."""
    try:
        import viser
    except ImportError as error:
        remedy = f"{install_command('psiphi[viewer]')}, or {WRITE_A_PAGE}"
        raise Error("the live viewer needs viser, which is not installed", remedy) from error
    with contextlib.redirect_stdout(io.StringIO()), server_security.restrict_servers() as seen:
        server = viser.ViserServer(host=HOST, port=_free_port(port), label=label, verbose=False)
        if not seen:
            server.stop()
    if not seen:
        raise Error(
            f"the server of viser {viser.__version__} cannot be protected from foreign pages",
            f"pip install 'viser>=1.0,<2', or {WRITE_A_PAGE}",
        )
    return server


def _free_port(port: int) -> int:
    """The first free port from `port` on. On a port that is not free, viser's thread would fail."""
    for candidate in range(port, PORTS + 1):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, candidate))
            probe.listen()
            return candidate
    raise StateError(
        f"no port from {port} to {PORTS} is free", "pass a smaller one; 8080 is the default"
    )


class Viewer:
    """A running viewer, and a context manager that closes it.

    It has `url`, `seek(t)`, `pose(q)`, `play()`, `pause()`, `wait()` and `close()`.
    """

    def __init__(
        self,
        scene: Scene,
        port: int = 8080,
        sliders: bool = False,
        assemble: Callable | None = None,
    ):
        self.scene, self._assemble = scene, assemble
        self.server = _server(port, line(f"psiphi: {scene.title}"))
        self.now, self.playing, self._closed = float(scene.t[0]), False, threading.Event()
        self._bodies = viser_scene.add_bodies(self.server, scene)
        self._frames = viser_scene.add_frames(self.server, scene)
        self._controls(sliders)
        self._set_camera()
        self.seek(self.now)
        if len(scene.t) > 1 and not sliders:
            threading.Thread(target=self._run, name="psiphi viewer", daemon=True).start()

    @property
    def url(self) -> str:
        """The address of the viewer's page."""
        return f"http://{HOST}:{self.server.get_port()}"

    def _set_camera(self) -> None:
        center, radius = self.scene.extent
        camera = self.server.initial_camera
        offset = radius * np.array([1.0, -1.4, 0.65]) @ self.scene.view_rotation
        camera.look_at = viser_scene.xyz(center)
        camera.position = viser_scene.xyz(center + offset)

    # -- panel -----------------------------------------------------------------------------

    def _controls(self, sliders: bool) -> None:
        gui, motion = self.server.gui, self.scene.motion
        gui.add_html(PANEL_TEXT.format(f"<b>{html(self.scene.title)}</b>"))
        self.time = self.button = None
        if sliders:
            self._joint_sliders()
        elif len(motion.t) > 1:
            first, last = float(motion.t[0]), float(motion.t[-1])
            self.button = gui.add_button("play / pause")
            self.button.on_click(lambda _: self.pause() if self.playing else self.play())
            self.time = gui.add_slider(
                "time [s]", first, last, max((last - first) / 1000, 1e-6), first
            )
            self.time.on_update(lambda event: self._on_time_slider(event))
            self.speed = gui.add_slider("speed", 0.1, 4.0, 0.1, 1.0)
        frames = gui.add_checkbox("frames", False)
        frames.on_update(lambda _: self._show_frames(frames.value))
        if motion.arrows is not None:
            self.forces = gui.add_checkbox("forces", True)
            self.forces.on_update(lambda _: self.seek(self.now))
        if not sliders:
            for plot in motion.plots:
                viser_scene.add_plot(self.server, scene=self.scene, plot=plot)
        for note in self.scene.notes[:5]:
            gui.add_html(PANEL_TEXT.format(html(note)))

    def _on_time_slider(self, event: GuiEvent[Any]) -> None:
        if event.client is not None:  # moved by a user, not by `seek`
            self.pause()
            with contextlib.suppress(Error):
                self.seek(float(event.target.value))

    def _joint_sliders(self) -> None:
        """Add a slider for each coordinate of v.

        Its value is q for a joint with one coordinate, else the displacement from the last
        configuration, on the configuration manifold.
        """
        model, gui = self.scene.model, self.server.gui
        home, self._moved, self._sliders = self.scene.motion.q[-1], np.zeros(model.nv), {}
        with gui.add_folder("joints"):
            for joint in model.joints[:60]:
                for i, slides in zip(joint.coordinates, joint.row.slides, strict=True):
                    low, high = (-1.0, 1.0) if slides else (-np.pi, np.pi)
                    here = 0.0
                    if joint.row.nq == 1:
                        here = float(home[joint.q_slice.start])
                        low, high = (
                            max(low + here, float(joint.lower[0])),
                            min(high + here, float(joint.upper[0])),
                        )
                    if not low <= here <= high or high - low < 1e-6:
                        continue
                    label = (
                        joint.name
                        if joint.row.nv == 1
                        else f"{joint.name} {i - joint.v_slice.start + 1}"
                    )
                    self._sliders[label] = slider = gui.add_slider(
                        line(label), low, high, (high - low) / 400, here
                    )
                    slider.on_update(
                        lambda event, i=i, j=joint.name, x=here: self._on_joint_slider(
                            home, i, float(event.target.value) - x, j
                        )
                    )

    def _on_joint_slider(self, home: np.ndarray, i: int, value: float, joint: str) -> None:
        """Move one coordinate. In a closed chain the other joints follow; if they cannot, nothing
        moves."""
        self._moved[i] = value
        with contextlib.suppress(Error):
            q = self.scene.model.integrate(home, self._moved)
            self.pose(q if self._assemble is None else self._assemble(q, hold=(joint,)))

    def _show_frames(self, on: bool) -> None:
        for handle in self._frames:
            handle.visible = on

    # -- time ------------------------------------------------------------------------------

    def seek(self, t: float) -> None:
        """Show the motion at a time."""
        times, wanted = self.scene.t, real_array("t", t, (), "give a time in seconds")
        if wanted.ndim or np.isnan(wanted):
            raise StateError(
                f"t is {shown(t)}, expected one time",
                f"pass seconds from {times[0]:g} to {times[-1]:g}",
            )
        self.now = float(np.clip(wanted, times[0], times[-1]))
        k = int(np.argmin(np.abs(times - self.now)))
        self._place(self.scene.rotation[k], self.scene.position[k])
        self._arrows(k)
        if self.time is not None:
            self.time.value = self.now

    def pose(self, q: Numbers) -> None:
        """Show a configuration (nq,)."""
        nq = self.scene.model.nq
        wanted = real_array("q", q, (nq,), f"give nq = {nq} numbers")
        if wanted.ndim != 1 or not np.isfinite(wanted).all():
            raise StateError(
                f"q is {shown(q)}, expected nq = {nq} finite numbers", "give one configuration"
            )
        self._place(*link_poses(self.scene.model, wanted))

    def _place(self, R: np.ndarray, p: np.ndarray) -> None:
        turned = quaternions(R)[:, [3, 0, 1, 2]] if len(R) else []
        with self.server.atomic():
            for handle, wxyz, position in zip(self._bodies, turned, p, strict=True):
                handle.wxyz, handle.position = wxyz, position

    def _arrows(self, k: int) -> None:
        arrows = self.scene.motion.arrows
        if arrows is None:
            return
        largest = float(np.nanmax(np.linalg.norm(arrows.force, axis=-1), initial=0.0)) or 1.0
        size = self.scene.extent[1]
        start = np.nan_to_num(arrows.point[k])
        vector = np.nan_to_num(arrows.force[k]) * (0.55 * size / largest)
        self.server.scene.add_arrows(
            "/forces",
            np.stack([start, start + vector], axis=1).astype(np.float32),
            RED,
            visible=self.forces.value,
            shaft_radius=0.012 * size,
            head_radius=0.03 * size,
            head_length=0.08 * size,
        )

    def play(self) -> None:
        """Play the motion in a loop."""
        self.playing = True

    def pause(self) -> None:
        """Pause the motion."""
        self.playing = False

    def _run(self) -> None:
        last = time.perf_counter()
        while not self._closed.wait(1.0 / RATE):
            now = time.perf_counter()
            step, last = now - last, now
            if self.playing:
                t = self.now + step * float(self.speed.value)
                self.seek(t if t <= self.scene.t[-1] else float(self.scene.t[0]))

    def wait(self) -> None:
        """Wait until Ctrl-C or `close()`."""
        try:
            while not self._closed.wait(0.5):
                pass
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop the server."""
        if not self._closed.is_set():
            self._closed.set()
            with contextlib.redirect_stdout(io.StringIO()):
                self.server.stop()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""Live pages in a Chromium without WebGL."""

import psiphi as pp
from tests.apps.viewer.browser import SPOT, colors, differing, page, picture, show


def test_without_webgl_it_is_drawn_all_the_same(tmp_path):
    """By plain triangles: it runs and is pulled as ever."""
    path = pp.load("pelican").html(tmp_path / "p.html", live=True)
    with page(500, 300, "--disable-3d-apis") as plain:
        show(plain, path)
        assert plain.evaluate(
            "['webgl', 'webgl2']"
            ".every(x => document.createElement('canvas').getContext(x) === null)"
        )
        before = picture(plain)
        assert colors(before) > 60
        spot = plain.evaluate(SPOT, 1)
        plain.mouse.move(*spot)
        plain.mouse.down()
        plain.mouse.move(spot[0] + 40, spot[1] - 30)
        plain.wait_for_function("psiphi.held && psiphi.drawn > 0.2")
        assert differing(before, picture(plain)) > 200 and not plain.complaints

// Shared by both pages: the scene, its solids, the camera, and mouse and touch input.
const $ = id => document.getElementById(id);
const S = JSON.parse($("scene").textContent);
const canvas = $("view"), radius = S.radius;
let focus = S.center, dirty = true, before = 0;
let moments = () => [];  // a page names the moments that the whole picture contains: functions k => pose of body k
let closest = 0.3;  // the least distance from which the camera starts, over the radius
let grasp = () => null;  // a page may handle a pointer itself: grasp(event) returns { move(event), end() } or null

const pieces = S.pieces.map(x => ({ body: x.body, ground: x.ground, local: placed(x.at), paint: linear(x.color), solid: x.kind === "mesh" ? meshed(S.meshes[x.mesh]) : solids[x.kind](x.size) }));
const thin = radius * 0.012, head = solids.cone([2.6 * thin, 7 * thin]), shaft = solids.shaft([thin]);
const triad = radius * 0.11, axis = solids.shaft([triad * 0.05]);
const AXES = [["#d33f3f", [1, 0, 0]], ["#3f9e4f", [0, 1, 0]], ["#3a66d0", [0, 0, 1]]].map(([c, d]) => [linear(c), d]);
const FORCE = linear("#d4322c");
const plane = { p: [-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0], n: [0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1], i: [0, 1, 2, 0, 2, 3] };
const wide = radius * 6, cell = Math.pow(10, Math.round(Math.log10(radius * 0.7)));

function solidItems(on, triads) {  // solids, named frames and the floor; on(k) is the pose of body k
  const list = pieces.map(x => ({ solid: x.solid, paint: x.paint, matrix: times(on(x.body), x.local) }));
  if (triads) for (const f of S.frames) {
    const M = times(on(f.body), placed(f.at)), o = [M[12], M[13], M[14]];
    for (const [paint, d] of AXES) {
      const v = [0, 1, 2].map(r => M[r] * d[0] + M[4 + r] * d[1] + M[8 + r] * d[2]);
      list.push({ solid: axis, paint, matrix: along(v, o, 1, triad), flat: true, through: true });
    }
  }
  if (S.ground !== null) list.push({ solid: plane, paint: [1, 1, 1], floor: wide, flat: true, matrix: frameOf([wide, 0, 0], [0, wide, 0], [0, 0, 1], [focus[0], focus[1], S.ground]) });
  if (S.slope) {
    const [n, p] = S.slope, middle = add(focus, n, -dot(n, sub(focus, p)));
    list.push({ solid: plane, paint: [1, 1, 1], floor: wide, flat: true, matrix: along(n, middle, wide, wide) });
  }
  return list;
}
function arrowItems(o, f, long, paint = FORCE) {  // an arrow from o along f, of length `long`
  if (long < 0.2 * thin) return [];
  const grow = Math.min(1, long / (8 * thin)), tip = add(o, unit(f), long - 7 * thin * grow);
  return [{ solid: shaft, paint, matrix: along(f, o, grow, Math.max(1e-6, long - 6.9 * thin * grow)), through: true }, { solid: head, paint, matrix: along(f, tip, grow, grow), through: true }];
}

const camera = {};
const TILT = 0.36, TURN = -0.95, HALF = 0.35;  // HALF: half the field of view, in a picture at least 1.1 times as wide as high
const boxes = pieces.map(({ solid: { p } }) => {  // the corners of the box around each solid
  const low = [Infinity, Infinity, Infinity], high = low.map(x => -x);
  for (let i = 0; i < p.length; i++) { low[i % 3] = Math.min(low[i % 3], p[i]); high[i % 3] = Math.max(high[i % 3], p[i]); }
  return [0, 1, 2, 3, 4, 5, 6, 7].map(c => [0, 1, 2].map(r => (c >> r) & 1 ? high[r] : low[r]));
});
function distance() {  // the least distance of the camera from which all solids are in the picture at all moments
  const c = Math.cos(TILT), z = [Math.cos(TURN) * c, Math.sin(TURN) * c, Math.sin(TILT)], x = unit(cross([0, 0, 1], z)), y = cross(z, x);
  const high = Math.tan(HALF), broad = 1.1 * high;
  let far = closest * radius;
  for (const on of moments()) pieces.forEach(({ body, local, ground }, i) => {
    if (ground) return;
    const M = times(on(body), local);
    for (const p of boxes[i]) {
      const d = sub([0, 1, 2].map(r => M[r] * p[0] + M[4 + r] * p[1] + M[8 + r] * p[2] + M[12 + r]), focus);
      far = Math.max(far, dot(d, z) + Math.max(Math.abs(dot(d, x)) / broad, Math.abs(dot(d, y)) / high));
    }
  });
  return 1.12 * far;  // space for the title and for arrows
}
function reset() { Object.assign(camera, { turn: TURN, tilt: TILT, far: distance(), at: focus.slice() }); dirty = true; }
function view() {
  const c = Math.cos(camera.tilt), eye = add(camera.at, [Math.cos(camera.turn) * c, Math.sin(camera.turn) * c, Math.sin(camera.tilt)], camera.far);
  const narrow = Math.min(1, canvas.width / canvas.height / 1.1), fov = 2 * Math.atan(Math.tan(HALF) / narrow);
  const eyes = times(perspective(fov, canvas.width / canvas.height, camera.far * 0.02, camera.far + radius * 30), looking(eye, camera.at, [0, 0, 1]));
  const r = radius * 1.25, light = times(box(r, 0.1, 8 * r), looking(add(focus, SUN, 4 * r), focus, [0, 1, 0]));
  return { eye, eyes, light, middle: focus, cell, fov };
}
function ray(e) {  // the ray through a pointer: [eye, direction]
  const { eye, fov } = view(), b = canvas.getBoundingClientRect(), t = Math.tan(fov / 2);
  const z = unit(sub(camera.at, eye)), x = unit(cross(z, [0, 0, 1])), y = cross(x, z);
  const u = (2 * (e.clientX - b.left) / b.width - 1) * t * b.width / b.height, v = (1 - 2 * (e.clientY - b.top) / b.height) * t;
  return [eye, unit(add(add(z, x, u), y, v))];
}
const draw = (location.hash.includes("painter") ? null : webgl(canvas, () => { dirty = true; })) || painter(canvas);
function resize() {
  const box = canvas.getBoundingClientRect(), sharp = Math.min(2, window.devicePixelRatio || 1);
  canvas.width = Math.max(2, Math.round(box.width * sharp)); canvas.height = Math.max(2, Math.round(box.height * sharp)); dirty = true;
}
const short = x => !isFinite(x) ? "–" : x === 0 ? "0" : Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5 ? x.toExponential(1) : x.toPrecision(4).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");

const fingers = new Map();
let taken = null;
canvas.addEventListener("pointerdown", e => {
  fingers.set(e.pointerId, e); canvas.setPointerCapture(e.pointerId);
  if (fingers.size === 1 && e.button === 0 && !e.shiftKey) taken = grasp(e);
});
for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, e => { fingers.delete(e.pointerId); if (taken && !fingers.size) { taken.end(); taken = null; } });
canvas.addEventListener("pointermove", e => {
  const old = fingers.get(e.pointerId);
  if (!old) return;
  const dx = e.clientX - old.clientX, dy = e.clientY - old.clientY, scale = camera.far * 0.73 / canvas.clientHeight;
  if (fingers.size > 1) {
    const other = [...fingers.values()].find(f => f.pointerId !== e.pointerId), apart = f => Math.hypot(f.clientX - other.clientX, f.clientY - other.clientY);
    camera.far *= apart(old) / (apart(e) || 1);
  } else if (taken) {
    taken.move(e);
  } else if (e.buttons & 2 || e.buttons & 4 || e.shiftKey) {
    const [s, c, st, ct] = [Math.sin(camera.turn), Math.cos(camera.turn), Math.sin(camera.tilt), Math.cos(camera.tilt)];
    camera.at = add(add(camera.at, [s, -c, 0], dx * scale), [-c * st, -s * st, ct], dy * scale);
  } else {
    camera.turn -= dx * 0.008; camera.tilt = Math.min(1.55, Math.max(-1.2, camera.tilt + dy * 0.008));
  }
  fingers.set(e.pointerId, e); dirty = true;
});
canvas.addEventListener("contextmenu", e => e.preventDefault());
canvas.addEventListener("wheel", e => {  // in an iframe, the wheel scrolls the outer page until the canvas has the focus
  if (window.parent !== window && document.activeElement !== canvas) return;
  camera.far = Math.min(radius * 25, Math.max(radius * 0.1, camera.far * Math.exp(e.deltaY * 0.001))); dirty = true; e.preventDefault();
}, { passive: false });
canvas.addEventListener("dblclick", () => reset());
$("reset").addEventListener("click", () => reset());
window.addEventListener("resize", resize);
new ResizeObserver(resize).observe(canvas);

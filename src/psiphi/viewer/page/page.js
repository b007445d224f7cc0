// The page: where everything is at a time, the camera, the controls, the plots' cursors.
const $ = id => document.getElementById(id);
const S = JSON.parse($("scene").textContent);
const canvas = $("view"), first = S.t[0], last = S.t[S.t.length - 1], still = S.t.length < 2;

const pieces = S.pieces.map(x => ({ body: x.body, local: placed(x.at), paint: linear(x.color), solid: x.kind === "mesh" ? meshed(S.meshes[x.mesh]) : solids[x.kind](x.size) }));
const [ux, uy, uz] = S.center, radius = S.radius;
const thin = radius * 0.012, head = solids.cone([2.6 * thin, 7 * thin]), shaft = solids.shaft([thin]);
const triad = radius * 0.11, axis = solids.shaft([triad * 0.05]);
const AXES = [["#d33f3f", [1, 0, 0]], ["#3f9e4f", [0, 1, 0]], ["#3a66d0", [0, 0, 1]]].map(([c, d]) => [linear(c), d]);
const FORCE = linear("#d4322c");
const plane = { p: [-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0], n: [0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1], i: [0, 1, 2, 0, 2, 3] };
const wide = radius * 6, cell = Math.pow(10, Math.round(Math.log10(radius * 0.7)));
const strongest = S.arrows ? Math.max(1e-12, ...S.arrows.force.map(row => Math.max(...row.map(f => Math.hypot(...f))))) : 1;

const camera = {};
function reset() { Object.assign(camera, { turn: -0.95, tilt: 0.36, far: radius * 2.6, at: [ux, uy, uz] }); dirty = true; }
let now = first, playing = false, dirty = true, before = 0;

function moment(time) {  // the frame before a time, and how far to the next
  if (still) return [0, 0, 0];
  let a = 0, b = S.t.length - 1;
  while (b - a > 1) { const m = (a + b) >> 1; S.t[m] <= time ? a = m : b = m; }
  return [a, b, Math.min(1, Math.max(0, (time - S.t[a]) / (S.t[b] - S.t[a] || 1)))];
}
function items() {
  const [a, b, s] = moment(now), A = S.poses[a], B = S.poses[b], body = [];
  for (let k = 0; k < S.bodies.length; k++) body.push(placed(between(A, B, 7 * k, s)));
  const on = k => k < 0 ? IDENTITY : body[k];
  const list = pieces.map(x => ({ solid: x.solid, paint: x.paint, matrix: times(on(x.body), x.local) }));
  if ($("frames").checked) for (const f of S.frames) {
    const M = times(on(f.body), placed(f.at)), o = [M[12], M[13], M[14]];
    for (const [paint, d] of AXES) {
      const v = [0, 1, 2].map(r => M[r] * d[0] + M[4 + r] * d[1] + M[8 + r] * d[2]);
      list.push({ solid: axis, paint, matrix: along(v, o, 1, triad), flat: true, through: true });
    }
  }
  if (S.arrows && $("forces").checked) S.arrows.names.forEach((name, k) => {
    const mix = (x, y) => x.map((v, i) => v + s * (y[i] - v));
    const f = mix(S.arrows.force[a][k], S.arrows.force[b][k]), o = mix(S.arrows.at[a][k], S.arrows.at[b][k]);
    const size = Math.hypot(...f), long = size / strongest * radius * 0.55;
    if (long < 0.2 * thin) return;
    const grow = Math.min(1, long / (8 * thin)), tip = add(o, unit(f), long - 7 * thin * grow);
    list.push({ solid: shaft, paint: FORCE, matrix: along(f, o, grow, Math.max(1e-6, long - 6.9 * thin * grow)), through: true }, { solid: head, paint: FORCE, matrix: along(f, tip, grow, grow), through: true });
  });
  if (S.ground !== null) list.push({ solid: plane, paint: [1, 1, 1], floor: wide, flat: true, matrix: frameOf([wide, 0, 0], [0, wide, 0], [0, 0, 1], [ux, uy, S.ground]) });
  return list;
}
function view() {
  const c = Math.cos(camera.tilt), eye = add(camera.at, [Math.cos(camera.turn) * c, Math.sin(camera.turn) * c, Math.sin(camera.tilt)], camera.far);
  const narrow = Math.min(1, canvas.width / canvas.height / 1.1), fov = 2 * Math.atan(Math.tan(0.35) / narrow);
  const eyes = times(perspective(fov, canvas.width / canvas.height, camera.far * 0.02, camera.far + radius * 30), looking(eye, camera.at, [0, 0, 1]));
  const r = radius * 1.25, light = times(box(r, 0.1, 8 * r), looking(add([ux, uy, uz], SUN, 4 * r), [ux, uy, uz], [0, 1, 0]));
  return { eye, eyes, light, middle: [ux, uy, uz], cell };
}
const draw = (location.hash.includes("painter") ? null : webgl(canvas)) || painter(canvas);
function resize() {
  const box = canvas.getBoundingClientRect(), sharp = Math.min(2, window.devicePixelRatio || 1);
  canvas.width = Math.max(2, Math.round(box.width * sharp)); canvas.height = Math.max(2, Math.round(box.height * sharp)); dirty = true;
}
const short = x => !isFinite(x) ? "–" : x === 0 ? "0" : Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5 ? x.toExponential(1) : x.toPrecision(4).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
const cursors = [...document.querySelectorAll(".plot .cursor")], keys = [...document.querySelectorAll("figure")].map(f => [...f.querySelectorAll(".keys b")]);
const [left, right, whole] = S.margins;
function words() {  // clock, slider, cursors, numbers
  const part = last > first ? (now - first) / (last - first) : 0, x = left + part * (whole - left - right), [a, b, s] = moment(now), near = s > 0.5 ? b : a;
  $("time").value = now; $("clock").textContent = still ? "" : `${now.toFixed(2)} / ${last.toFixed(2)} s`;
  for (const c of cursors) { c.setAttribute("x1", x); c.setAttribute("x2", x); }
  S.plots.forEach((rows, i) => rows.forEach((row, k) => { if (keys[i] && keys[i][k]) keys[i][k].textContent = row[near] === null ? "–" : short(row[near]); }));
  document.querySelectorAll("#legend b").forEach((cell, k) => { cell.textContent = `${short(Math.hypot(...S.arrows.force[near][k]))} N`; });
}
function paint(stamp) {
  const elapsed = Math.min(0.1, Math.max(0, (stamp - before) / 1000 || 0));  // a frame may bear an older stamp than play()
  before = stamp;
  if (playing) { now += elapsed * Number($("speed").value); if (now > last) now = first; dirty = true; }
  if (dirty) { dirty = false; draw(items(), view()); words(); window.psiphi.drawn = now; }
  requestAnimationFrame(paint);
}
function play(on) { playing = on && !still; $("play").textContent = playing ? "❚❚" : "▶"; before = performance.now(); }
function seek(time) { now = Math.min(last, Math.max(first, Number(time) || 0)); dirty = true; }
window.psiphi = { seek, play: () => play(true), pause: () => play(false), camera, drawn: null, scene: S };

const fingers = new Map();
canvas.addEventListener("pointerdown", e => { fingers.set(e.pointerId, e); canvas.setPointerCapture(e.pointerId); });
for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, e => fingers.delete(e.pointerId));
canvas.addEventListener("pointermove", e => {
  const old = fingers.get(e.pointerId);
  if (!old) return;
  const dx = e.clientX - old.clientX, dy = e.clientY - old.clientY, scale = camera.far * 0.73 / canvas.clientHeight;
  if (fingers.size > 1) {
    const other = [...fingers.values()].find(f => f.pointerId !== e.pointerId), apart = f => Math.hypot(f.clientX - other.clientX, f.clientY - other.clientY);
    camera.far *= apart(old) / (apart(e) || 1);
  } else if (e.buttons & 2 || e.buttons & 4 || e.shiftKey) {
    const [s, c, st, ct] = [Math.sin(camera.turn), Math.cos(camera.turn), Math.sin(camera.tilt), Math.cos(camera.tilt)];
    camera.at = add(add(camera.at, [s, -c, 0], dx * scale), [-c * st, -s * st, ct], dy * scale);
  } else {
    camera.turn -= dx * 0.008; camera.tilt = Math.min(1.55, Math.max(-1.2, camera.tilt + dy * 0.008));
  }
  fingers.set(e.pointerId, e); dirty = true;
});
canvas.addEventListener("contextmenu", e => e.preventDefault());
canvas.addEventListener("wheel", e => { camera.far = Math.min(radius * 25, Math.max(radius * 0.1, camera.far * Math.exp(e.deltaY * 0.001))); dirty = true; e.preventDefault(); }, { passive: false });
canvas.addEventListener("dblclick", () => reset());
$("time").min = first; $("time").max = last;
$("time").addEventListener("input", e => { play(false); seek(e.target.value); });
$("play").addEventListener("click", () => play(!playing));
$("reset").addEventListener("click", () => reset());
for (const id of ["frames", "forces"]) $(id).addEventListener("change", () => { dirty = true; });
document.addEventListener("keydown", e => {
  if (["SELECT", "BUTTON"].includes(e.target.tagName)) return;
  const step = (last - first) / 100;
  if (e.key === " ") { play(!playing); e.preventDefault(); }
  else if (e.target.tagName !== "INPUT" && (e.key === "ArrowLeft" || e.key === "ArrowRight")) { play(false); seek(now + (e.key === "ArrowLeft" ? -step : step)); }
});
document.querySelectorAll(".plot").forEach(svg => {
  const go = e => { if (!e.buttons) return; const r = svg.getBoundingClientRect(), x = (e.clientX - r.left) / r.width * whole; play(false); seek(first + (x - left) / (whole - left - right) * (last - first)); };
  svg.addEventListener("pointerdown", go); svg.addEventListener("pointermove", go);
});
if (!S.arrows) $("forces-pick").style.display = "none";
else $("legend").innerHTML = S.arrows.names.map(() => `<div><span class="chip" style="background:#d4322c"></span><span></span><b></b></div>`).join("");
if (S.arrows) document.querySelectorAll("#legend div > span + span").forEach((cell, k) => { cell.textContent = S.arrows.names[k]; });
if (!document.querySelector("aside").children.length) document.querySelector("main").classList.add("alone");
if (still) for (const id of ["play", "time", "clock"]) $(id).style.visibility = "hidden";
window.addEventListener("resize", resize);
new ResizeObserver(resize).observe(canvas);
reset(); resize();
const asked = /t=([-0-9.e]+)/.exec(location.hash);
asked ? seek(asked[1]) : 0;
play(!asked && !matchMedia("(prefers-reduced-motion: reduce)").matches);
requestAnimationFrame(paint);

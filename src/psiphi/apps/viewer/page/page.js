// A recorded motion: poses at a time, controls, cursors of plots.
const first = S.t[0], last = S.t[S.t.length - 1], still = S.t.length < 2;
const strongest = S.arrows ? Math.max(1e-12, ...S.arrows.force.map(row => Math.max(...row.map(f => Math.hypot(...f))))) : 1;
let now = first, playing = false;

function moment(time) {  // the frame before a time, the frame after it, and the fraction between them
  if (still) return [0, 0, 0];
  let a = 0, b = S.t.length - 1;
  while (b - a > 1) { const m = (a + b) >> 1; S.t[m] <= time ? a = m : b = m; }
  return [a, b, Math.min(1, Math.max(0, (time - S.t[a]) / (S.t[b] - S.t[a] || 1)))];
}
function bodies(time) {  // the poses of all bodies at a time: a function of k
  const [a, b, s] = moment(time), body = S.bodies.map((_, k) => placed(between(S.poses[a], S.poses[b], 7 * k, s)));
  return k => k < 0 ? IDENTITY : body[k];
}
const SAMPLES = 60;  // moments at which the camera looks for the whole motion
moments = () => Array.from({ length: still ? 1 : SAMPLES + 1 }, (_, i) => bodies(first + (last - first) * i / SAMPLES));
const touching = S.touches ? glows(S.touches.radii, S.touches.normal) : null;
function items() {
  const [a, b, s] = moment(now), list = solidItems(bodies(now), $("frames").checked), near = s > 0.5 ? b : a;
  if (touching) list.push(...touching(S.arrows.at[near], S.touches.modes[near]));
  if (S.arrows && $("forces").checked) S.arrows.names.forEach((name, k) => {
    const mix = (x, y) => x.map((v, i) => v + s * (y[i] - v));
    const f = mix(S.arrows.force[a][k], S.arrows.force[b][k]), o = mix(S.arrows.at[a][k], S.arrows.at[b][k]);
    list.push(...arrowItems(o, f, Math.hypot(...f) / strongest * radius * 0.55));
  });
  return list;
}
const cursors = [...document.querySelectorAll(".plot .cursor")], keys = [...document.querySelectorAll("figure")].map(f => [...f.querySelectorAll(".keys b")]);
const [left, right, whole] = S.margins;
function words() {  // updates clock, slider, cursors and values
  const part = last > first ? (now - first) / (last - first) : 0, x = left + part * (whole - left - right), [a, b, s] = moment(now), near = s > 0.5 ? b : a;
  $("time").value = now; $("clock").textContent = still ? "" : `${now.toFixed(2)} / ${last.toFixed(2)} s`;
  for (const c of cursors) { c.setAttribute("x1", x); c.setAttribute("x2", x); }
  S.plots.forEach((rows, i) => rows.forEach((row, k) => { if (keys[i] && keys[i][k]) keys[i][k].textContent = row[near] === null ? "–" : short(row[near]); }));
  if (S.touches) document.querySelectorAll("#legend div > .chip").forEach((chip, k) => { chip.style.background = TOUCH[S.touches.modes[near][k]]; });
  document.querySelectorAll("#legend b").forEach((cell, k) => { cell.textContent = `${short(Math.hypot(...S.arrows.force[near][k]))} N`; });
}
function paint(stamp) {
  const elapsed = Math.min(0.1, Math.max(0, (stamp - before) / 1000 || 0));  // the time stamp of a frame may be older than the call of play()
  before = stamp;
  if (playing) { now += elapsed * Number($("speed").value); if (now > last) now = first; dirty = true; }
  if (dirty) { dirty = false; draw(items(), view()); words(); window.psiphi.drawn = now; }
  requestAnimationFrame(paint);
}
function play(on) { playing = on && !still; $("play").textContent = playing ? "❚❚" : "▶"; before = performance.now(); }
function seek(time) { now = Math.min(last, Math.max(first, Number(time) || 0)); dirty = true; }
window.psiphi = { seek, play: () => play(true), pause: () => play(false), camera, drawn: null, scene: S };

$("time").min = first; $("time").max = last;
$("time").addEventListener("input", e => { play(false); seek(e.target.value); });
$("play").addEventListener("click", () => play(!playing));
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
if (S.touches) $("legend").append(touchKeys());
if (S.arrows) document.querySelectorAll("#legend div > span + span").forEach((cell, k) => { cell.textContent = S.arrows.names[k]; });
if (!document.querySelector("aside").children.length) document.querySelector("main").classList.add("alone");
if (still) for (const id of ["play", "time", "clock"]) $(id).style.visibility = "hidden";
resize(); reset();
const asked = /t=([-0-9.e]+)/.exec(location.hash);
asked ? seek(asked[1]) : 0;
play(!asked && !matchMedia("(prefers-reduced-motion: reduce)").matches);
requestAnimationFrame(paint);

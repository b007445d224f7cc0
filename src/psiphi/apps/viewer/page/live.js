// Runs the simulation: calls psiphi's compiled functions (`step`, `look`, ...), draws the results and passes on user input.
const L = S.live, h = L.h, U = L.up;
const G = L.ground;  // null: nothing touches a ground
const P = L.policy;  // undefined: the user moves the targets of the motors
const MODES = { hold: [1, 1, 1], pd: [1, 1, 0], float: [0, 0, 1], fall: [0, 0, 0] };  // proportional, damping, gravity
if (G) MODES.hold = MODES.pd;  // the legs carry more than g(q), by their stiffness
const LAWS = { hold: G ? "τ = kp (q* − q) − kd v" : "τ = kp M (q* − q) − kd M v + g(q)", pd: "τ = kp M (q* − q) − kd M v", float: "τ = g(q): gravity compensation", fall: "τ = 0" };
const turnedUp = v => U.map(row => dot(row, v)), turnedBack = v => [0, 1, 2].map(c => U[0][c] * v[0] + U[1][c] * v[1] + U[2][c] * v[2]);
let F = null, playing = false, steps = 0, due = 0, held = null, kept = 1, wall = 0, gone = 0, bodies = [];

function say(text) { if ($("said").textContent !== text) $("said").textContent = text; }
const heard = {};  // messages by reason; the first one is shown
function note(reason, text) { heard[reason] = text; say(Object.values(heard).find(Boolean) || ""); }

// -- controls --------------------------------------------------------------------------------
const sliders = {};
function slider(place, { name, low, high, value, unit, log, title }, changed) {
  const row = document.createElement("label"), text = document.createElement("span"), range = document.createElement("input"), out = document.createElement("output");
  row.className = "row"; text.textContent = name; row.title = title || name;
  const [to, from] = log ? [Math.log, Math.exp] : [x => x, x => x];
  Object.assign(range, { type: "range", step: "any" }); range.min = to(low); range.max = to(high); range.value = to(value);
  const self = { row, get value() { return from(Number(range.value)); }, set value(x) { range.value = to(x); self.show(); }, show() { out.textContent = `${short(Number(self.value.toPrecision(3)))} ${unit}`; } };
  range.addEventListener("input", () => { self.show(); changed(); dirty = true; });
  row.append(text, range, out); place.append(row); self.show();
  return self;
}
const friction = G ? Math.max(...G.numbers["contact.friction"]) : 0;
function made() {
  const place = $("sliders");
  for (const c of L.commands || []) c.slider = slider(place, { ...c, unit: "", title: "what the policy is to do" }, command);
  if (P) { L.joints = []; document.querySelector("#modes span").textContent = "policy"; }
  if (L.motors.some(x => x)) {
    const title = G ? "of each joint, per radian; less where the joint is too light for it" : "times the diagonal of the mass matrix";
    sliders.kp = slider(place, { name: "stiffness kp", low: 0, high: L.kp[1], value: L.kp[0], unit: G ? "Nm" : "1/s²", title }, controls);
    sliders.kd = slider(place, { name: "damping kd", low: 0, high: L.kd[1], value: L.kd[0], unit: G ? "Nms" : "1/s", title }, controls);
  }
  if (G) sliders.friction = slider(place, { name: "ground friction", low: 0, high: Math.max(1.5, friction), value: friction, unit: "", title: "Coulomb's coefficient; a foot holds while the tangential force is at most this times the normal force" }, controls);
  if (L.gravity) sliders.gravity = slider(place, { name: "gravity", low: 0, high: 2 * L.gravity, value: L.floats && !G ? 0 : L.gravity, unit: "m/s²" }, controls);
  sliders.damping = slider(place, { name: "joint damping", low: 0, high: 10, value: L.floats && L.gravity && !P ? 1 : 0, unit: "1/s", title: `viscous damping of each ${G ? "joint" : "coordinate"}, times the diagonal of the mass matrix` }, controls);
  if (L.load && L.load.most) sliders.load = slider(place, { name: "payload", low: 0, high: L.load.most, value: 0, unit: "kg" }, aim);
  sliders.pull = slider(place, { name: "pull stiffness", low: L.pull / 20, high: L.pull * 5, value: L.pull, unit: "N/m", log: true, title: "of the spring between the pointer and the robot" }, controls);
  const targets = document.querySelector("#targets .rows");
  for (const j of L.joints) j.slider = slider(targets, { name: j.name, low: j.low, high: j.high, value: j.q === null ? 0 : L.start.q[j.q], unit: j.unit }, aim);
  if (!L.joints.length) $("targets").hidden = true;
  if (!L.motors.some(x => x)) for (const id of ["modes", "law"]) $(id).style.display = "none";
  document.querySelectorAll("#modes input").forEach(x => x.addEventListener("change", controls));
}
const mode = () => document.querySelector("#modes input:checked").value;
function controls() {  // copies the sliders to the inputs of the step
  const [p, d, g] = MODES[mode()], w = sliders.gravity ? sliders.gravity.value / L.gravity : 1;
  $("law").textContent = LAWS[mode()];
  if (sliders.kp) { sliders.kp.row.classList.toggle("off", !p); sliders.kd.row.classList.toggle("off", !d); }
  $("targets").classList.toggle("off", !p);
  if (!F) return;
  for (let i = 0; i < L.motors.length; i++) {
    F["law.kp"][i] = p * L.motors[i] * Math.min((sliders.kp ? sliders.kp.value : 0) * L.scale[i], L.most ? L.most[i] : Infinity);
    const kd = d * L.motors[i] * (sliders.kd ? sliders.kd.value : 0);
    if (P) F["law.kd"][i] = kd * L.dampers[i];  // a part of the torque, as in the environment
    else F.motor_damping[i] = kd * L.scale[i];
    F["law.gravity_share"][i] = g * w;
    F.losses[i] = sliders.damping.value * L.inertia[i] * (G ? L.motors[i] : 1);  // no drag on the base
  }
  if (G) for (const name in G.numbers) F[name].set(G.numbers[name].map(x => name === "contact.friction" ? (friction ? x / friction : 1) * sliders.friction.value : x));
  F.gravity_scale[0] = w;
  L.light.forEach((m, k) => {  // as stiff as the step is stable, and critically damped
    F.pull_stiffness[k] = Math.min(sliders.pull.value, m * L.quick * L.quick);
    F.pull_damping[k] = 2 * Math.sqrt(F.pull_stiffness[k] * m);
  });
  dirty = true;
}
function command() { if (F) (L.commands || []).forEach((c, i) => { F["env.command"][i] = c.slider.value; }); }
function think(k) {  // the policy acts at the start of a control step, and on the motors after its delay
  if (k % P.every === 0) F.code.act();
  if (k % P.every === P.delay) F.code.aim();
}
function aim() {
  if (!F) return;
  for (const j of L.joints) F.aim[j.v] = j.q === null ? j.slider.value : j.slider.value - F.home[j.q];
  if (F.payload_mass) { F.base_parameters.set(L.load.own); F.unit_payload.set(L.load.unit); F.payload_mass[0] = sliders.load ? sliders.load.value : 0; }
  F.code.aim(); dirty = true;
}

// -- simulation ------------------------------------------------------------------------------
function restart() {
  steps = due = 0; kept = 1; wall = gone = 0; solved = worst = 0;
  if (!F) return;
  F.q.set(L.start.q); F.v.set(L.start.v); F.home.set(P ? P.home : L.start.q); F.h[0] = h; F.mobility.set(L.mobility);
  F.pulled.fill(0); if (F["law.motors"]) F["law.motors"].set(L.motors);
  if (P) { F["env.action"].fill(0); F["env.previous_action"].fill(0); F.aim.fill(0); command(); }
  controls(); aim(); F.code.begin();
  for (const reason in heard) delete heard[reason];
  note("", L.floats && L.gravity && !G && !(sliders.gravity.value > 0) ? "The floor has no contact, so gravity starts at zero. Pull the robot, or increase gravity and it falls." : "");
  shown.forEach(x => x.plot.clear()); look(); record(); dirty = true;
}
function advance(count, budget = Infinity) {  // at most `count` steps, within `budget` milliseconds
  const begin = performance.now();
  const step = $("ends").checked ? F.code.blocked : F.code.step;
  let done = 0;
  while (done < count) { if (P) think(steps + done); step(); done++; if (!(done & 7) && performance.now() - begin > budget) break; }
  steps += done;
  if (G) unsolved();
  if (!F.Q.every(isFinite) || !F.V.every(isFinite)) stop("The simulation diverged: the gains are too large for this step size. Reduce them and restart.");
  else if (F.S && F.S[0] > L.strain) stop("The loops reached a singular configuration, where their forces are not unique. Restart, or pull another point.");
  return done;
}
let solved = 0, worst = 0;  // the sum of the squares of residuals so far, and the largest of a batch
function unsolved() {  // says by how much contacts violate their law
  const total = Math.max(...F["contact.total"]), residual = Math.sqrt(Math.max(0, total - solved));
  solved = total;
  if (residual > Math.max(worst, G.tolerance)) { worst = residual; note("unsolved", `Contact forces were not found exactly: they violate the law of contact by ${short(worst)} m/s.`); }
}
function stop(why) { play(false); note("stopped", why); }
function run(elapsed) {  // `elapsed` seconds of wall-clock time
  const speed = Number($("speed").value);
  due += elapsed * speed;
  const wanted = Math.floor(due / h + 1e-9), done = advance(wanted, Math.max(12, 600 * elapsed));
  due = done < wanted ? 0 : due - done * h;
  wall += elapsed * speed; gone += done * h;
  if (wall > 1) {
    kept = gone / wall; wall = gone = 0;
    note("slow", kept < 0.93 ? `This browser runs at ${(kept * speed).toFixed(2)}× of real time: the motion is correct, but slower.` : "");
  }
  record();
}
function look() {
  F.code.look(); bodies = [];
  for (let k = 0; k < S.bodies.length; k++) {
    const c = j => turnedUp([F.R[9 * k + j], F.R[9 * k + 3 + j], F.R[9 * k + 6 + j]]);
    bodies.push(frameOf(c(0), c(1), c(2), turnedUp(F.p.slice(3 * k, 3 * k + 3))));
  }
}
const on = k => k < 0 ? IDENTITY : bodies[k];
closest = 2.3;  // space for the motion to come
moments = () => bodies.length ? [on] : [];

// -- pulling ---------------------------------------------------------------------------------
grasp = e => {
  const found = F && touchedNear(e, on);
  if (!found) return null;
  const k = found.body, M = on(k), away = unit(sub(camera.at, view().eye));
  held = { body: k, hand: found.point };
  F.pulled.fill(0); F.pulled[k] = 1; F.pull_point.set(back(M, sub(found.point, origin(M)))); F.pull_target.set(turnedBack(found.point));
  if (!heard.stopped) play(true);
  note("", "");
  return {
    move(e) {  // in the plane through the pulled point, perpendicular to the view
      const [eye, way] = ray(e), far = dot(sub(held.hand, eye), away) / dot(way, away);
      if (far > 0) { held.hand = add(eye, way, far); F.pull_target.set(turnedBack(held.hand)); }
    },
    end() { F.pulled.fill(0); held = null; $("newtons").textContent = ""; dirty = true; },
  };
};
canvas.addEventListener("pointermove", e => { if (F && !e.buttons && e.pointerType === "mouse") canvas.classList.toggle("over", !!touched(e, on)); });

// -- drawing ---------------------------------------------------------------------------------
const triples = (name, k) => turnedUp(F[name].subarray(3 * k, 3 * k + 3));
const touching = G ? glows(G.radii, turnedUp(G.normal)) : null;
function groundItems() {  // feet that touch, and the forces on them
  const at = G.names.map((_, k) => triples("touching_points", k)), force = G.names.map((_, k) => triples("ground_forces", k)), sizes = force.map(f => Math.hypot(...f));
  const modes = F["contact.mode"], arrows = $("forces").checked ? force.flatMap((f, k) => modes[k] ? arrowItems(at[k], f, Math.min(1.5, sizes[k] / G.weight) * radius) : []) : [];
  feet.forEach(({ chip, value, row, own }) => {
    const mode = own.some(k => modes[k] === 2) ? 2 : own.some(k => modes[k] === 1) ? 1 : 0;
    const total = own.reduce((sum, k) => add(sum, force[k]), [0, 0, 0]);
    chip.style.background = TOUCH[mode]; value.textContent = mode ? `${short(Number(Math.hypot(...total).toPrecision(3)))} N` : "–"; row.style.display = feet.length > MAX_ROWS && !mode ? "none" : "";
  });
  return [...touching(at, modes), ...arrows];
}
function items() {
  const list = solidItems(on, $("frames").checked);
  if (sliders.load && sliders.load.value > 0) {  // the payload is a ball with the density of aluminium
    const M = on(L.load.body), r = Math.cbrt(sliders.load.value * 3 / (4 * Math.PI * 2700)), o = add(forth(M, L.load.at), origin(M));
    list.push({ solid: ball, paint: linear("#7d8794"), matrix: frameOf([r, 0, 0], [0, r, 0], [0, 0, r], o) });
  }
  if (held) list.push(...arrowItems(turnedUp(F.point), sub(held.hand, turnedUp(F.point)), Math.hypot(...sub(held.hand, turnedUp(F.point)))));
  if (G) list.push(...groundItems());
  if (L.contacts.length && $("forces").checked) {
    const force = L.contacts.map((c, i) => turnedUp(F.forces.slice(6 * i + 3, 6 * i + 6)).map(x => c.sign * x)), sizes = force.map(f => Math.hypot(...f));
    strongest = Math.max(strongest * 0.995, ...sizes, 1e-9);
    L.contacts.forEach((c, i) => list.push(...arrowItems(add(forth(on(c.body), c.at), origin(on(c.body))), force[i], sizes[i] / strongest * radius * 0.4)));
    document.querySelectorAll("#legend b").forEach((cell, i) => { cell.textContent = `${sizes[i].toFixed(1)} N`; });
  }
  return list;
}
const ball = solids.sphere([1]);
let strongest = 1e-9, anchor = null;
function follow() {  // the camera follows a floating robot
  if (!L.floats) return;
  const here = origin(bodies[0]);
  if (anchor) {
    let moved = sub(here, anchor);
    if (G) { const n = turnedUp(G.normal); moved = add(moved, n, -0.8 * dot(n, moved)); }  // a fall is seen
    camera.at = add(camera.at, moved); focus = add(focus, moved);
  }
  anchor = here;
}
function label() {
  if (!held) return;
  const T = view().eyes, p = held.hand, q = [0, 1, 3].map(r => T[r] * p[0] + T[4 + r] * p[1] + T[8 + r] * p[2] + T[12 + r]);
  const W = canvas.clientWidth, H = canvas.clientHeight, mark = $("newtons");
  mark.textContent = `${short(Number(Math.hypot(...F.pull).toPrecision(3)))} N`;
  mark.style.left = `${Math.min(W - 80, Math.max(0, (q[0] / q[2] + 1) * W / 2))}px`; mark.style.top = `${Math.min(H - 12, Math.max(12, (1 - q[1] / q[2]) * H / 2))}px`;
}
const C = L.colors;
const shown = [["energy", "J", ["total", "kinetic", "potential"], () => [F.energy[0], F.kinetic_energy[0], F.potential_energy[0]]]];
if (L.curves.length) shown.push(["joint coordinates", "rad, m", L.curves.map(x => x[0]), () => L.curves.map(x => F.Q[x[1]])]);
if (L.torques.length) shown.push(["motor torques", "Nm, N", L.torques.map(x => x[0]), () => L.torques.map(x => F.torque[x[1]])]);
shown.forEach((x, i) => { shown[i] = { plot: trace($("plots"), x[0], x[1], x[2], C), values: x[3] }; });
function record() { for (const x of shown) x.plot.put(steps * h, x.values()); }
let plotted = 0, seen = true;  // the simulation pauses while the page is not visible, e.g. in an iframe
new IntersectionObserver(all => { seen = all[all.length - 1].isIntersecting; }).observe(document.querySelector("main"));
function paint(stamp) {
  const elapsed = Math.min(0.25, Math.max(0, (stamp - before) / 1000 || 0));
  before = stamp;
  if (F && playing && seen) { run(elapsed); dirty = true; }
  if (F && dirty && seen) {
    dirty = false; look(); follow(); draw(items(), view()); label();
    $("clock").textContent = `${(steps * h).toFixed(2)} s`;
    if (stamp - plotted > 45 || !playing) { plotted = stamp; if (document.querySelector("main").className !== "alone") for (const x of shown) x.plot.paint(steps * h); }
    window.psiphi.drawn = steps * h;
  }
  requestAnimationFrame(paint);
}
function play(on) { playing = on; $("play").textContent = playing ? "❚❚" : "▶"; before = performance.now(); }

$("play").addEventListener("click", () => { if (!heard.stopped) play(!playing); });
$("one").addEventListener("click", () => { play(false); if (F && !heard.stopped) { advance(Math.max(1, Math.round(0.01 / h))); look(); record(); dirty = true; } });
$("again").addEventListener("click", () => { restart(); play(true); });
$("panel").addEventListener("click", () => { const shut = document.querySelector("main").classList.toggle("alone"); $("panel").setAttribute("aria-expanded", String(!shut)); dirty = true; });
for (const id of ["frames", "forces"]) $(id).addEventListener("change", () => { dirty = true; });
canvas.addEventListener("keydown", e => {
  const way = { ArrowLeft: [0.12, 0], ArrowRight: [-0.12, 0], ArrowUp: [0, 0.08], ArrowDown: [0, -0.08] }[e.key];
  if (way) { camera.turn += way[0]; camera.tilt = Math.min(1.55, Math.max(-1.2, camera.tilt + way[1])); dirty = true; e.preventDefault(); }
  if (e.key === "+" || e.key === "-") { camera.far *= e.key === "+" ? 0.9 : 1.11; dirty = true; }
});
document.addEventListener("keydown", e => {
  if (["SELECT", "BUTTON", "SUMMARY"].includes(e.target.tagName) || e.target.type === "checkbox" || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === " ") { $("play").click(); e.preventDefault(); }
  else if (e.key === ".") $("one").click();
  else if (e.key === "r") $("again").click();
});
$("ends").checked = L.ends; if (L.ends === null) $("ends-pick").style.display = "none";
if (!L.contacts.length && !G) $("forces-pick").style.display = "none";
function legendRow(text) {
  const row = document.createElement("div"), chip = document.createElement("span"), name = document.createElement("span"), value = document.createElement("b");
  chip.className = "chip"; chip.style.background = "#d4322c"; name.textContent = text; row.append(chip, name, value); $("legend").append(row);
  return { row, chip, value };
}
for (const c of L.contacts) legendRow(c.name);
const MAX_ROWS = 4;  // of links that may touch the ground; of more, those that touch it are listed
const feet = G ? [...new Set(G.bodies)].map(body => {
  const own = G.names.map((_, k) => k).filter(k => G.bodies[k] === body);
  return { own, ...legendRow(own.length > 1 ? S.bodies[body] : G.names[own[0]]) };
}) : [];
if (G) {
  $("legend").append(touchKeys());
  document.querySelectorAll("#modes label").forEach(x => { if (["pd", "float"].includes(x.firstElementChild.value)) x.remove(); });
}
if (location.hash.includes("alone")) $("panel").click();
made(); controls(); resize();
window.psiphi = { camera, drawn: null, scene: S, sliders, get steps() { return steps; }, get held() { return held; }, get memory() { return F; }, get kept() { return kept; }, advance, restart, play, controls, aim };
async function begin() {
  if (typeof WebAssembly !== "object") throw new Error("WebAssembly is missing");
  const { instance } = await WebAssembly.instantiate(bytes(L.code), { m: { sin: Math.sin, cos: Math.cos } });
  F = { code: instance.exports };
  for (const [name, [at, size]] of Object.entries(L.places)) F[name] = new Float64Array(instance.exports.memory.buffer, at, size);
  restart(); reset(); play(!location.hash.includes("paused") && !matchMedia("(prefers-reduced-motion: reduce)").matches);
  requestAnimationFrame(paint);
}
begin().catch(error => { $("still").hidden = false; note("stopped", `The robot cannot run in this browser (${error.message}): this is a still picture.`); window.psiphi.drawn = -1; });

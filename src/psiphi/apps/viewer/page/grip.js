// Picking: the nearest triangle under a pointer, and its body.
function hit(g, o, d) {  // distance along a ray to a solid, in the solid's frame (Moller-Trumbore)
  let near = Infinity;
  for (let t = 0; t < g.i.length; t += 3) {
    const [a, b, c] = [3 * g.i[t], 3 * g.i[t + 1], 3 * g.i[t + 2]];
    const e = [g.p[b] - g.p[a], g.p[b + 1] - g.p[a + 1], g.p[b + 2] - g.p[a + 2]], f = [g.p[c] - g.p[a], g.p[c + 1] - g.p[a + 1], g.p[c + 2] - g.p[a + 2]];
    const n = cross(d, f), det = dot(e, n);
    if (Math.abs(det) < 1e-14) continue;
    const s = [o[0] - g.p[a], o[1] - g.p[a + 1], o[2] - g.p[a + 2]], u = dot(s, n) / det, m = cross(s, e), v = dot(d, m) / det, x = dot(f, m) / det;
    if (u >= 0 && v >= 0 && u + v <= 1 && x > 1e-9 && x < near) near = x;
  }
  return near;
}
const back = (M, v) => [0, 1, 2].map(c => M[4 * c] * v[0] + M[4 * c + 1] * v[1] + M[4 * c + 2] * v[2]);
const forth = (M, v) => [0, 1, 2].map(r => M[r] * v[0] + M[4 + r] * v[1] + M[8 + r] * v[2]);
const origin = M => [M[12], M[13], M[14]];
function touched(e, on) {  // { body, point } or null
  const [eye, way] = ray(e);
  let found = null, near = Infinity;
  for (const x of pieces) {
    const M = times(on(x.body), x.local), far = hit(x.solid, back(M, sub(eye, origin(M))), back(M, way));
    if (far < near) { near = far; found = { body: x.body, point: add(eye, way, far) }; }
  }
  return found && found.body >= 0 ? found : null;
}
function touchedNear(e, on) {  // a finger also picks points nearby
  const around = e.pointerType === "mouse" ? [[0, 0]] : [[0, 0], [12, 0], [-12, 0], [0, 12], [0, -12], [20, 20], [-20, 20], [20, -20], [-20, -20]];
  for (const [x, y] of around) { const found = touched({ clientX: e.clientX + x, clientY: e.clientY + y }, on); if (found) return found; }
  return null;
}

// Solids as triangles with normals: {p: points, n: normals, i: indices}.
function arc(r0, z0, r, from, to, steps) {  // an arc in the half plane (radius, z), with normals
  const out = [];
  for (let k = 0; k <= steps; k++) {
    const a = from + (to - from) * k / steps;
    out.push([r0 + r * Math.cos(a), z0 + r * Math.sin(a), Math.cos(a), Math.sin(a)]);
  }
  return out;
}
function revolved(runs, around = 40) {  // a surface of revolution about z; profile: runs of [radius, z, normal radius, normal z], from top to bottom
  const g = { p: [], n: [], i: [] };
  for (const run of runs) {
    const start = g.p.length / 3;
    for (const [r, z, nr, nz] of run) for (let k = 0; k <= around; k++) {
      const a = 2 * Math.PI * k / around, c = Math.cos(a), s = Math.sin(a);
      g.p.push(r * c, r * s, z); g.n.push(nr * c, nr * s, nz);
    }
    for (let j = 0; j + 1 < run.length; j++) for (let k = 0; k < around; k++) {
      const a = start + j * (around + 1) + k, b = a + around + 1;
      g.i.push(a, b, a + 1, a + 1, b, b + 1);
    }
  }
  return g;
}
const Q = Math.PI / 2;
const solids = {
  sphere: ([r]) => revolved([arc(0, 0, r, Q, -Q, 20)]),
  capsule: ([r, l]) => revolved([[...arc(0, l / 2, r, Q, 0, 12), ...arc(0, -l / 2, r, 0, -Q, 12)]]),
  cylinder([r, l]) {
    const h = l / 2, c = Math.min(r, h) * 0.16;
    return revolved([[[0, h, 0, 1], [r - c, h, 0, 1]],
      [...arc(r - c, h - c, c, Q, 0, 5), ...arc(r - c, c - h, c, 0, -Q, 5)],
      [[r - c, -h, 0, -1], [0, -h, 0, -1]]]);
  },
  cone([r, l]) {
    const n = Math.hypot(r, l), a = l / n, b = r / n;
    return revolved([[[1e-6, l, a, b], [r, 0, a, b]], [[r, 0, 0, -1], [0, 0, 0, -1]]], 28);
  },
  shaft: ([r]) => revolved([[[r, 1, 1, 0], [r, 0, 1, 0]], [[r, 0, 0, -1], [0, 0, 0, -1]]], 24),
  box(size) {  // with rounded edges: each grid point is moved outward from an inner box
    const h = size.map(x => x / 2), c = Math.min(...h) * 0.14, inner = h.map(x => x - c), g = { p: [], n: [], i: [] };
    const lines = k => { const e = [0, 0.3, 0.7, 1].map(x => x * c), up = e.map(x => inner[k] + x); return [...up.map(x => -x).reverse(), ...up]; };
    for (let k = 0; k < 3; k++) for (const side of [-1, 1]) {
      const u = (k + 1) % 3, v = (k + 2) % 3, us = lines(u), vs = lines(v), start = g.p.length / 3;
      for (const a of us) for (const b of vs) {
        const x = [0, 0, 0], m = [0, 0, 0];
        x[k] = side * h[k]; x[u] = a; x[v] = b;
        for (let j = 0; j < 3; j++) m[j] = Math.max(-inner[j], Math.min(inner[j], x[j]));
        const n = unit(sub(x, m)), p = add(m, n, c);
        g.p.push(...p); g.n.push(...n);
      }
      for (let i = 0; i < 7; i++) for (let j = 0; j < 7; j++) {
        const a = start + 8 * i + j, b = a + 8;
        side > 0 ? g.i.push(a, b, a + 1, a + 1, b, b + 1) : g.i.push(a, a + 1, b, a + 1, b + 1, b);
      }
    }
    return g;
  },
};
function bytes(text) {
  const s = atob(text), out = new Uint8Array(s.length);
  for (let i = 0; i < s.length; i++) out[i] = s.charCodeAt(i);
  return out.buffer;
}
function meshed(m) {  // vertices get one normal per smooth group of faces: edges sharper than 41 degrees stay sharp
  const q = new Uint16Array(bytes(m.vertices)), f = new Uint32Array(bytes(m.faces)), g = { p: [], n: [], i: [] };
  const point = i => [0, 1, 2].map(k => m.low[k] + m.step[k] * q[3 * i + k]);
  const normals = [], around = new Map();
  for (let t = 0; t < f.length; t += 3) {
    const [a, b, c] = [point(f[t]), point(f[t + 1]), point(f[t + 2])];
    normals.push(cross(sub(b, a), sub(c, a)));
    for (let k = 0; k < 3; k++) { if (!around.has(f[t + k])) around.set(f[t + k], []); around.get(f[t + k]).push(t / 3); }
  }
  for (let t = 0; t < f.length; t += 3) {
    const own = unit(normals[t / 3]);
    for (let k = 0; k < 3; k++) {
      let n = [0, 0, 0];
      for (const other of around.get(f[t + k])) if (dot(unit(normals[other]), own) > 0.75) n = add(n, normals[other]);
      g.i.push(g.p.length / 3); g.p.push(...point(f[t + k])); g.n.push(...unit(n));
    }
  }
  return g;
}

// 4x4 matrices in column-major order, and quaternions x y z w.
const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const add = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = a => { const n = Math.hypot(...a) || 1; return [a[0] / n, a[1] / n, a[2] / n]; };

function times(a, b) {
  const c = new Float32Array(16);
  for (let j = 0; j < 4; j++) for (let i = 0; i < 4; i++) {
    let s = 0;
    for (let k = 0; k < 4; k++) s += a[4 * k + i] * b[4 * j + k];
    c[4 * j + i] = s;
  }
  return c;
}
function placed(p, i = 0) {  // the matrix of a pose x y z, qx qy qz qw
  const x = p[i + 3], y = p[i + 4], z = p[i + 5], w = p[i + 6];
  return new Float32Array([
    1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w), 0,
    2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w), 0,
    2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y), 0,
    p[i], p[i + 1], p[i + 2], 1]);
}
const IDENTITY = placed([0, 0, 0, 0, 0, 0, 1]);
function frameOf(x, y, z, o) {
  return new Float32Array([...x, 0, ...y, 0, ...z, 0, ...o, 1]);
}
function along(direction, origin, wide, long) {  // a frame with z along a direction, scaled
  const z = unit(direction), x = unit(cross(Math.abs(z[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0], z)), y = cross(z, x);
  return frameOf(x.map(v => v * wide), y.map(v => v * wide), z.map(v => v * long), origin);
}
function looking(eye, target, up) {
  const z = unit(sub(eye, target)), x = unit(cross(up, z)), y = cross(z, x);
  return new Float32Array([x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0, -dot(x, eye), -dot(y, eye), -dot(z, eye), 1]);
}
function perspective(fov, aspect, near, far) {
  const f = 1 / Math.tan(fov / 2);
  return new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0]);
}
function box(r, near, far) {  // orthographic
  return new Float32Array([1 / r, 0, 0, 0, 0, 1 / r, 0, 0, 0, 0, 2 / (near - far), 0, 0, 0, (far + near) / (near - far), 1]);
}
function between(a, b, i, s) {  // interpolates the poses a and b at s in [0, 1]
  let d = 0, sign = 1;
  for (let k = 3; k < 7; k++) d += a[i + k] * b[i + k];
  if (d < 0) sign = -1;
  const out = new Array(7);
  for (let k = 0; k < 3; k++) out[k] = a[i + k] + s * (b[i + k] - a[i + k]);
  let n = 0;
  for (let k = 3; k < 7; k++) { out[k] = (1 - s) * a[i + k] + s * sign * b[i + k]; n += out[k] * out[k]; }
  n = Math.sqrt(n) || 1;
  for (let k = 3; k < 7; k++) out[k] /= n;
  return out;
}

// Two renderers of a list of {solid, matrix, paint}: WebGL 2 with shadows, and triangles sorted by distance.
const SUN = unit([0.45, -0.55, 1.0]);
const linear = hex => [1, 3, 5].map(i => 0.8 * Math.pow(parseInt(hex.slice(i, i + 2), 16) / 255, 2.2));  // 0.8: leaves a margin for highlights

const VERTEX = `#version 300 es
in vec3 point; in vec3 normal; uniform mat4 eyes, model, light; out vec3 P, N; out vec4 L;
void main() { vec4 w = model * vec4(point, 1.0); P = w.xyz; N = mat3(model) * normal; L = light * w; gl_Position = eyes * w; }`;
const SHADE = `#version 300 es
precision highp float; precision highp sampler2DShadow;
in vec3 P, N; in vec4 L; out vec4 color;
uniform vec3 paint, eye, sun; uniform sampler2DShadow shadow; uniform float floorSize, cell, solid; uniform vec3 middle;
float lit(float slope) {
  vec3 s = L.xyz / L.w * 0.5 + 0.5;
  if (any(lessThan(s, vec3(0.0))) || any(greaterThan(s, vec3(1.0)))) return 1.0;
  float sum = 0.0, e = 1.0 / 2048.0;
  for (int i = -2; i <= 2; i++) for (int j = -2; j <= 2; j++)
    sum += texture(shadow, vec3(s.xy + vec2(i, j) * e, s.z - 0.0012 - 0.003 * slope));
  return sum / 25.0;
}
float lines(vec2 x) { vec2 d = abs(fract(x - 0.5) - 0.5) / fwidth(x); return 1.0 - min(min(d.x, d.y), 1.0); }
void main() {
  if (floorSize > 0.0) {
    float far = length(P.xy - middle.xy) / floorSize, fade = 1.0 - smoothstep(0.25, 1.0, far);
    float ink = max(0.30 * lines(P.xy / cell), 0.10 * lines(P.xy / cell * 5.0));
    float dark = 0.42 * (1.0 - lit(0.0));
    vec3 c = mix(vec3(0.93, 0.945, 0.96), vec3(0.45, 0.52, 0.62), ink);
    c = mix(c, vec3(0.25, 0.29, 0.36), dark);
    color = vec4(c, 1.0) * (fade * (eye.z > P.z ? 1.0 : 0.25)); return;
  }
  vec3 n = normalize(N), v = normalize(eye - P), h = normalize(v + sun);
  if (dot(n, v) < 0.0) n = -n;
  float d = max(dot(n, sun), 0.0), s = d > 0.0 ? lit(1.0 - d) : 0.0;
  vec3 sky = mix(vec3(0.20, 0.19, 0.18), vec3(0.52, 0.57, 0.66), n.z * 0.5 + 0.5);
  vec3 c = paint * (sky + 0.95 * d * s * vec3(1.0, 0.97, 0.91) + 0.12 * max(dot(n, v), 0.0));
  c += 0.22 * s * pow(max(dot(n, h), 0.0), 48.0) + 0.10 * pow(1.0 - max(dot(n, v), 0.0), 4.0) * vec3(0.8, 0.9, 1.0);
  color = vec4(pow(c / (1.0 + 0.18 * c), vec3(1.0 / 2.2)), 1.0) * solid;
}`;
const NOTHING = `#version 300 es
precision highp float; void main() {}`;

function webgl(canvas, changed) {  // changed() asks for another frame
  const gl = canvas.getContext("webgl2", { antialias: true, alpha: true, preserveDrawingBuffer: true });
  if (!gl) return null;
  const made = () => { try { return resources(gl, canvas); } catch (error) { if (gl.isContextLost()) return null; throw error; } };
  let render = made();  // null while the context is lost: after sleep, or a reset of the driver
  canvas.addEventListener("webglcontextlost", e => { e.preventDefault(); render = null; });  // preventDefault: the browser restores it
  canvas.addEventListener("webglcontextrestored", () => { render = made(); changed(); });
  return (items, view) => { if (render) render(items, view); };
}
function resources(gl, canvas) {  // shaders, shadow map and buffers of one context, and the function that draws with them
  const shader = (kind, text) => { const s = gl.createShader(kind); gl.shaderSource(s, text); gl.compileShader(s); if (!gl.getShaderParameter(s, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(s)); return s; };
  function program(fragment) {
    const p = gl.createProgram();
    gl.attachShader(p, shader(gl.VERTEX_SHADER, VERTEX)); gl.attachShader(p, shader(gl.FRAGMENT_SHADER, fragment));
    gl.bindAttribLocation(p, 0, "point"); gl.bindAttribLocation(p, 1, "normal"); gl.linkProgram(p);
    const at = {}; for (let i = 0; i < gl.getProgramParameter(p, gl.ACTIVE_UNIFORMS); i++) { const n = gl.getActiveUniform(p, i).name; at[n] = gl.getUniformLocation(p, n); }
    return { p, at };
  }
  const shade = program(SHADE), depth = program(NOTHING), SIZE = 2048;
  const map = gl.createTexture(), target = gl.createFramebuffer();
  gl.bindTexture(gl.TEXTURE_2D, map);
  gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, SIZE, SIZE);
  for (const [k, v] of [[gl.TEXTURE_MIN_FILTER, gl.LINEAR], [gl.TEXTURE_MAG_FILTER, gl.LINEAR], [gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE], [gl.TEXTURE_COMPARE_FUNC, gl.LEQUAL], [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE]]) gl.texParameteri(gl.TEXTURE_2D, k, v);
  gl.bindFramebuffer(gl.FRAMEBUFFER, target);
  gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, map, 0);
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  const ready = new Map();
  function upload(g) {
    if (ready.has(g)) return ready.get(g);
    const vao = gl.createVertexArray(); gl.bindVertexArray(vao);
    [g.p, g.n].forEach((data, k) => { gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer()); gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(data), gl.STATIC_DRAW); gl.enableVertexAttribArray(k); gl.vertexAttribPointer(k, 3, gl.FLOAT, false, 0, 0); });
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer()); gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(g.i), gl.STATIC_DRAW);
    ready.set(g, { vao, count: g.i.length }); return ready.get(g);
  }
  const draw = (item, at) => { const { vao, count } = upload(item.solid); gl.bindVertexArray(vao); gl.uniformMatrix4fv(at.model, false, item.matrix); if (at.paint) gl.uniform3fv(at.paint, item.paint); gl.drawElements(gl.TRIANGLES, count, gl.UNSIGNED_INT, 0); };
  return (items, view) => {
    gl.enable(gl.DEPTH_TEST); gl.disable(gl.BLEND);
    gl.bindFramebuffer(gl.FRAMEBUFFER, target); gl.viewport(0, 0, SIZE, SIZE); gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.useProgram(depth.p); gl.uniformMatrix4fv(depth.at.eyes, false, view.light);
    for (const item of items) if (!item.flat) draw(item, depth.at);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null); gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0); gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.useProgram(shade.p);
    gl.uniformMatrix4fv(shade.at.eyes, false, view.eyes); gl.uniformMatrix4fv(shade.at.light, false, view.light);
    gl.uniform3fv(shade.at.eye, view.eye); gl.uniform3fv(shade.at.sun, SUN); gl.uniform3fv(shade.at.middle, view.middle);
    gl.uniform1f(shade.at.cell, view.cell); gl.uniform1f(shade.at.floorSize, 0); gl.uniform1f(shade.at.solid, 1);
    for (const item of items) if (!item.floor) draw(item, shade.at);
    gl.enable(gl.BLEND); gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.depthFunc(gl.GREATER); gl.depthMask(false); gl.uniform1f(shade.at.solid, 0.38);
    for (const item of items) if (item.through) draw(item, shade.at);  // hidden arrows and frames are drawn faintly
    gl.depthFunc(gl.LEQUAL); gl.depthMask(true); gl.uniform1f(shade.at.solid, 1);
    for (const item of items) if (item.floor) { gl.uniform1f(shade.at.floorSize, item.floor); draw(item, shade.at); }
  };
}
function painter(canvas) {  // for browsers without WebGL 2
  const pen = canvas.getContext("2d");
  return (items, view) => {
    const w = canvas.width, h = canvas.height, faces = [];
    pen.clearRect(0, 0, w, h);
    for (const { solid: g, matrix: M, paint, floor } of items) {
      if (floor) continue;
      const T = times(view.eyes, M), n = g.p.length / 3, X = new Float64Array(n), Y = new Float64Array(n), Z = new Float64Array(n);
      for (let i = 0; i < n; i++) {
        const x = g.p[3 * i], y = g.p[3 * i + 1], z = g.p[3 * i + 2], far = T[3] * x + T[7] * y + T[11] * z + T[15];
        X[i] = ((T[0] * x + T[4] * y + T[8] * z + T[12]) / far + 1) * w / 2;
        Y[i] = (1 - (T[1] * x + T[5] * y + T[9] * z + T[13]) / far) * h / 2; Z[i] = far;
      }
      for (let t = 0; t < g.i.length; t += 3) {
        const i = g.i[t], j = g.i[t + 1], k = g.i[t + 2];
        if (Z[i] <= 0 || Z[j] <= 0 || Z[k] <= 0 || (X[j] - X[i]) * (Y[k] - Y[i]) - (Y[j] - Y[i]) * (X[k] - X[i]) > 0) continue;
        const a = g.n[3 * i], b = g.n[3 * i + 1], c = g.n[3 * i + 2];
        const N = unit([M[0] * a + M[4] * b + M[8] * c, M[1] * a + M[5] * b + M[9] * c, M[2] * a + M[6] * b + M[10] * c]);
        const s = 0.45 + 0.2 * N[2] + 0.6 * Math.max(0, dot(N, SUN));
        faces.push([Z[i] + Z[j] + Z[k], X[i], Y[i], X[j], Y[j], X[k], Y[k], paint, s]);
      }
    }
    faces.sort((a, b) => b[0] - a[0]);
    for (const [, ax, ay, bx, by, cx, cy, paint, s] of faces) {
      pen.fillStyle = pen.strokeStyle = `rgb(${paint.map(x => Math.round(255 * Math.pow(Math.min(1, x * s), 1 / 2.2)))})`;
      pen.beginPath(); pen.moveTo(ax, ay); pen.lineTo(bx, by); pen.lineTo(cx, cy); pen.closePath(); pen.fill(); pen.stroke();
    }
  };
}

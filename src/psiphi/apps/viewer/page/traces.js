// Scrolling plots of the last seconds of some values.
const WINDOW = 10;
function trace(place, title, unit, names, colors) {
  const figure = document.createElement("figure"), caption = document.createElement("figcaption"), sheet = document.createElement("canvas"), keys = document.createElement("div");
  const units = document.createElement("span");
  caption.textContent = title; units.textContent = `${unit}, ${WINDOW} s`; caption.append(units); keys.className = "keys";
  sheet.setAttribute("role", "img"); sheet.setAttribute("aria-label", `${title} over time`);
  const cells = names.map((name, i) => {
    const key = document.createElement("span"), chip = document.createElement("i"), value = document.createElement("b");
    chip.className = "chip"; chip.style.background = colors[i % colors.length];
    key.append(chip, name, value); keys.append(key); return value;
  });
  figure.append(caption, sheet, keys); place.append(figure);
  const pen = sheet.getContext("2d");
  let rows = [];
  function clear() { rows = []; }
  function put(t, values) { rows.push([t, ...values]); if (rows.length > 1500) rows = rows.filter((_, i) => i % 2); while (rows.length > 2 && rows[0][0] < t - WINDOW) rows.shift(); }
  function paint(t) {
    const sharp = Math.min(2, window.devicePixelRatio || 1), W = sheet.clientWidth, H = sheet.clientHeight;
    if (!W || !H) return;
    if (sheet.width !== Math.round(W * sharp) || sheet.height !== Math.round(H * sharp)) { sheet.width = Math.round(W * sharp); sheet.height = Math.round(H * sharp); }
    pen.setTransform(sharp, 0, 0, sharp, 0, 0); pen.clearRect(0, 0, W, H);
    let low = Infinity, high = -Infinity;
    for (const row of rows) for (let i = 1; i < row.length; i++) if (isFinite(row[i])) { low = Math.min(low, row[i]); high = Math.max(high, row[i]); }
    if (!(high >= low)) { low = -1; high = 1; }
    const least = 1e-3 * Math.max(1, Math.abs(low), Math.abs(high)), middle = (low + high) / 2, half = Math.max(least, (high - low) / 2) * 1.12;
    low = middle - half; high = middle + half;
    const step = Math.pow(10, Math.floor(Math.log10(2 * half / 2))), fine = [1, 2, 5, 10].map(k => k * step).find(s => 2 * half / s <= 4.2) || 10 * step;
    const left = 44, y = v => H - 4 - (v - low) / (high - low) * (H - 8), x = s => left + (s - (t - WINDOW)) / WINDOW * (W - left - 4);
    pen.font = "11px sans-serif"; pen.textAlign = "right"; pen.textBaseline = "middle"; pen.lineWidth = 1;
    for (let v = Math.ceil(low / fine) * fine; v <= high; v += fine) {
      pen.strokeStyle = "#e3e7ed"; pen.beginPath(); pen.moveTo(left, y(v)); pen.lineTo(W - 4, y(v)); pen.stroke();
      pen.fillStyle = "#5a6472"; pen.fillText(short(Math.abs(v) < 1e-9 * fine ? 0 : Number(v.toPrecision(6))), left - 5, Math.min(H - 6, Math.max(6, y(v))));
    }
    pen.lineWidth = 1.6; pen.lineJoin = "round";
    for (let i = 0; i < names.length; i++) {
      pen.strokeStyle = colors[i % colors.length]; pen.beginPath();
      rows.forEach((row, k) => k ? pen.lineTo(x(row[0]), y(row[i + 1])) : pen.moveTo(x(row[0]), y(row[i + 1])));
      pen.stroke();
    }
    const now = rows[rows.length - 1];
    if (now) cells.forEach((cell, i) => { const v = now[i + 1]; cell.textContent = short(Math.abs(v) < 1e-6 * half ? 0 : Number(v.toPrecision(4))); });
  }
  return { clear, put, paint };
}

// Contacts with a ground: balls about the points that touch it, green where they hold, orange where they slide.
const TOUCH = ["#9aa3ad", "#2fbf5b", "#ff9f1c"];  // contacts that are open, hold, slide
function glows(radii, normal) {  // a function of the contact points and their modes: the balls
  const balls = radii.map(r => solids.sphere([Math.max(1.04 * r, 1.6 * thin)]));
  return (at, modes) => balls.flatMap((solid, k) => modes[k] ? [{ solid, paint: linear(TOUCH[modes[k]]), matrix: frameOf([1, 0, 0], [0, 1, 0], [0, 0, 1], add(at[k], normal, radii[k])) }] : []);
}
function touchKeys() {  // what the colours mean
  const row = document.createElement("p");
  ["open", "holds", "slides"].forEach((word, k) => { const chip = document.createElement("span"); chip.className = "chip"; chip.style.background = TOUCH[k]; row.append(chip, `${word} `); });
  return row;
}

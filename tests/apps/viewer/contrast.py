"""The contrast of text on a page: the ratio of WCAG 2.1, from the colours a browser computes."""

from __future__ import annotations

from typing import Any

LEAST = 4.5  # of text of ordinary size, level AA
READ = """() => {
  const parsed = c => (c.match(/[\\d.]+/g) || []).map(Number), opaque = c => c[3] ?? 1;
  const over = (a, b) => a.slice(0, 3).map((x, i) => x * opaque(a) + b[i] * (1 - opaque(a)));
  const linear = x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  const light = c => {
    const [r, g, b] = c.map(x => linear(x / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((m, n) => n - m);
    return (x + 0.05) / (y + 0.05);
  };
  function grounds(node) {  // colours that may lie behind it: of a gradient, all that it names
    const style = getComputedStyle(node), own = parsed(style.backgroundColor);
    const drawn = style.backgroundImage.match(/rgba?\\([^)]*\\)/g);
    if (drawn) return drawn.map(parsed);
    if (own.length && opaque(own) === 1) return [own];
    const behind = node.parentElement ? grounds(node.parentElement) : [[255, 255, 255]];
    return own.length ? behind.map(b => over(own, b)) : behind;
  }
  const opacity = node => Number(getComputedStyle(node).opacity);
  const faded = node => node ? opacity(node) * faded(node.parentElement) : 1;
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement, style = getComputedStyle(node);
    const text = walk.currentNode.textContent.trim();
    if (!text || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(node.tagName)) continue;
    if (!node.checkVisibility() || !node.getClientRects().length) continue;
    const fade = faded(node), ink = parsed(node.closest("svg") ? style.fill : style.color);
    if (!fade) continue;
    const seen = [...ink.slice(0, 3), opaque(ink) * fade];
    found.push([text.slice(0, 40), Math.min(...grounds(node).map(g => ratio(over(seen, g), g)))]);
  }
  return found;
}"""


def pale(opened: Any) -> list[tuple[str, float]]:
    """(text, ratio) of what stands out too little."""
    read = opened.evaluate(READ)
    assert len(read) > 5, "there is text"
    return [(text, round(ratio, 2)) for text, ratio in read if not ratio >= LEAST]

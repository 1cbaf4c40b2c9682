// Elements without markup: text from a graph is only ever the text of an element, never HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else if (name === "text") element.textContent = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

export function clear(element) {
  element.replaceChildren();
  return element;
}

const canvas = document.createElement("canvas").getContext("2d");
const widths = new Map();

// The width of a text in a font, remembered: measuring is what costs most when a large graph is laid out.
export function widthOf(text, font) {
  const key = font + text;
  let width = widths.get(key);
  if (width === undefined) {
    canvas.font = font;
    width = canvas.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

export function shortened(text, font, room) {
  if (widthOf(text, font) <= room) return text;
  let low = 1;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (widthOf(`${text.slice(0, middle)}…`, font) <= room) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low)}…`;
}

// Settings are kept where the browser lets a page keep any: not in a sandboxed frame of a notebook.
export function remember(key, value) {
  try {
    if (value === undefined) return window.localStorage.getItem(`clew-${key}`);
    window.localStorage.setItem(`clew-${key}`, value);
  } catch {
    return null;
  }
  return value;
}

// Where everything stands. Each open box is laid out by itself, inner ones first, so that a change costs only the boxes
// around it, and closed boxes cost nothing. Values that cross the border of an open box pass through ports on it.

import dagre from "@dagrejs/dagre";
import { widthOf } from "./dom.js";

export const FONTS = {
  title: '600 13px Inter, "Segoe UI", system-ui, -apple-system, Roboto, "Helvetica Neue", sans-serif',
  small: '11px Inter, "Segoe UI", system-ui, -apple-system, Roboto, "Helvetica Neue", sans-serif',
  mono: '11px ui-monospace, "SF Mono", "JetBrains Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
};
export const HEADER = 40;
const PADDING = 18;
const MOST_PORTS = 10;
const GAPS = { nodesep: 26, ranksep: 34, edgesep: 14 };

export class Layout {
  constructor(model, lines) {
    this.model = model;
    this.lines = lines;
    this.cache = new Map();
  }

  forget(number) {
    for (let at = number; at >= 0; at = this.model.parents[at]) this.cache.delete(at);
  }

  forgetAll() {
    this.cache.clear();
  }

  // The size of what stands for a part, laid out inside if it is open.
  sizeOf(number) {
    const model = this.model;
    if (model.isBox(number) && model.isOpen(number)) {
      const inner = this.inside(number);
      return { w: inner.w, h: inner.h };
    }
    const { title, extra, second } = this.lines(number);
    const isBox = model.isBox(number);
    const copies = model.copiesOf(number) > 1;
    const first = widthOf(title, FONTS.title) + (extra ? widthOf(extra, FONTS.small) + 8 : 0) + (copies ? 48 : 0);
    const text = Math.max(first, widthOf(second, isBox ? FONTS.small : FONTS.mono)) + (isBox ? 13 : 0);
    const w = Math.min(Math.max(Math.ceil(text) + 34, 96), 280);
    return { w, h: second ? 48 : 34 };
  }

  inside(box) {
    let found = this.cache.get(box);
    if (found === undefined) {
      found = this.compute(box);
      this.cache.set(box, found);
    }
    return found;
  }

  compute(box) {
    const model = this.model;
    const items = model.items(box);
    const shown = new Set(items);
    const graph = new dagre.graphlib.Graph({ multigraph: true });
    graph.setGraph({ rankdir: "TB", ...GAPS, ranker: items.length > 60 ? "tight-tree" : "network-simplex" });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const item of items) graph.setNode(`n${item}`, { ...this.size(item) });
    const edges = this.edges(box, shown, graph);
    const ports = box === model.root ? [] : this.ports(box, shown, graph);
    dagre.layout(graph);
    return this.placed(box, items, edges, ports, graph);
  }

  size(item) {
    const { w, h } = this.sizeOf(item);
    return { width: w, height: h };
  }

  // Edges between parts of a box; where an end is open, each value has an edge of its own, to its port.
  edges(box, shown, graph) {
    const model = this.model;
    const found = new Map();
    for (const [a, b, from, to] of model.within.get(box) || []) {
      if (model.isHidden(from) || model.isHidden(to)) continue;
      const [one, other] = [model.shownFor(a), model.shownFor(b)];
      if (one === other || !shown.has(one) || !shown.has(other)) continue;
      const byValue = model.isOpen(one) || model.isOpen(other);
      const key = byValue ? `${one} ${other} ${from}` : `${one} ${other}`;
      const known = found.get(key);
      if (known) known.values.add(from);
      else found.set(key, { key, from: one, to: other, values: new Set([from]) });
    }
    for (const edge of found.values()) graph.setEdge(`n${edge.from}`, `n${edge.to}`, { weight: 2 }, edge.key);
    return [...found.values()];
  }

  ports(box, shown, graph) {
    const model = this.model;
    const found = new Map();
    const add = (side, kind, item, value, other) => {
      const seen = model.shownFor(item);
      if (!shown.has(seen) || model.isHidden(value) || model.isHidden(other)) return;
      const many = found.size >= MOST_PORTS && !found.has(`${kind}${value}`);
      const key = many ? `${kind}more` : `${kind}${value}`;
      if (!found.has(key)) found.set(key, { key, side, value, items: new Set() });
      found.get(key).items.add(seen);
    };
    for (const [item, from, to] of model.entering.get(box) || []) add("top", "i", item, from, to);
    for (const [item, from, to] of model.leaving.get(box) || []) add("bottom", "o", item, from, to);
    if (found.size) this.placePorts([...found.values()], graph);
    return [...found.values()];
  }

  // Ports hang on two points above and below, so that they come first and last.
  placePorts(ports, graph) {
    for (const port of ports) {
      const name = `p${port.key}`;
      const anchor = `a${port.side}`;
      graph.setNode(name, { width: 10, height: 1 });
      graph.setNode(anchor, { width: 1, height: 1 });
      const isTop = port.side === "top";
      graph.setEdge(isTop ? anchor : name, isTop ? name : anchor, { weight: 20 }, "anchor");
      for (const item of port.items) {
        graph.setEdge(isTop ? name : `n${item}`, isTop ? `n${item}` : name, { weight: 1 }, port.key);
      }
    }
  }

  placed(box, items, edges, ports, graph) {
    const places = items.map((item) => ({ item, ...corner(graph.node(`n${item}`)) }));
    const used = places.length ? places : [{ x: 0, y: 0, w: 80, h: 10 }];
    const header = box === this.model.root ? 0 : HEADER;
    const padding = box === this.model.root ? 0 : PADDING;
    const xs = ports.map((port) => graph.node(`p${port.key}`).x);
    const lanes = edges.flatMap((edge) => bends(graph.edge(`n${edge.from}`, `n${edge.to}`, edge.key)).map((point) => point.x));
    const left = Math.min(...used.map((one) => one.x), ...xs, ...lanes) - padding;
    const right = Math.max(...used.map((one) => one.x + one.w), ...xs, ...lanes) + padding;
    const room = ports.length ? 14 : 0;
    const top = Math.min(...used.map((one) => one.y)) - header - padding / 2 - room;
    const bottom = Math.max(...used.map((one) => one.y + one.h)) + padding + room;
    const wanted = header ? this.headerWidth(box) : 0;
    const extra = Math.max(wanted - (right - left), 0) / 2;
    const move = (point) => ({ x: point.x - left + extra, y: point.y - top });
    for (const place of places) Object.assign(place, move(place));
    const h = bottom - top;
    const w = right - left + 2 * extra;
    const byItem = new Map(places.map((place) => [place.item, place]));
    for (const port of ports) port.x = graph.node(`p${port.key}`).x - left + extra;
    const lines = edges.map((edge) => this.line(edge, byItem, bends(graph.edge(`n${edge.from}`, `n${edge.to}`, edge.key)).map(move)));
    for (const port of ports) lines.push(...this.portLines(port, byItem, graph, move, header, h));
    return { w, h, places, lines, ports: new Map(ports.map((port) => [port.key, port])) };
  }

  headerWidth(box) {
    const { title, second } = this.lines(box);
    return widthOf(title, FONTS.title) + widthOf(second, FONTS.small) + (this.model.copiesOf(box) > 1 ? 190 : 76);
  }

  line(edge, byItem, points) {
    const [one, other] = [byItem.get(edge.from), byItem.get(edge.to)];
    const value = [...edge.values][0];
    const start = { x: one.x + this.portAt(edge.from, "o", value, one.w), y: one.y + one.h };
    const end = { x: other.x + this.portAt(edge.to, "i", value, other.w), y: other.y };
    return { from: edge.from, to: edge.to, values: [...edge.values], points: [start, ...points, end] };
  }

  portAt(number, kind, value, width) {
    if (!this.model.isBox(number) || !this.model.isOpen(number)) return width / 2;
    const ports = this.inside(number).ports;
    const port = ports.get(`${kind}${value}`) || ports.get(`${kind}more`);
    return port ? port.x : width / 2;
  }

  portLines(port, byItem, graph, move, header, height) {
    const isTop = port.side === "top";
    return [...port.items].map((item) => {
      const place = byItem.get(item);
      const at = isTop ? "i" : "o";
      const inner = { x: place.x + this.portAt(item, at, port.value, place.w), y: isTop ? place.y : place.y + place.h };
      const edge = isTop ? graph.edge(`p${port.key}`, `n${item}`, port.key) : graph.edge(`n${item}`, `p${port.key}`, port.key);
      const border = { x: port.x, y: isTop ? 0 : height };
      const lane = { x: port.x, y: isTop ? header : height - 6 };
      const middle = bends(edge).map(move);
      const points = isTop ? [border, lane, ...middle, inner] : [inner, ...middle, lane, border];
      return { from: isTop ? null : item, to: isTop ? item : null, values: [port.value], points, isPort: true };
    });
  }
}

const corner = (node) => ({ x: node.x - node.width / 2, y: node.y - node.height / 2, w: node.width, h: node.height });

// The bends of an edge without its ends, which are put on ports.
const bends = (edge) => (edge.points || []).slice(1, -1);

// A line through points that leaves and enters downwards.
export function curve(points) {
  const parts = [`M${round(points[0].x)},${round(points[0].y)}`];
  for (let place = 1; place < points.length; place++) {
    const [a, b] = [points[place - 1], points[place]];
    if (Math.abs(a.x - b.x) < 0.5) parts.push(`L${round(b.x)},${round(b.y)}`);
    else {
      const pull = Math.max((b.y - a.y) / 2, 8);
      parts.push(`C${round(a.x)},${round(a.y + pull)} ${round(b.x)},${round(b.y - pull)} ${round(b.x)},${round(b.y)}`);
    }
  }
  return parts.join("");
}

const round = (number) => Math.round(number * 10) / 10;

// Draws what is open, and lets people move around in it. Only what lies in the window is in the document.

import { shortened, svg, widthOf } from "./dom.js";
import { FONTS, HEADER, Layout, curve } from "./layout.js";

const MARGIN = 0.35;
const ZOOMS = [0.02, 3];

export class Scene {
  constructor(app, model, host, label) {
    this.app = app;
    this.model = model;
    this.host = host;
    this.layout = new Layout(model, (number) => app.lines(model, number));
    this.view = { x: 0, y: 0, k: 1 };
    this.mounted = new Map();
    this.svg = svg("svg", { class: "scene", role: "group", "aria-label": label, tabindex: -1 });
    this.world = svg("g", { class: "world" });
    this.levels = Array.from({ length: 24 }, () => svg("g"));
    this.edgeLayer = svg("g", { class: "edges", "aria-hidden": "true" });
    this.cardLayer = svg("g", { class: "cards" });
    this.labelLayer = svg("g", { class: "labels", "aria-hidden": "true" });
    this.world.append(svg("g", {}, ...this.levels), this.edgeLayer, this.cardLayer, this.labelLayer);
    this.svg.append(marker(), this.world);
    host.append(this.svg);
    this._listen();
    new ResizeObserver(() => this.schedule()).observe(host);
  }

  // ---- what is drawn ----

  relayout() {
    this.drawn = [];
    this.at = new Map();
    this.edges = [];
    const whole = this.layout.inside(this.model.root);
    this.size = { w: whole.w, h: whole.h };
    this._collect(this.model.root, 0, 0, 0);
    for (const element of this.mounted.values()) element.isStale = true;
    this.draw();
  }

  _collect(box, x, y, depth) {
    const inner = this.layout.inside(box);
    for (const place of inner.places) {
      const item = { number: place.item, x: x + place.x, y: y + place.y, w: place.w, h: place.h, depth };
      item.isOpen = this.model.isBox(place.item) && this.model.isOpen(place.item);
      item.key = `${item.number}${item.isOpen ? "o" : "c"}`;
      this.drawn.push(item);
      this.at.set(item.number, item);
      if (item.isOpen) this._collect(place.item, item.x, item.y, depth + 1);
    }
    for (const line of inner.lines) {
      const points = line.points.map((point) => ({ x: x + point.x, y: y + point.y }));
      const xs = points.map((point) => point.x);
      const ys = points.map((point) => point.y);
      this.edges.push({
        ...line, points, key: `e${box} ${line.from} ${line.to} ${line.values[0]}`, x: Math.min(...xs), y: Math.min(...ys),
        w: Math.max(...xs) - Math.min(...xs), h: Math.max(...ys) - Math.min(...ys),
      });
    }
  }

  draw() {
    const { x, y, k } = this.view;
    this.world.setAttribute("transform", `translate(${x} ${y}) scale(${k})`);
    this.svg.classList.toggle("far", k < 0.34);
    const width = this.host.clientWidth;
    const height = this.host.clientHeight;
    const window = {
      left: (-x - width * MARGIN) / k, top: (-y - height * MARGIN) / k,
      right: (width * (1 + MARGIN) - x) / k, bottom: (height * (1 + MARGIN) - y) / k,
    };
    const isNear = (one) => one.x <= window.right && one.x + one.w >= window.left && one.y <= window.bottom && one.y + one.h >= window.top;
    const kept = new Set();
    for (const one of this.drawn) if (isNear(one) && one.w * k > 1.5) this._mount(one, kept, () => this._card(one), this._layerOf(one));
    for (const one of this.drawn) if (one.isOpen && isNear(one) && one.w * k > 40) this._mount({ key: `${one.key}l` }, kept, () => this._label(one), this.labelLayer);
    for (const one of this.edges) if (isNear(one) && (one.w + one.h) * k > 2) this._mount(one, kept, () => this._edge(one), this.edgeLayer);
    for (const [key, element] of this.mounted) {
      if (!kept.has(key)) {
        element.remove();
        this.mounted.delete(key);
      }
    }
  }

  _layerOf = (one) => (one.isOpen ? this.levels[Math.min(one.depth, 23)] : this.cardLayer);

  _mount(one, kept, make, layer) {
    kept.add(one.key);
    const known = this.mounted.get(one.key);
    if (known && !known.isStale) return;
    const element = make();
    const hadFocus = known && known.contains(document.activeElement);
    if (known) known.replaceWith(element);
    else layer.append(element);
    if (hadFocus) element.focus({ preventScroll: true });
    this.mounted.set(one.key, element);
  }

  _edge(one) {
    const path = svg("path", { class: `edge${one.isPort ? " port" : ""}`, d: curve(one.points), "marker-end": one.to === null || this.model.isOpen(one.to) ? null : "url(#arrow)" });
    const count = one.values.length;
    if (count > 1) path.setAttribute("stroke-width", Math.min(1.3 + count * 0.35, 4));
    path.dataset.values = one.values.join(" ");
    const selected = this.app.selected;
    if (selected && selected.scene === this && this._touches(one, selected.number)) path.classList.add("lit");
    return path;
  }

  _touches(edge, number) {
    if (edge.from === number || edge.to === number) return true;
    return edge.isPort && edge.values.includes(number);
  }

  _card(one) {
    const part = this.model.parts[one.number];
    const isBox = part.box !== undefined;
    const look = this.app.look(this.model, one.number);
    const classes = ["card", isBox ? `box ${part.box}` : `step ${part.family}`, one.isOpen ? "open" : "", ...look.classes];
    const card = svg("g", {
      class: classes.filter(Boolean).join(" "),
      transform: `translate(${one.x} ${one.y})`,
      role: "button",
      tabindex: this._isTabStop(one) ? 0 : -1,
      "aria-label": this.app.describe(this.model, one.number),
      "aria-expanded": isBox ? String(one.isOpen) : null,
      "aria-pressed": String(this._isCurrent(one.number)),
      "data-number": one.number,
    });
    if (look.style) card.setAttribute("style", look.style);
    if (this._isCurrent(one.number)) card.classList.add("selected");
    if (one.isOpen) this._openBox(card, one);
    else this._closed(card, one, part, look);
    return card;
  }

  _isCurrent = (number) => Boolean(this.app.selected) && this.app.selected.scene === this && this.app.selected.number === number;

  // The part that the Tab key leads to: the selected one, or the first.
  _isTabStop(one) {
    const { selected } = this.app;
    return selected && selected.scene === this ? selected.number === one.number : one === this.drawn[0];
  }

  _openBox(card, one) {
    card.append(svg("rect", { class: "back", width: one.w, height: one.h, rx: 12, style: `--depth:${one.depth % 6}` }));
    card.append(svg("rect", { class: "handle", width: one.w, height: HEADER, rx: 12 }));
  }

  // The heading of an open box lies over the lines that come into it.
  _label(one) {
    const { title, second } = this.app.lines(this.model, one.number);
    const label = svg("g", { class: "label", transform: `translate(${one.x} ${one.y})`, "data-number": one.number, style: `--depth:${one.depth % 6}` });
    const copies = this.model.copiesOf(one.number);
    const shown = shortened(title, FONTS.title, one.w - 70);
    const left = 38 + widthOf(shown, FONTS.title);
    const room = one.w - left - (copies > 1 ? 124 : 18);
    const rest = room > 40 ? shortened(second, FONTS.small, room) : "";
    const width = left + (rest ? widthOf(rest, FONTS.small) : -6) + 2;
    label.append(svg("rect", { class: "mask", x: 8, y: 9, width, height: 23, rx: 6 }));
    label.append(svg("path", { class: "chevron", d: "M14,17.5 l5,6 l5,-6" }));
    label.append(svg("text", { class: "title", x: 31, y: 25, text: shown }));
    if (rest) label.append(svg("text", { class: "kind", x: left, y: 25, text: rest }));
    if (copies > 1) this._copies(label, one, copies);
    return label;
  }

  // Which of equal boxes is shown, and the way to the others.
  _copies(card, one, copies) {
    const first = this.model.firsts.get(one.number);
    const at = this.model.runs.get(first).indexOf(one.number);
    const group = svg("g", { class: "copies", transform: `translate(${one.w - 108} 9)` });
    group.append(svg("rect", { class: "pill", width: 96, height: 22, rx: 11 }));
    const button = (x, path, step, label) => svg("g", { class: "arrow", "aria-label": label, "data-step": step }, svg("rect", { x, width: 24, height: 22, rx: 11 }), svg("path", { d: path }));
    group.append(button(0, "M14,7 l-4,4 l4,4", -1, "previous copy"), button(72, "M82,7 l4,4 l-4,4", 1, "next copy"));
    group.append(svg("text", { x: 48, y: 15, "text-anchor": "middle", text: `${at + 1} of ${copies}` }));
    card.append(group);
  }

  _closed(card, one, part, look) {
    const isBox = part.box !== undefined;
    const copies = this.model.copiesOf(one.number);
    const radius = part.family === "input" || part.family === "output" ? one.h / 2 : isBox ? 10 : 8;
    if (copies > 1) {
      card.append(svg("rect", { class: "behind", x: 8, y: 8, width: one.w, height: one.h, rx: radius }));
      card.append(svg("rect", { class: "behind", x: 4, y: 4, width: one.w, height: one.h, rx: radius }));
    }
    card.append(svg("rect", { class: "back", width: one.w, height: one.h, rx: radius }));
    if (look.share !== undefined) card.append(svg("rect", { class: "share", x: 10, y: one.h - 6, width: Math.max((one.w - 20) * look.share, 1), height: 3, rx: 1.5 }));
    else if (!isBox) card.append(svg("rect", { class: "stripe", x: 0, y: radius > 12 ? one.h / 4 : 8, width: 4, height: radius > 12 ? one.h / 2 : one.h - 16, rx: 2 }));
    const { title, extra, second } = this.app.lines(this.model, one.number);
    const start = isBox ? 30 : 17;
    if (isBox) card.append(svg("path", { class: "chevron", d: `M14,${second ? 13.5 : 11.5} l6,5.5 l-6,5.5` }));
    const room = one.w - start - 12 - (copies > 1 ? 42 : 0);
    const shown = shortened(title, FONTS.title, room);
    card.append(svg("text", { class: "title", x: start, y: second ? 21 : 22, text: shown }));
    const left = widthOf(shown, FONTS.title) + 7;
    if (extra && room - left > 12) card.append(svg("text", { class: "kind", x: start + left, y: second ? 21 : 22, text: shortened(extra, FONTS.small, room - left) }));
    if (second) card.append(svg("text", { class: isBox ? "kind" : "type", x: isBox ? 30 : 17, y: 37, text: shortened(second, isBox ? FONTS.small : FONTS.mono, one.w - start - 10) }));
    if (copies > 1) {
      card.append(svg("rect", { class: "count", x: one.w - 48, y: 7, width: 38, height: 19, rx: 9.5 }));
      card.append(svg("text", { class: "count-text", x: one.w - 29, y: 20.5, "text-anchor": "middle", text: `×${copies}` }));
    }
    if (look.badge) {
      card.append(svg("circle", { class: "badge", cx: one.w - 2, cy: 2, r: 9 }));
      card.append(svg("text", { class: "badge-text", x: one.w - 2, y: 6, "text-anchor": "middle", text: look.badge }));
    }
  }

  refresh() {
    for (const element of this.mounted.values()) element.isStale = true;
    this.draw();
  }

  // ---- moving around ----

  schedule() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  fit(number) {
    const box = number === undefined || !this.at.has(number) ? { x: 0, y: 0, ...this.size } : this.at.get(number);
    const width = this.host.clientWidth;
    const height = this.host.clientHeight;
    const edge = Math.min(48, width / 12);
    const k = Math.min((width - 2 * edge) / box.w, (height - 2 * edge) / box.h, 1.25);
    const scale = Math.max(k, ZOOMS[0]);
    this.view = { k: scale, x: (width - box.w * scale) / 2 - box.x * scale, y: (height - box.h * scale) / 2 - box.y * scale };
    this.schedule();
  }

  // As large as can be read, from the top: for graphs that do not fit.
  start() {
    this.fit();
    if (this.view.k >= 0.55) return;
    const k = 0.8;
    const width = this.host.clientWidth;
    const inputs = this.drawn.filter((one) => one.y < 4);
    const middle = inputs.length ? inputs.reduce((sum, one) => sum + one.x + one.w / 2, 0) / inputs.length : this.size.w / 2;
    this.view = { k, x: width / 2 - middle * k, y: 40 };
    this.schedule();
  }

  zoom(factor, x = this.host.clientWidth / 2, y = this.host.clientHeight / 2) {
    const k = Math.min(Math.max(this.view.k * factor, ZOOMS[0]), ZOOMS[1]);
    const ratio = k / this.view.k;
    this.view = { k, x: x - (x - this.view.x) * ratio, y: y - (y - this.view.y) * ratio };
    this.schedule();
    this.app.moved(this);
  }

  pan(dx, dy) {
    this.view.x += dx;
    this.view.y += dy;
    this.schedule();
    this.app.moved(this);
  }

  // Bring a part into the window, as little as need be.
  show(number) {
    const one = this.at.get(number);
    if (!one) return;
    const { x, y, k } = this.view;
    const width = this.host.clientWidth;
    const height = this.host.clientHeight;
    const box = { left: one.x * k + x, top: one.y * k + y, right: (one.x + one.w) * k + x, bottom: (one.y + Math.min(one.h, height / k / 2)) * k + y };
    if (k < 0.4) {
      this.view = { k: 0.9, x: width / 2 - (one.x + one.w / 2) * 0.9, y: height / 2 - (one.y + Math.min(one.h, 300) / 2) * 0.9 };
    } else {
      if (box.left < 24 || box.right > width - 24) this.view.x += width / 2 - (box.left + box.right) / 2;
      if (box.top < 24 || box.bottom > height - 24) this.view.y += height / 2 - (box.top + box.bottom) / 2;
    }
    this.schedule();
  }

  // Put a part in the upper middle of the window, unless everything fits into it.
  centre(number) {
    const one = this.at.get(this.model.seenAt(number));
    if (!one || (this.size.w * this.view.k < this.host.clientWidth && this.size.h * this.view.k < this.host.clientHeight)) return;
    const { k } = this.view;
    this.view = { k, x: this.host.clientWidth / 2 - (one.x + one.w / 2) * k, y: this.host.clientHeight / 3 - one.y * k };
    this.schedule();
  }

  // Lay out anew and keep one part where it is on the screen.
  around(number, change) {
    const before = this.at.get(number);
    change();
    this.relayout();
    const after = this.at.get(number);
    if (before && after) {
      this.view.x += (before.x + before.w / 2 - after.x - after.w / 2) * this.view.k;
      this.view.y += (before.y - after.y) * this.view.k;
    }
    this.draw();
  }

  focus(number) {
    const one = this.at.get(number);
    const element = one && this.mounted.get(one.key);
    if (element) element.focus({ preventScroll: true });
  }

  _listen() {
    let drag = null;
    const points = new Map();
    this.svg.addEventListener("pointerdown", (event) => {
      points.set(event.pointerId, event);
      drag = { x: event.clientX, y: event.clientY, moved: false };
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!drag || !(event.buttons & 1)) return;
      const known = points.get(event.pointerId);
      if (points.size === 2 && known) this._pinch(points, event);
      const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      if (!drag.moved) this.svg.setPointerCapture(event.pointerId);
      drag = { x: event.clientX, y: event.clientY, moved: true };
      if (points.size < 2) this.pan(dx, dy);
      points.set(event.pointerId, event);
    });
    const end = (event) => {
      points.delete(event.pointerId);
      if (drag && drag.moved) this.justMoved = true;
      drag = null;
    };
    this.svg.addEventListener("pointerup", end);
    this.svg.addEventListener("pointercancel", end);
    this.svg.addEventListener("click", (event) => this._click(event));
    this.svg.addEventListener("focusin", (event) => {
      const card = event.target.closest(".card");
      if (card && !drag && !this._isCurrent(Number(card.dataset.number))) this.app.select(this, Number(card.dataset.number));
    });
    this.svg.addEventListener("dblclick", (event) => event.preventDefault());
    this.svg.addEventListener("wheel", (event) => this._wheel(event), { passive: false });
  }

  _pinch(points, event) {
    const other = [...points.values()].find((one) => one.pointerId !== event.pointerId);
    const known = points.get(event.pointerId);
    const before = Math.hypot(known.clientX - other.clientX, known.clientY - other.clientY);
    const after = Math.hypot(event.clientX - other.clientX, event.clientY - other.clientY);
    if (before > 0) this.zoom(after / before, ...this._local(event));
  }

  _local(event) {
    const frame = this.host.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  }

  _wheel(event) {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey || event.metaKey || Math.abs(event.deltaY) >= 80) this.zoom(Math.exp(-event.deltaY * unit * (event.ctrlKey ? 0.01 : 0.0018)), ...this._local(event));
    else this.pan(-event.deltaX * unit, -event.deltaY * unit);
  }

  _click(event) {
    if (this.justMoved) {
      this.justMoved = false;
      return;
    }
    const card = event.target.closest(".card, .label");
    if (!card) {
      this.app.select(this, null);
      return;
    }
    const number = Number(card.dataset.number);
    const arrow = event.target.closest(".arrow");
    if (arrow) this.app.chooseCopy(this, number, Number(arrow.dataset.step));
    else if (!this.model.isBox(number)) this.app.select(this, number);
    else if (!this.model.isOpen(number) || event.target.closest(".handle, .label")) this.app.toggle(this, number);
    else this.app.select(this, number);
  }
}

function marker() {
  const arrow = svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse", markerUnits: "userSpaceOnUse" });
  arrow.append(svg("path", { class: "arrowhead", d: "M0.5,0.8 L7,4 L0.5,7.2 Z" }));
  return svg("defs", {}, arrow);
}

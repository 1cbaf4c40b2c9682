// The outline: the same tree as text, for those who read rather than look. It is an ARIA tree with one tab stop.

import { clear, el } from "./dom.js";

export class Outline {
  constructor(app, host) {
    this.app = app;
    this.host = host;
    this.rows = [];
    host.addEventListener("keydown", (event) => this.key(event));
    host.addEventListener("click", (event) => {
      const row = event.target.closest("[role=treeitem]");
      if (!row) return;
      const number = Number(row.dataset.number);
      if (event.target.closest(".twist") && this.scene.model.isBox(number)) this.app.toggle(this.scene, number);
      else this.app.jump(this.scene, number, { keepFocus: true });
    });
  }

  show(scene, current) {
    this.scene = scene;
    const model = scene.model;
    clear(this.host);
    this.rows = [];
    const add = (number, level) => {
      const row = this.row(model, number, level, number === current);
      this.rows.push(row);
      this.host.append(row);
      if (model.isBox(number) && model.isOpen(number)) for (const item of model.items(number)) add(item, level + 1);
    };
    for (const item of model.items(model.root)) add(item, 1);
    if (!this.rows.some((row) => row.tabIndex === 0) && this.rows.length) this.rows[0].tabIndex = 0;
    const chosen = this.rows.find((row) => row.getAttribute("aria-selected") === "true");
    if (chosen) chosen.scrollIntoView({ block: "nearest" });
  }

  row(model, number, level, isCurrent) {
    const part = model.parts[number];
    const isBox = model.isBox(number);
    const copies = model.copiesOf(number);
    const text = part.box ? part.label : part.op === "call_module" ? part.target.split(".").pop() : part.name;
    const kind = part.box ? (part.kind === "section" ? "" : part.kind) : part.label;
    return el("div", {
      class: `row ${isBox ? "is-box" : part.family}`, role: "treeitem", tabindex: isCurrent ? 0 : -1, "aria-level": level,
      "aria-selected": String(isCurrent), "aria-expanded": isBox ? String(model.isOpen(number)) : null,
      "aria-label": this.app.describe(model, number), "data-number": number, style: `--level:${level}`,
    }, el("span", { class: "twist", "aria-hidden": "true", text: isBox ? (model.isOpen(number) ? "▾" : "▸") : "" }), el("span", { class: "row-name", text }), el("span", { class: "row-kind", text: kind === text ? "" : kind }), copies > 1 ? el("span", { class: "row-copies", text: `×${copies}` }) : null);
  }

  key(event) {
    const at = this.rows.indexOf(event.target.closest("[role=treeitem]"));
    if (at < 0) return;
    const number = Number(this.rows[at].dataset.number);
    const model = this.scene.model;
    const isOpen = model.isBox(number) && model.isOpen(number);
    const level = Number(this.rows[at].getAttribute("aria-level"));
    const parent = () => this.rows.slice(0, at).findLastIndex((row) => Number(row.getAttribute("aria-level")) < level);
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.rows.length - 1 };
    if (event.key in moves) this.move(moves[event.key]);
    else if (event.key === "ArrowRight") model.isBox(number) && !isOpen ? this.toggle(number) : this.move(at + 1);
    else if (event.key === "ArrowLeft") isOpen ? this.toggle(number) : this.move(parent());
    else if (event.key === "Enter" || event.key === " ") this.app.jump(this.scene, number, { keepFocus: true });
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.refocus(number, event.key);
  }

  toggle(number) {
    this.app.toggle(this.scene, number);
    this.host.querySelector(`[data-number="${number}"]`)?.focus();
  }

  refocus(number, key) {
    if (key === "Enter" || key === " ") this.host.querySelector(`[data-number="${number}"]`)?.focus();
  }

  move(place) {
    const row = this.rows[Math.min(Math.max(place, 0), this.rows.length - 1)];
    if (!row) return;
    for (const one of this.rows) one.tabIndex = -1;
    row.tabIndex = 0;
    row.focus();
  }
}

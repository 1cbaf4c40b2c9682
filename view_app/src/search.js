// Search over everything that is written anywhere: names, operations, types, paths, source lines.

import { clear, el } from "./dom.js";

const MOST = 60;

export class Search {
  constructor(app, input, list) {
    Object.assign(this, { app, input, list, found: [], at: -1 });
    input.addEventListener("input", () => this.run());
    input.addEventListener("keydown", (event) => this.key(event));
    input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    input.addEventListener("focus", () => input.value && this.run());
    list.addEventListener("pointerdown", (event) => {
      const row = event.target.closest("[role=option]");
      event.preventDefault();
      if (row) this.take(Number(row.dataset.place));
    });
  }

  index() {
    this.texts ??= this.app.scenes.flatMap((scene) =>
      scene.model.order.filter((number) => number !== scene.model.root).map((number) => {
        const part = scene.model.parts[number];
        const line = part.source ? scene.model.sources[part.source - 1] : [];
        const name = part.name || part.path || part.label;
        const words = [name, part.label, part.kind, part.target, part.path, part.type, `${line[0]}:${line[1]}`, line[3]];
        return { scene, number, name: name.toLowerCase(), text: words.filter(Boolean).join(" ").toLowerCase() };
      }));
    return this.texts;
  }

  run() {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const score = (one) => (one.name === words[0] ? 0 : one.name.startsWith(words[0]) ? 1 : one.name.includes(words[0]) ? 2 : 3);
    const all = words.length ? this.index().filter((one) => words.every((word) => one.text.includes(word))) : [];
    this.found = all.map((one, place) => [score(one), place, one]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, MOST).map((row) => row[2]);
    this.at = this.found.length ? 0 : -1;
    this.draw(all.length, words.length > 0);
  }

  draw(count, isAsked) {
    clear(this.list);
    this.found.forEach((one, place) => {
      const part = one.scene.model.parts[one.number];
      const side = this.app.scenes.length > 1 ? `${one.scene.label} · ` : "";
      this.list.append(el("li", { role: "option", id: `found-${place}`, "aria-selected": String(place === this.at), "data-place": place }, el("span", { class: "found-name", text: part.name || part.label }), el("span", { class: "found-kind", text: part.name ? part.label : part.kind }), el("span", { class: "found-place", text: side + (part.type || part.path || "") })));
    });
    if (isAsked) this.list.append(el("li", { class: "found-count", "aria-live": "polite", text: count ? `${count} found${count > MOST ? `, the first ${MOST} shown` : ""}` : "Nothing found" }));
    this.list.hidden = !isAsked;
    this.input.setAttribute("aria-expanded", String(isAsked));
    this.mark();
  }

  mark() {
    [...this.list.querySelectorAll("[role=option]")].forEach((row, place) => {
      row.setAttribute("aria-selected", String(place === this.at));
      if (place === this.at) row.scrollIntoView({ block: "nearest" });
    });
    if (this.at >= 0) this.input.setAttribute("aria-activedescendant", `found-${this.at}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  key(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const count = this.found.length;
      if (count) this.at = (this.at + (event.key === "ArrowDown" ? 1 : count - 1)) % count;
      this.mark();
      event.preventDefault();
    } else if (event.key === "Enter") this.take(this.at);
    else if (event.key === "Escape") {
      this.input.value = "";
      this.close();
      this.app.focusScene();
    }
  }

  take(place) {
    const one = this.found[place];
    if (!one) return;
    this.close();
    this.input.blur();
    this.app.jump(one.scene, one.number);
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }
}

// The page: reads its data, builds the frame, and ties scenes, panel, outline and search together.

import style from "./style.css";
import { clear, el, remember } from "./dom.js";
import { METRICS, amount, percent, plural } from "./format.js";
import { Model } from "./model.js";
import { Outline } from "./outline.js";
import { FAMILIES, Panel } from "./panel.js";
import { Scene } from "./scene.js";
import { Search } from "./search.js";

const BADGES = { added: "+", removed: "−", moved: "↕" };
const FIRST_SHOWN = 12;
const MOST_SHOWN = 40;
const FIRST_CHANGES = 6;
const MOST_OPENED = 1500;
const KEYS = [
  ["Arrow up, arrow down", "go to what makes a value, to who uses it"], ["Arrow left, arrow right", "go to the neighbours"],
  ["Enter", "expand or collapse"], ["e, c", "expand all inside, collapse"], ["u", "show all of equal blocks, or fold them"],
  ["[, ]", "previous, next of equal blocks"], ["d", "jump to the definition"], ["/", "search"], ["f", "fit everything"],
  ["z", "zoom to what is selected"], ["+, −", "zoom in, zoom out"], ["Shift and arrows", "move the picture"], ["s", "small steps: sizes, dtypes, unused inputs"],
  ["o, p", "outline, side panel"], ["t", "light or dark"], ["Esc", "select nothing"],
];

class App {
  constructor(data) {
    this.data = data;
    this.metric = "family";
    document.head.append(el("style", { text: style }));
    this.frame();
    const isDiff = data.graphs.length > 1;
    this.scenes = data.graphs.map((graph, place) => this.scene(graph, isDiff ? ["Before", "After"][place] : "Graph", isDiff));
    if (isDiff) this.mirror();
    this.pairs = new Map((data.pairs || []).flatMap(([one, other]) => [[`0 ${one}`, other], [`1 ${other}`, one]]));
    this.current = this.scenes[this.scenes.length - 1];
    this.panel = new Panel(this, this.parts.panel);
    this.outline = new Outline(this, this.parts.outline);
    this.search = new Search(this, this.parts.search, this.parts.found);
    this.metrics();
    for (const scene of this.scenes) scene.relayout();
    this.select(this.current, null);
    for (const scene of this.scenes) scene.start();
    for (const scene of this.scenes) if (scene.firstChange !== undefined) scene.centre(scene.firstChange);
    document.addEventListener("keydown", (event) => this.key(event));
    performance.mark("clew-ready");
    document.documentElement.dataset.ready = "true";
  }

  scene(graph, label, isDiff) {
    const model = new Model(graph);
    const host = el("div", { class: "stage", "aria-label": label });
    if (isDiff) host.append(el("p", { class: "stage-label", text: label }));
    this.parts.stages.append(host);
    const changed = isDiff ? model.openChanges(FIRST_CHANGES) : undefined;
    if (!isDiff) model.openFirst(FIRST_SHOWN, MOST_SHOWN);
    const scene = new Scene(this, model, host, `${label} of ${graph.name}`);
    scene.label = label;
    scene.firstChange = changed;
    return scene;
  }

  // ---- the frame ----

  frame() {
    const parts = (this.parts = {});
    const button = (name, text, title, run) => (parts[name] = el("button", { type: "button", class: "tool", title, "aria-label": title, on: { click: run } }, text));
    parts.search = el("input", { type: "search", placeholder: "Search steps, modules, types, lines", "aria-label": "Search", role: "combobox", "aria-controls": "found", "aria-expanded": "false", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false" });
    parts.found = el("ul", { id: "found", class: "found", role: "listbox", "aria-label": "Search results", hidden: true });
    parts.colour = el("select", { class: "tool", "aria-label": "Colour by", on: { change: () => this.colourBy(parts.colour.value) } });
    const tools = el("div", { class: "tools", role: "toolbar", "aria-label": "View" }, el("label", { class: "colour" }, el("span", { text: "Colour" }), parts.colour),
      button("details", "Small steps", "Show sizes, dtypes and unused inputs (s)", () => this.toggleDetails()), button("fit", "Fit", "Fit everything (f)", () => this.fitAll()),
      button("out", "−", "Zoom out (−)", () => this.current.zoom(1 / 1.25)), button("in", "+", "Zoom in (+)", () => this.current.zoom(1.25)),
      button("theme", "◐", "Light or dark (t)", () => this.toggleTheme()), button("help", "?", "Keys (?)", () => this.help()));
    parts.title = el("h1", { text: this.data.title });
    parts.summary = el("p", { class: "summary", text: this.summary() });
    parts.crumbs = el("nav", { class: "crumbs", "aria-label": "Where you are" });
    parts.outline = el("div", { class: "tree", role: "tree", "aria-label": "Outline" });
    parts.panel = el("aside", { class: "panel", "aria-label": "Details", tabindex: -1 });
    parts.stages = el("main", { class: "stages", "aria-label": "Graph" });
    parts.status = el("p", { class: "status", role: "status", "aria-live": "polite" });
    parts.side = el("nav", { class: "side", "aria-label": "Outline" }, el("h2", { text: "Outline" }), parts.outline);
    parts.keys = this.helpDialog();
    document.body.append(
      el("a", { class: "skip", href: "#outline-start" , on: { click: (event) => { event.preventDefault(); this.showSide("outline", true); this.parts.outline.querySelector("[tabindex='0']")?.focus(); } } }, "Skip to the outline"),
      el("header", { class: "bar" }, el("div", { class: "name" }, parts.title, parts.summary), el("div", { class: "search" }, parts.search, parts.found), tools),
      el("div", { class: "body" }, parts.side, el("div", { class: "centre" }, parts.crumbs, parts.stages, parts.status), parts.panel), parts.keys,
    );
    this.setTheme(remember("theme"));
    if (window.innerWidth < 1100 || this.data.graphs.length > 1) document.body.classList.add("no-outline");
    if (window.innerWidth < 760) document.body.classList.add("no-panel");
  }

  summary() {
    const graph = this.data.graphs[this.data.graphs.length - 1];
    const steps = graph.parts.filter((part) => !part.box).length;
    const words = [plural(steps, "step")];
    if (graph.parameters) words.push(`${amount(graph.parameters)} parameters`);
    if (this.data.changes) words.push(plural(this.data.changes.length, "change"));
    else if (graph.guards.length) words.push(plural(graph.guards.length, "guard"));
    return words.join(" · ");
  }

  helpDialog() {
    const rows = KEYS.flatMap(([keys, text]) => [el("dt", { text: keys }), el("dd", { text })]);
    const close = el("button", { type: "button", class: "small", on: { click: () => this.parts.keys.close() } }, "Close");
    return el("dialog", { class: "keys", "aria-label": "Keys" }, el("h2", { text: "Keys" }), el("dl", {}, ...rows), close);
  }

  help() {
    this.parts.keys.showModal();
  }

  // ---- light and dark ----

  setTheme(theme) {
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  }

  toggleTheme() {
    const isDark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
    const theme = isDark ? "light" : "dark";
    remember("theme", theme);
    this.setTheme(theme);
    this.say(`${theme} colours`);
  }

  showSide(name, wanted) {
    document.body.classList.toggle(`no-${name}`, wanted === undefined ? undefined : !wanted);
    for (const scene of this.scenes) scene.schedule();
  }

  // ---- what is written on parts ----

  lines(model, number) {
    const part = model.parts[number];
    const cost = this.costText(model, number);
    if (part.box) {
      const kind = part.kind === "section" || part.kind === part.label ? "" : part.kind;
      const second = cost ?? [part.box === "control" || part.box === "body" ? "" : kind, plural(model.countIn(number), "step")].filter(Boolean).join(" · ");
      return { title: this.boxTitle(model, number), second };
    }
    const extra = part.op === "call_module" ? part.target.split(".").pop() : "";
    return { title: part.label, extra: /^\d+$/.test(extra) ? "" : extra, second: cost ?? part.type ?? "" };
  }

  // Equal blocks that are shown as one have the numbers of all: layer.0–11.
  boxTitle(model, number) {
    const { label } = model.parts[number];
    const first = model.firsts.get(number);
    if (model.isOpen(number) || model.copiesOf(number) === 1) return label;
    const last = model.parts[model.runs.get(first).at(-1)].label.match(/\d+$/);
    const start = model.parts[first].label;
    return last && /\d+$/.test(start) ? `${start}–${last[0]}` : start;
  }

  costText(model, number) {
    if (this.metric === "family") return undefined;
    const value = this.cost(model, number);
    if (value === null || (value === 0 && this.metric === "parameters")) return "";
    const total = model.sum(model.root, this.metric);
    return total ? `${METRICS[this.metric].show(value)} · ${percent(value / total)}` : METRICS[this.metric].show(value);
  }

  cost = (model, number) => (model.isOpen(number) ? model.sum(number, this.metric) : model.shownSum(number, this.metric));

  // The most that anything which is drawn closed takes: the hottest colour.
  hottest(model) {
    const scene = this.scenes?.find((one) => one.model === model);
    if (!scene) return 1;
    if (scene.hottestOf !== scene.drawn) {
      scene.hottestOf = scene.drawn;
      scene.hottest = scene.drawn.reduce((most, one) => (one.isOpen ? most : Math.max(most, this.cost(model, one.number) ?? 0)), 0);
    }
    return scene.hottest || 1;
  }

  look(model, number) {
    const part = model.parts[number];
    const found = { classes: [] };
    if (this.metric !== "family") {
      const value = this.cost(model, number);
      found.share = value === null ? undefined : Math.min(value / this.hottest(model), 1);
      found.classes.push("heat");
      if (value !== null) found.style = `--heat:${Math.sqrt(found.share).toFixed(3)}`;
    }
    if (part.marks) {
      const kind = ["added", "removed", "moved"].find((mark) => part.marks.includes(mark));
      const isOther = part.marks.some((mark) => mark !== "moved");
      found.classes.push("changed", kind && !(kind === "moved" && isOther) ? kind : "edited");
      found.badge = kind && !(kind === "moved" && isOther) ? BADGES[kind] : "~";
    } else if (part.box && model.marksIn(number) && !model.isOpen(number)) {
      found.classes.push("changed", "inside");
      found.badge = String(Math.min(model.marksIn(number), 99));
    }
    return found;
  }

  describe(model, number) {
    const part = model.parts[number];
    const words = [part.box ? part.label : part.name];
    if (part.box) {
      const copies = model.copiesOf(number);
      words.push(part.box === "module" ? `${part.kind}, module` : part.box === "control" ? `${part.kind}, control flow` : part.box);
      if (copies > 1) words.push(`${copies} equal blocks`);
      words.push(plural(model.countIn(number), "step"));
      if (model.marksIn(number)) words.push(plural(model.marksIn(number), "change"));
    } else {
      words.push(part.label === part.name ? "" : part.label, FAMILIES[part.family], part.type ? `gives ${part.type}` : "");
      if (part.marks) words.push(part.marks.join(" and "));
    }
    const cost = this.costText(model, number);
    if (cost) words.push(cost);
    return words.filter(Boolean).join(", ");
  }

  // ---- colours ----

  metrics() {
    const { colour } = this.parts;
    const model = this.scenes[this.scenes.length - 1].model;
    colour.append(el("option", { value: "family", text: "by kind" }));
    for (const [metric, { label }] of Object.entries(METRICS)) {
      if (model.sum(model.root, metric)) colour.append(el("option", { value: metric, text: `by ${/^[A-Z]{2}/.test(label) ? label : label.toLowerCase()}` }));
    }
    const first = this.data.profile ? ["seconds", "flops"].find((metric) => model.sum(model.root, metric)) : null;
    if (first && !this.data.changes) this.metric = colour.value = first;
  }

  colourBy(metric) {
    this.metric = metric;
    this.parts.colour.value = metric;
    this.redo();
  }

  redo() {
    for (const scene of this.scenes) {
      scene.layout.forgetAll();
      scene.relayout();
    }
    this.after();
  }

  // ---- opening, closing, selecting ----

  toggle(scene, number) {
    const model = scene.model;
    if (!model.isBox(number) || number === model.root) return;
    const isOpening = !model.isOpen(number);
    scene.around(number, () => {
      if (isOpening) model.open.add(number);
      else model.open.delete(number);
      scene.layout.forget(number);
    });
    this.twin(scene, number, isOpening);
    this.select(scene, number);
    this.say(`${model.parts[number].label} ${isOpening ? "expanded" : "collapsed"}`);
    if (isOpening) scene.show(number);
  }

  // Two graphs side by side begin with the same modules open, and at the same place.
  mirror() {
    const paths = this.scenes.map(({ model }) => new Map(model.order.filter((one) => model.parts[one].box === "module").map((one) => [model.parts[one].path, one])));
    const opened = this.scenes.map(({ model }) => model.order.filter((one) => model.isOpen(one)));
    this.scenes.forEach((scene, place) => {
      const other = this.scenes[1 - place];
      const found = opened[1 - place].map((box) => paths[place].get(other.model.parts[box].path)).filter((box) => box !== undefined);
      for (const box of found) scene.model.openAt(box);
      if (scene.firstChange === undefined && other.firstChange !== undefined) {
        scene.firstChange = paths[place].get(other.model.parts[other.model.parents[other.firstChange]].path);
      }
    });
    if (this.scenes.every(({ model }) => model.open.size === 1)) for (const { model } of this.scenes) model.openFirst(FIRST_SHOWN, MOST_SHOWN);
  }

  // Of two graphs side by side, the same module is opened and closed in both.
  twin(scene, number, isOpening) {
    const other = this.scenes.find((one) => one !== scene);
    const path = scene.model.parts[number].path;
    if (!other || !path) return;
    const model = other.model;
    const found = model.order.find((one) => model.parts[one].box === "module" && model.parts[one].path === path);
    if (found === undefined || model.isOpen(found) === isOpening) return;
    if (isOpening) model.open.add(found);
    else model.open.delete(found);
    other.layout.forget(found);
    other.relayout();
  }

  // Everything inside is opened, outermost first, up to as many steps as a picture can hold.
  openAll(scene, number) {
    const model = scene.model;
    let count = 0;
    let isCut = false;
    scene.around(number, () => {
      let level = [number];
      while (level.length) {
        const next = [];
        for (const box of level) {
          const items = model.items(box);
          isCut ||= count + items.length > MOST_OPENED;
          if (isCut) break;
          count += items.length;
          model.open.add(box);
          scene.layout.forget(box);
          next.push(...items.filter((item) => model.isBox(item)));
        }
        level = isCut ? [] : next;
      }
    });
    this.select(scene, number === model.root ? null : number);
    this.say(isCut ? `the first ${count} steps inside are shown` : "expanded");
  }

  collapse(scene, number) {
    const model = scene.model;
    const box = model.isBox(number) && model.isOpen(number) ? number : model.parents[number];
    if (box !== model.root && box >= 0) this.toggle(scene, box);
  }

  unfold(scene, number) {
    const model = scene.model;
    const first = model.firsts.get(number);
    if (first === undefined || first === null) return;
    const isFolded = !model.unfolded.has(first);
    scene.around(number, () => {
      if (isFolded) model.unfolded.add(first);
      else model.unfolded.delete(first);
      for (const one of model.runs.get(first)) scene.layout.forget(one);
    });
    if (!isFolded) model.chosen.set(first, number);
    this.select(scene, model.shownFor(number));
    this.say(isFolded ? `all ${model.runs.get(first).length} shown` : "folded");
  }

  chooseCopy(scene, number, step) {
    const model = scene.model;
    const first = model.firsts.get(number);
    if (first === undefined || first === null || model.unfolded.has(first)) return;
    const run = model.runs.get(first);
    const next = run[(run.indexOf(number) + step + run.length) % run.length];
    if (model.isOpen(number)) model.open.add(next);
    model.chosen.set(first, next);
    scene.layout.forget(number);
    scene.layout.forget(next);
    scene.relayout();
    this.select(scene, next);
    this.say(`block ${run.indexOf(next) + 1} of ${run.length}`);
  }

  select(scene, number, options = {}) {
    this.current = scene;
    this.selected = number === null ? null : { scene, number };
    for (const one of this.scenes) one.refresh();
    if (number !== null && !options.keepFocus && document.activeElement !== this.parts.search) scene.focus(number);
    this.after();
    if (number !== null && !options.isTwin) this.selectTwin(scene, number);
  }

  selectTwin(scene, number) {
    const place = this.scenes.indexOf(scene);
    const other = this.scenes.find((one) => one !== scene);
    const twin = this.pairs.get(`${place} ${number}`);
    if (!other || twin === undefined) return;
    const seen = other.model.seenAt(twin);
    other.show(seen);
    other.mounted.forEach((element) => element.classList.toggle("twin", Number(element.dataset.number) === seen));
  }

  after() {
    const number = this.selected ? this.selected.number : null;
    this.panel.show(this.current, number);
    this.outline.show(this.current, number);
    this.crumbs(number);
    this.parts.details.setAttribute("aria-pressed", String(this.current.model.details));
  }

  crumbs(number) {
    const model = this.current.model;
    clear(this.parts.crumbs);
    const path = number === null ? [model.root] : [...model.ancestors(number), number];
    path.forEach((one, place) => {
      const part = model.parts[one];
      const text = one === model.root ? model.name : part.box ? part.label : part.name;
      const isLast = place === path.length - 1;
      const go = () => (one === model.root ? (this.select(this.current, null), this.fitAll()) : this.jump(this.current, one));
      if (place) this.parts.crumbs.append(el("span", { class: "crumb-sep", "aria-hidden": "true", text: "›" }));
      this.parts.crumbs.append(el("button", { type: "button", class: "crumb", "aria-current": isLast ? "location" : null, on: { click: go } }, text));
    });
  }

  jump(scene, number, options = {}) {
    const seenBefore = scene.at.has(number);
    scene.model.reveal(number);
    if (!seenBefore) {
      scene.layout.forgetAll();
      scene.relayout();
    }
    scene.show(number);
    scene.draw();
    this.select(scene, number, options);
  }

  jumpToChange(change) {
    for (const scene of [...this.scenes].reverse()) {
      const found = scene.model.order.find((one) => scene.model.parts[one].name === change.name && scene.model.parts[one].marks);
      if (found !== undefined) {
        this.jump(scene, found);
        return;
      }
    }
  }

  toggleDetails() {
    const details = !this.current.model.details;
    for (const scene of this.scenes) scene.model.details = details;
    this.redo();
    this.say(details ? "small steps shown" : "small steps hidden");
  }

  fitAll() {
    for (const scene of this.scenes) scene.fit();
  }

  moved() {}

  focusScene() {
    const number = this.selected ? this.selected.number : this.current.drawn[0]?.number;
    if (number !== undefined) this.current.focus(number);
  }

  say(text) {
    this.parts.status.textContent = text;
  }

  // ---- keys ----

  key(event) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (typing || event.ctrlKey || event.metaKey || event.altKey || this.parts.keys.open) return;
    const onControl = event.target.closest("button, summary, a, [role=treeitem]");
    if (onControl && (event.key === "Enter" || event.key === " " || event.key.startsWith("Arrow"))) return;
    if (this.act(event)) event.preventDefault();
  }

  act(event) {
    const scene = this.current;
    const number = this.selected ? this.selected.number : null;
    const plain = {
      "/": () => this.parts.search.focus(), f: () => this.fitAll(), 0: () => this.fitAll(), "+": () => scene.zoom(1.25), "=": () => scene.zoom(1.25),
      "-": () => scene.zoom(1 / 1.25), "−": () => scene.zoom(1 / 1.25), s: () => this.toggleDetails(), t: () => this.toggleTheme(),
      o: () => this.showSide("outline"), p: () => this.showSide("panel"), "?": () => this.help(), Escape: () => this.select(scene, null),
      z: () => scene.fit(number ?? undefined), e: () => this.openAll(scene, number ?? scene.model.root),
    };
    if (event.key.startsWith("Arrow")) return this.arrow(event, scene, number);
    if (plain[event.key]) plain[event.key]();
    else if (number === null) return false;
    else return this.actOn(event.key, scene, number);
    return true;
  }

  actOn(key, scene, number) {
    const isBox = scene.model.isBox(number);
    if ((key === "Enter" || key === " ") && isBox) this.toggle(scene, number);
    else if (key === "c") this.collapse(scene, number);
    else if (key === "u") this.unfold(scene, number);
    else if (key === "[") this.chooseCopy(scene, number, -1);
    else if (key === "]") this.chooseCopy(scene, number, 1);
    else if (key === "d") this.follow(scene, number, "sources");
    else return false;
    return true;
  }

  arrow(event, scene, number) {
    const [dx, dy] = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowLeft: [1, 0], ArrowRight: [-1, 0] }[event.key];
    if (event.shiftKey) scene.pan(dx * 80, dy * 80);
    else if (number === null) this.pick(scene, scene.drawn[0]?.number);
    else if (dy) this.follow(scene, number, dy > 0 ? "sources" : "users") || this.neighbour(scene, number, 0, -dy);
    else this.neighbour(scene, number, -dx, 0);
    return true;
  }

  // To what is seen of those that make, or use, the value.
  follow(scene, number, direction) {
    const model = scene.model;
    if (direction === "users" && model.isBox(number) && model.isOpen(number)) return this.pick(scene, model.items(number)[0]);
    const found = this.panel[direction](model, number).filter((one) => !model.isHidden(one)).map((one) => model.seenAt(one));
    return this.pick(scene, found.find((one) => one !== number && scene.at.has(one)));
  }

  pick(scene, number) {
    if (number === undefined) return false;
    scene.show(number);
    scene.draw();
    this.select(scene, number);
    return true;
  }

  // The nearest part in a direction.
  neighbour(scene, number, dx, dy) {
    const here = scene.at.get(number);
    if (!here) return false;
    const middle = (one) => [one.x + one.w / 2, one.y + Math.min(one.h, 48) / 2];
    const [x, y] = middle(here);
    let best;
    let least = Infinity;
    for (const one of scene.drawn) {
      const [a, b] = middle(one);
      const [along, across] = dx ? [(a - x) * dx, Math.abs(b - y)] : [(b - y) * dy, Math.abs(a - x)];
      const distance = along + across * 3;
      if (one !== here && along > 4 && distance < least) [best, least] = [one, distance];
    }
    return this.pick(scene, best?.number);
  }
}

window.clewApp = new App(JSON.parse(document.getElementById("clew-data").textContent));

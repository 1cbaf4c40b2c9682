// The side panel: all that is known of what is selected, or of the whole program.

import { clear, el } from "./dom.js";
import { METRICS, amount, percent, plural } from "./format.js";

export const FAMILIES = {
  input: "Input", output: "Output", weight: "Weight or buffer", guard: "Guard", matrix: "Linear, convolution, matmul",
  attention: "Attention", normalization: "Normalization", activation: "Activation", embedding: "Lookup", pool: "Pooling, reduction",
  shape: "Shape, copy", operation: "Operation",
};
const WORDS = {
  placeholder: "Input", output: "Output", get_attr: "Weight or buffer", call_function: "Function call",
  call_method: "Method call", call_module: "Module call",
};
const BOXES = { module: "Module", control: "Control flow", body: "Body", section: "Section" };

export class Panel {
  constructor(app, host) {
    this.app = app;
    this.host = host;
  }

  show(scene, number) {
    clear(this.host);
    const model = scene.model;
    if (number === null || number === model.root) this.host.append(...this.overview(scene));
    else this.host.append(...this.details(scene, number));
    this.host.scrollTop = 0;
  }

  overview(scene) {
    const model = scene.model;
    const data = this.app.data;
    const facts = [["Steps", model.countIn(model.root).toLocaleString("en")]];
    if (model.parameters) facts.push(["Parameters", `${amount(model.parameters)} (${model.parameters.toLocaleString("en")})`]);
    const profile = data.profile;
    if (profile) {
      if (profile.seconds !== null) facts.push(["Time", METRICS.seconds.show(profile.seconds)]);
      facts.push(["FLOPs", `${profile.unknown.length ? "at least " : ""}${METRICS.flops.show(profile.flops)}`]);
      facts.push(["Bytes moved", METRICS.bytes.show(profile.bytes)], ["Peak memory", `${amount(profile.peak_bytes, "B")} at ${profile.peak_node}`]);
    } else if (model.sum(model.root, "flops")) {
      facts.push(["FLOPs", `${METRICS.flops.show(model.sum(model.root, "flops"))}, at the example's sizes`]);
    }
    return [
      this.head("Program", model.name, ""),
      this.facts(facts),
      data.changes ? this.changes(data.changes) : null,
      this.guards(model, model.guards, "Guards"),
      this.code(model, null),
      this.legend(),
    ].filter(Boolean);
  }

  details(scene, number) {
    const model = scene.model;
    const part = model.parts[number];
    return [
      this.head(this.role(part), part.box ? part.label : part.name, part.box ? part.kind : part.label),
      this.actions(scene, number),
      this.marks(scene, number),
      this.facts(this.factsOf(model, number)),
      this.links(scene, "Inputs", this.sources(model, number)),
      this.links(scene, "Used by", this.users(model, number)),
      this.source(model, part),
      this.guards(model, this.guardsOf(model, number), "Guards on this"),
      this.code(model, number),
    ].filter(Boolean);
  }

  role = (part) => (part.box ? BOXES[part.box] : WORDS[part.op] || part.op);

  head(role, title, kind) {
    return el("header", { class: "panel-head" }, el("p", { class: "eyebrow", text: role }), el("h2", { text: title }), kind && kind !== title ? el("p", { class: "kind-line", text: kind }) : null);
  }

  actions(scene, number) {
    const model = scene.model;
    if (!model.isBox(number)) return null;
    const app = this.app;
    const button = (text, run, key) => el("button", { class: "small", type: "button", title: key ? `Key: ${key}` : null, on: { click: run } }, text);
    const found = [button(model.isOpen(number) ? "Collapse" : "Expand", () => app.toggle(scene, number), "Enter")];
    found.push(button("Expand all inside", () => app.openAll(scene, number), "e"));
    const first = model.firsts.get(number);
    if (first !== undefined && first !== null) {
      const count = model.runs.get(first).length;
      found.push(button(model.unfolded.has(first) ? `Fold ×${count}` : `Show all ${count}`, () => app.unfold(scene, number), "u"));
    }
    found.push(button("Zoom to it", () => scene.fit(number), "z"));
    return el("div", { class: "actions" }, ...found);
  }

  factsOf(model, number) {
    const part = model.parts[number];
    const facts = [];
    const put = (name, value) => value !== undefined && value !== null && value !== "" && facts.push([name, value]);
    put("Type", part.type);
    if (part.size !== undefined) put("Size", amount(part.size, "B"));
    put("Path", part.path);
    if (part.op && part.op !== "placeholder" && part.op !== "output") put("Target", part.target);
    if (part.settings) put("Settings", part.settings);
    if (part.args) put("Arguments", part.args);
    if (part.box) {
      const copies = model.copiesOf(number);
      put("Steps", copies > 1 ? `${model.countIn(number)} in each of ${copies} equal blocks` : String(model.countIn(number)));
    }
    if (part.calls > 1) put("Calls", String(part.calls));
    for (const [metric, { label, show }] of Object.entries(METRICS)) this.cost(model, number, metric, label, show, put);
    return facts;
  }

  cost(model, number, metric, label, show, put) {
    const value = model.shownSum(number, metric);
    if (value === null || (value === 0 && metric === "parameters")) return;
    const total = model.sum(model.root, metric);
    put(label, total ? `${show(value)} · ${percent(value / total)}` : show(value));
  }

  facts(rows) {
    if (!rows.length) return null;
    const list = el("dl", { class: "facts" });
    for (const [name, value] of rows) list.append(el("dt", { text: name }), el("dd", { text: value }));
    return list;
  }

  // For a box: what comes from outside, and who outside takes what it makes.
  sources(model, number) {
    if (!model.isBox(number)) return model.inputs[number];
    const found = (model.entering.get(number) || []).map(([, from]) => from);
    return [...new Set([...found, ...model.inputs[number]])];
  }

  users(model, number) {
    if (!model.isBox(number)) return model.users[number];
    const found = (model.leaving.get(number) || []).map(([, , to]) => to);
    return [...new Set([...found, ...model.users[number]])];
  }

  links(scene, title, numbers) {
    if (!numbers.length) return null;
    const model = scene.model;
    const rows = numbers.slice(0, 40).map((number) => {
      const part = model.parts[number];
      const text = part.box ? part.label : part.name;
      const jump = () => this.app.jump(scene, number);
      return el("li", {}, el("button", { class: "link", type: "button", on: { click: jump } }, el("span", { class: "link-name", text }), el("span", { class: "link-type", text: part.type || part.kind || "" })));
    });
    if (numbers.length > 40) rows.push(el("li", { class: "muted", text: `and ${numbers.length - 40} more` }));
    return section(title, el("ul", { class: "links" }, ...rows));
  }

  source(model, part) {
    const line = part.source && model.sources[part.source - 1];
    if (!line) return null;
    const [file, number, fn, text] = line;
    return section("Source", el("p", { class: "place", text: `${file}:${number}${fn ? ` in ${fn}` : ""}` }), text ? el("pre", { class: "code" }, el("code", { text })) : null);
  }

  guardsOf(model, number) {
    const part = model.parts[number];
    const place = part.source && model.sources[part.source - 1];
    const isSame = (one) => one && place && one[0] === place[0] && one[1] === place[1];
    return model.guards.filter((guard) => guard.inputs?.includes(number) || isSame(guard.source && model.sources[guard.source - 1]));
  }

  guards(model, guards, title) {
    if (!guards.length) return null;
    const rows = guards.map((guard) => {
      const place = guard.source && model.sources[guard.source - 1];
      return el("tr", {}, el("td", { class: "muted", text: guard.kind }), el("td", {}, el("code", { text: guard.text }), place ? el("span", { class: "muted place", text: ` ${place[0]}:${place[1]}` }) : null));
    });
    const table = el("table", { class: "guards" }, el("tbody", {}, ...rows));
    return section(`${title} (${guards.length})`, table, guards.length > 8);
  }

  code(model, number) {
    if (!model.code) return null;
    const lines = model.code.replace(/\n+$/, "").split("\n");
    const spans = number === null ? [] : [...model.stepsIn(number), number].map((one) => model.parts[one].lines).filter(Boolean);
    if (number !== null && !spans.length) return null;
    const marked = new Set(spans.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, place) => from + place)));
    const lowest = spans.reduce((low, [from]) => Math.min(low, from), Infinity);
    const highest = spans.reduce((high, [, to]) => Math.max(high, to), 0);
    const first = number === null ? 0 : Math.max(lowest - 3, 0);
    const last = number === null ? Math.min(lines.length, 400) : Math.min(highest + 2, first + 200, lines.length);
    const list = el("code", {});
    for (let place = first; place < last; place++) {
      list.append(el("span", { class: marked.has(place + 1) ? "line marked" : "line" }, el("span", { class: "number", "aria-hidden": "true", text: String(place + 1) }), `${lines[place]}\n`));
    }
    return section("Generated code", el("pre", { class: "code numbered", tabindex: 0 }, list), number === null && lines.length > 40);
  }

  marks(scene, number) {
    const model = scene.model;
    const part = model.parts[number];
    if (!this.app.data.changes) return null;
    const names = new Set(part.items ? model.stepsIn(number).filter((one) => model.parts[one].marks).map((one) => model.parts[one].name) : [part.name]);
    const found = this.app.data.changes.filter((change) => names.has(change.name));
    return found.length && (part.marks || part.items) ? this.changes(found) : null;
  }

  changes(changes) {
    const rows = changes.slice(0, 300).map((change) => {
      const jump = () => this.app.jumpToChange(change);
      const detail = change.before && change.after ? [el("del", { text: change.before }), " → ", el("ins", { text: change.after })] : [change.after ? el("ins", { text: change.after }) : el("del", { text: change.before })];
      return el("li", { class: `change ${change.kind.replace(" ", "-")}` }, el("button", { class: "link", type: "button", on: { click: jump } }, el("span", { class: "change-kind", text: change.kind }), el("span", { class: "link-name", text: change.name })), el("p", { class: "change-text" }, ...detail));
    });
    if (changes.length > 300) rows.push(el("li", { class: "muted", text: `and ${changes.length - 300} more` }));
    return section(plural(changes.length, "change"), el("ul", { class: "changes" }, ...rows));
  }

  legend() {
    const used = new Set(this.app.scenes.flatMap((scene) => scene.model.parts.map((part) => part.family)));
    const rows = Object.entries(FAMILIES).filter(([family]) => used.has(family));
    return section("Legend", el("ul", { class: "legend" }, ...rows.map(([family, text]) => el("li", {}, el("span", { class: `swatch ${family}` }), text))), true);
  }
}

function section(title, ...rest) {
  const isClosed = rest[rest.length - 1] === true;
  const inner = rest.filter((one) => typeof one !== "boolean");
  return el("details", { class: "section", open: !isClosed }, el("summary", {}, el("h3", { text: title })), ...inner);
}

// A graph and what of it is shown. Parts are steps and boxes, by number; which boxes are open is the only state here.

export class Model {
  constructor(data) {
    Object.assign(this, { name: data.name, root: data.root, parts: data.parts, parents: data.parents });
    Object.assign(this, { sources: data.sources, code: data.code, guards: data.guards, parameters: data.parameters });
    this.open = new Set([data.root]);
    this.unfolded = new Set();
    this.chosen = new Map();
    this.details = false;
    this.depths = new Int32Array(this.parts.length);
    this.firsts = new Map();
    this.runs = new Map();
    this._walk();
    this._connect(data.edges);
    this.sums = {};
  }

  _walk() {
    const waiting = [this.root];
    this.order = [];
    while (waiting.length) {
      const number = waiting.pop();
      const part = this.parts[number];
      this.order.push(number);
      let first = null;
      for (const item of part.items || []) {
        this.depths[item] = this.depths[number] + 1;
        const inner = this.parts[item];
        if (inner.copies) {
          first = item;
          this.runs.set(item, [item]);
        }
        if (inner.follows) this.runs.get(first).push(item);
        if (inner.copies || inner.follows) this.firsts.set(item, first);
      }
      for (let place = (part.items || []).length - 1; place >= 0; place--) waiting.push(part.items[place]);
    }
  }

  // For each box: edges between its parts, values that come into it, and values that leave it.
  _connect(edges) {
    const count = this.parts.length;
    this.inputs = Array.from({ length: count }, () => []);
    this.users = Array.from({ length: count }, () => []);
    this.within = new Map();
    this.entering = new Map();
    this.leaving = new Map();
    const put = (table, box, entry) => (table.get(box) || table.set(box, []).get(box)).push(entry);
    for (let place = 0; place < edges.length; place += 2) {
      const [from, to] = [edges[place], edges[place + 1]];
      if (!this.users[from].includes(to)) this.users[from].push(to);
      if (!this.inputs[to].includes(from)) this.inputs[to].push(from);
      let [a, b] = [from, to];
      const [ups, downs] = [[], []];
      while (this.parents[a] !== this.parents[b]) {
        if (this.depths[a] >= this.depths[b]) {
          ups.push(a);
          a = this.parents[a];
        } else {
          downs.push(b);
          b = this.parents[b];
        }
      }
      if (a === b) continue;
      put(this.within, this.parents[a], [a, b, from, to]);
      for (const one of ups) put(this.leaving, this.parents[one], [one, from, to]);
      for (const one of downs) put(this.entering, this.parents[one], [one, from, to]);
    }
  }

  isBox = (number) => this.parts[number].box !== undefined;
  isOpen = (number) => this.open.has(number);
  isHidden = (number) => !this.details && Boolean(this.parts[number].minor);

  // What stands for a part among those shown: the chosen one of equal boxes.
  shownFor(number) {
    const first = this.firsts.get(number);
    if (first === undefined || first === null || this.unfolded.has(first)) return number;
    return this.chosen.get(first) ?? first;
  }

  copiesOf(number) {
    const first = this.firsts.get(number);
    if (first === undefined || first === null || this.unfolded.has(first)) return 1;
    return this.runs.get(first).length;
  }

  items(box) {
    return (this.parts[box].items || []).filter((item) => !this.isHidden(item) && this.shownFor(item) === item);
  }

  ancestors(number) {
    const found = [];
    for (let at = this.parents[number]; at >= 0; at = this.parents[at]) found.unshift(at);
    return found;
  }

  // The part that is seen where a part is: itself, or the closed box around it.
  seenAt(number) {
    for (const box of this.ancestors(number)) {
      const shown = this.shownFor(box);
      if (shown !== box) return shown;
      if (!this.open.has(box)) return box;
    }
    return this.shownFor(number);
  }

  reveal(number) {
    if (this.isHidden(number)) this.details = true;
    for (const box of [...this.ancestors(number), number]) {
      const first = this.firsts.get(box);
      if (first !== undefined && first !== null && !this.unfolded.has(first)) this.chosen.set(first, box);
      if (box !== number) this.open.add(box);
    }
  }

  stepsIn(number) {
    const part = this.parts[number];
    if (!part.items) return [number];
    return part.items.flatMap((item) => this.stepsIn(item));
  }

  countIn(number) {
    this._counts ??= new Map();
    if (!this._counts.has(number)) {
      const items = this.parts[number].items;
      const sum = items ? items.reduce((total, item) => total + this.countIn(item), 0) : 1;
      this._counts.set(number, sum);
    }
    return this._counts.get(number);
  }

  // What a part takes, those inside of it included; null where it is not known for any of them.
  sum(number, metric) {
    const table = (this.sums[metric] ??= new Map());
    if (!table.has(number)) table.set(number, this._sum(number, metric));
    return table.get(number);
  }

  _sum(number, metric) {
    const part = this.parts[number];
    if (metric === "parameters" && part.box === "module") return part.parameters ?? 0;
    if (!part.items) return part[metric] ?? null;
    if (part.box === "control" && part[metric] !== undefined) return part[metric];
    const known = part.items.map((item) => this.sum(item, metric)).filter((value) => value !== null);
    return known.length ? known.reduce((total, value) => total + value, 0) : null;
  }

  shownSum(number, metric) {
    const first = this.firsts.get(number);
    if (this.copiesOf(number) === 1) return this.sum(number, metric);
    const known = this.runs.get(first).map((one) => this.sum(one, metric)).filter((value) => value !== null);
    return known.length ? known.reduce((total, value) => total + value, 0) : null;
  }

  marksIn(number) {
    this._marks ??= new Map();
    if (!this._marks.has(number)) {
      const part = this.parts[number];
      const own = part.marks ? 1 : 0;
      const inside = (part.items || []).reduce((total, item) => total + this.marksIn(item), 0);
      this._marks.set(number, own + inside);
    }
    return this._marks.get(number);
  }

  // Open boxes, the one with the most steps first, for as long as what is shown stays easy to look at; one that holds
  // nearly all of the program is opened even if there is more to look at then.
  openFirst(limit, most) {
    const whole = this.countIn(this.root);
    for (;;) {
      const shown = [...this.open].flatMap((box) => this.items(box)).filter((item) => !this.open.has(item));
      const boxes = shown.filter((item) => this.isBox(item) && this.parts[item].box !== "section" && this.copiesOf(item) === 1);
      const room = (box) => (this.countIn(box) > whole * 0.6 ? most : limit);
      const fitting = boxes.filter((box) => shown.length + this.items(box).length - 1 <= room(box));
      if (!fitting.length) return;
      this.open.add(fitting.reduce((best, box) => (this.countIn(box) > this.countIn(best) ? box : best)));
    }
  }

  // Open the boxes around the first changes, and of equal blocks those that have changed.
  openChanges(limit) {
    const changed = this.order.filter((number) => this.parts[number].marks).slice(0, limit);
    for (const box of changed.flatMap((number) => this.ancestors(number))) this.openAt(box);
    return changed[0];
  }

  openAt(box) {
    const first = this.firsts.get(box);
    if (first !== undefined && first !== null && !this.chosen.has(first)) this.chosen.set(first, box);
    this.open.add(box);
  }
}

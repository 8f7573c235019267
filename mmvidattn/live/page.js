// Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
'use strict';
// Number of classes whose curves are shown, each in a different color.
const MAX_CURVES = 8;
// Dashes of curves. Colors as in visualization/style.py.
const COLORS = 8, DASHES = [[], [7, 3], [2, 3]];
const OTHER = ['--edge', []];
const MAX_EVENTS = 200;
// Minimum seconds on the axis of the curves.
const MIN_SPAN = 15;
// Seconds that a timeline can show, and seconds between its ticks.
const SPANS = [20, 60, 180, 600, 1800, 7200, 28800];
const TICKS = [2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200];
// From this number of sources on, tiles are the default layout.
const MANY = 4;
// Maximum number of classes shown for a search.
const MAX_FOUND = 20;
const MIN_THRESHOLD = 0.01;
// Milliseconds for which a slider ignores the server after the user moved it.
const TOUCHED = 2000;
const WRONG_TOKEN = 4401, TOO_MANY = 1013;

const find = id => document.getElementById(id);
const make = (tag, text, kind) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (kind) node.className = kind;
  return node;
};
const clock = seconds => {
  const tenths = Math.floor(seconds * 10 + 1e-6), two = n => String(n).padStart(2, '0');
  const s = Math.floor(tenths / 10), hours = Math.floor(s / 3600);
  return (hours ? `${hours}:${two(Math.floor(s / 60) % 60)}` : Math.floor(s / 60)) +
    `:${two(s % 60)}.${tenths % 10}`;
};
const setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};
const keyOf = event => `${event.index} ${event.start}`;
const describe = event => `${event.class}, ${clock(event.start)} to ` +
  (event.end === undefined ? 'now' : clock(event.end)) +
  (event.peak === undefined ? '' : `, peak ${event.peak.toFixed(2)}`);
const jpeg = data => 'data:image/jpeg;base64,' + data;

// A canvas needs the computed colors of the style sheet's variables.
const paints = new Map();
function paint(name) {
  if (!paints.has(name)) {
    const probe = document.body.appendChild(make('i'));
    probe.style.color = `var(${name})`;
    paints.set(name, getComputedStyle(probe).color);
    probe.remove();
  }
  return paints.get(name);
}

class Timeline {
  constructor(root, colorOf, open) {
    this.root = root;
    this.colorOf = colorOf;
    this.open = open;
    this.part = kind => root.querySelector(kind);
    this.track = this.part('.track');
    this.strip = this.part('.strip');
    this.lanes = new Map();
    this.buttons = new Map();
    this.sorted = [];
    this.span = 1;
    // True until the user scrolls back.
    this.follows = true;
    this.track.onscroll = () => {
      const {scrollLeft, clientWidth, scrollWidth} = this.track;
      // The width has changed, so the user did not scroll. zoom() comes next.
      if (clientWidth !== this.width) return;
      this.follows = scrollLeft + clientWidth > scrollWidth - 8;
      this.part('.live').hidden = this.follows;
      this.ticks();
    };
    this.track.onclick = ({target}) => { if (target.event) open(target.event); };
    this.track.onkeydown = event => this.key(event);
    this.part('.live').onclick = () => this.follow(true);
    this.part('.in').onclick = () => this.zoom(-1);
    this.part('.out').onclick = () => this.zoom(1);
    new ResizeObserver(() => this.zoom(0)).observe(this.track);
  }

  zoom(by) {
    const last = SPANS.length - 1;
    this.span = Math.min(Math.max(this.span + by, 0), last);
    const seconds = SPANS[this.span], {track} = this;
    const middle = (track.scrollLeft + track.clientWidth / 2) / this.scale;
    this.width = track.clientWidth;
    this.scale = this.width / seconds;
    this.root.style.setProperty('--scale', this.scale);
    setText(this.part('.span'), seconds < 60 ? `${seconds} s` :
      seconds < 3600 ? `${seconds / 60} min` : `${seconds / 3600} h`);
    this.part('.in').disabled = !this.span;
    this.part('.out').disabled = this.span === last;
    if (this.follows) this.follow(true);
    else track.scrollLeft = middle * this.scale - track.clientWidth / 2;
    this.ticks();
  }

  follow(now) {
    if (now) this.follows = true;
    if (this.follows) this.track.scrollLeft = this.track.scrollWidth;
  }

  // Show the time from the first step, or an earlier event, to the last step.
  show(first, last) {
    this.origin ??= Math.floor(first);
    this.root.style.setProperty('--now', Math.max(0, last - this.origin));
    this.follow();
    this.ticks();
  }

  ticks() {
    if (this.origin === undefined || !this.scale) return;
    const step = TICKS.find(s => s * this.scale > 64) || TICKS.at(-1);
    const left = this.origin + this.track.scrollLeft / this.scale;
    const right = left + this.track.clientWidth / this.scale;
    const first = Math.max(Math.ceil(left / step) - 1, 0);
    const last = Math.floor(right / step);
    if (this.shown === `${step} ${first} ${last}`) return;
    this.shown = `${step} ${first} ${last}`;
    const ticks = [];
    for (let i = first; i <= last; i++) {
      const tick = make('span', clock(i * step).slice(0, -2), 'tick number');
      tick.style.setProperty('--at', i * step - this.origin);
      ticks.push(tick);
    }
    this.part('.ticks').replaceChildren(...ticks);
  }

  // Show events, earliest first. Existing buttons stay and keep their focus.
  update(events) {
    this.sorted = events;
    if (events.length)
      this.origin = Math.min(this.origin ?? Infinity, Math.floor(events[0].start));
    const keys = new Set(events.map(keyOf));
    const names = new Set(events.map(event => event.class));
    for (const [key, button] of this.buttons)
      if (!keys.has(key)) { button.remove(); this.buttons.delete(key); }
    for (const [name, {lane, label}] of this.lanes)
      if (!names.has(name)) {
        lane.remove(); label.remove(); this.lanes.delete(name);
      }
    for (const name of names)
      if (!this.lanes.has(name)) {
        const lane = make('div', undefined, 'lane'), label = make('span', name);
        label.title = name;
        this.strip.append(lane);
        this.part('.names').append(label);
        this.lanes.set(name, {lane, label});
      }
    for (const event of events) {
      let button = this.buttons.get(keyOf(event));
      if (!button) {
        button = make('button');
        button.tabIndex = -1;
        this.lanes.get(event.class).lane.append(button);
        this.buttons.set(keyOf(event), button);
      }
      button.event = event;
      button.className = event.end === undefined ? 'running' : '';
      button.style.setProperty('--at', event.start - this.origin);
      button.style.setProperty('--for', (event.end ?? event.start) - event.start);
      button.style.setProperty('--color', `var(${this.colorOf(event.class)})`);
      button.title = describe(event);
      button.ariaLabel = describe(event);
    }
    this.part('.none').hidden = events.length > 0;
    // Tab reaches only the latest event, or the one that has the focus.
    if (events.length && !this.track.contains(document.activeElement))
      this.makeTabStop(events.at(-1));
  }

  makeTabStop(event) {
    this.buttons.get(this.current)?.setAttribute('tabindex', -1);
    this.current = keyOf(event);
    const button = this.buttons.get(this.current);
    button.tabIndex = 0;
    return button;
  }

  key(press) {
    const now = press.target.event;
    if (!now || press.ctrlKey || press.altKey || press.metaKey) return;
    const lanes = [...this.lanes.keys()], at = this.sorted.indexOf(now);
    const nearest = name => this.sorted.filter(e => e.class === name).reduce(
      (a, b) => Math.abs(b.start - now.start) < Math.abs(a.start - now.start) ? b : a);
    const lane = by => {
      const name = lanes[lanes.indexOf(now.class) + by];
      return name === undefined ? now : nearest(name);
    };
    const ways = {
      ArrowLeft: () => this.sorted[at - 1], ArrowRight: () => this.sorted[at + 1],
      ArrowUp: () => lane(-1), ArrowDown: () => lane(1),
      Home: () => this.sorted[0], End: () => this.sorted.at(-1),
      '+': () => this.zoom(-1), '-': () => this.zoom(1)};
    if (!ways[press.key]) return;
    press.preventDefault();
    const to = ways[press.key]();
    if (to) this.makeTabStop(to).focus();
  }
}

class Source {
  constructor(number, state, {history, read_only}) {
    this.number = number;
    this.name = state.name;
    this.classes = state.classes;
    this.history = history;
    this.readOnly = read_only;
    this.steps = state.past.map(step => ({time: step.time, scores: step.scores}));
    this.events = new Map();
    this.rows = new Map();
    this.touched = new Map();
    this.names = this.shown();
    this.root = find('card').content.firstElementChild.cloneNode(true);
    this.part = kind => this.root.querySelector(kind);
    this.part('h2').textContent = this.part('h2').title = state.name;
    this.root.ariaLabel = state.name;
    find('sources').append(this.root);
    this.canvas = this.part('canvas');
    this.timeline = new Timeline(
      this.part('.timeline'), name => this.style(name)[0],
      event => viewer.open(this, event));
    this.part('.find').hidden = this.classes.length <= MAX_CURVES;
    this.part('.find').oninput = () => this.draw();
    this.part('.reset').onclick = () => this.reset();
    this.part('.open-card').onclick = ({target}) => {
      const open = this.root.classList.toggle('open');
      target.ariaExpanded = open;
      target.textContent = open ? 'Close' : 'Details';
    };
    this.show(state.picture);
    this.state(state);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.draw();
  }

  show(picture) {
    if (!picture) return;
    const image = this.part('.picture img');
    image.src = jpeg(picture);
    image.hidden = false;
  }

  step(message) {
    this.steps.push({time: message.time, scores: message.scores});
    const first = message.time - this.history;
    while (this.steps[0].time < first) this.steps.shift();
    this.show(message.picture);
    this.addEvents(message.events);
    for (const event of message.events)
      if (event.event === 'start')
        find('announcement').textContent = `${this.name}: ${event.class} started`;
    this.draw();
  }

  addEvents(events) {
    let changed = false;
    for (const event of events) {
      const known = this.events.get(keyOf(event));
      // A repeated start adds nothing.
      if (known && (event.event === 'start' || known.end === event.end)) continue;
      changed = true;
      this.events.set(keyOf(event), Object.assign(known || {}, event));
    }
    if (!changed) return;
    const known = [...this.events.values()].sort((a, b) => a.start - b.start);
    for (const event of known.splice(0, known.length - MAX_EVENTS))
      this.events.delete(keyOf(event));
    this.listEvents();
  }

  listEvents() {
    const sorted = this.sorted();
    this.timeline.update(sorted);
    this.part('.list tbody').replaceChildren(...sorted.toReversed().map(event => {
      const row = make('tr'), name = make('td', undefined, 'name');
      name.append(this.swatch(event.class), event.class);
      const cell = text => make('td', text, 'number');
      row.append(name, cell(clock(event.start)),
        cell(event.end === undefined ? 'now' : clock(event.end)),
        cell(event.peak === undefined ? '' : event.peak.toFixed(2)));
      row.title = describe(event);
      row.onclick = () => viewer.open(this, event);
      return row;
    }));
    this.part('.now').replaceChildren(...this.running().map(event => {
      const item = make('li');
      item.append(this.swatch(event.class), `${event.class} since ${
        clock(event.start)}`);
      return item;
    }));
  }

  sorted() {
    return [...this.events.values()].sort((a, b) => a.start - b.start);
  }

  running() {
    return this.sorted().filter(event => event.end === undefined);
  }

  swatch(name) {
    const swatch = make('span', undefined, 'swatch');
    swatch.style.background = `var(${this.style(name)[0]})`;
    return swatch;
  }

  state(message) {
    this.addEvents(message.events);
    this.status(message);
    // Thresholds of a source that has ended or failed have no effect.
    this.fixed = this.readOnly || message.status !== 'running' &&
      !message.status.startsWith('lost');
    const {on, off, changed, tuned} = message.thresholds, now = performance.now();
    for (const [name, when] of this.touched)
      if (now - when > TOUCHED) this.touched.delete(name);
      else if (this.thresholds.changed[name])
        changed[name] = this.thresholds.changed[name];
      else delete changed[name];
    this.thresholds = {on, off, changed, tuned};
    setText(this.part('.rule'), (this.fixed ?
      'The line is the score at which an action starts. ' :
      'A slider sets the score at which an action starts, from the next step on. ') +
      (Object.keys(tuned).length ?
        'Classes with tuned thresholds begin at these. The action ends at the dotted line.' :
        off === on ? 'The action ends when its score falls below this threshold.' :
        `The action ends below ${(off / on * 100).toFixed(0)} % of it (dotted).`));
    this.latency(Object.entries(message.latency));
    const counts = this.part('.steps');
    counts.replaceChildren(
      `${message.steps} steps at ${+message.rate.toFixed(2)} Hz, `);
    for (const [what, number] of [['dropped, ', message.dropped],
                                  ['missing', message.missing]])
      counts.append(make(number ? 'b' : 'span', number + ' ' + what));
    for (const [name, number] of Object.entries(message.lost))
      counts.append(', ', make('b', `${number} items lost by ${name}`));
    this.classList();
  }

  latency(stages) {
    const row = (tag, title, text) => {
      const row = make('tr');
      row.append(make('th', title), ...stages.map(([stage, ms]) => make(
        tag, text(stage, ms), stage === 'total' ? 'number sum' : 'number')));
      return row;
    };
    this.part('.latency thead').replaceChildren(
      row('th', 'ms', stage => stage));
    this.part('.latency tbody').replaceChildren(
      row('td', 'median', (_, ms) => ms.median.toFixed(1)),
      row('td', '95 %', (_, ms) => ms.p95.toFixed(1)));
  }

  // A running source without new steps is shown as stalled.
  status({status, age, rate}) {
    const late = age > Math.max(3, 4 / rate);
    const kind = status === 'ended' ? '' : status.startsWith('lost') ? 'warn' :
      status !== 'running' ? 'bad' : late ? 'warn' : 'good';
    const pill = this.part('.state'), veil = this.part('.veil');
    setText(pill, status === 'running' && late ? 'stalled' : status);
    pill.title = status;
    pill.className = 'pill state ' + kind;
    const dead = kind === 'warn' || kind === 'bad';
    this.root.classList.toggle('dead', dead);
    veil.hidden = !dead && (age !== null || status !== 'running');
    setText(veil, age === null ? (dead ? status : 'waiting for the first step') :
      (status === 'running' ? 'no new frames' : status) +
      `, last step ${Math.round(age)} s ago`);
  }

  threshold(name) {
    return this.thresholds.changed[name] || this.initial(name);
  }

  initial(name) {
    const {on, off, tuned} = this.thresholds;
    return tuned[name] || [on, off];
  }

  // Request a threshold from the server; null restores the initial one.
  setThreshold(name, on) {
    if (!send({type: 'threshold', source: this.number, class: name, on})) return;
    const {changed} = this.thresholds, [first, off] = this.initial(name);
    if (on === null) delete changed[name];
    else changed[name] = [on, on * off / first];
    this.touched.set(name, performance.now());
    this.draw();
  }

  reset() {
    for (const name of Object.keys(this.thresholds.changed))
      this.setThreshold(name, null);
  }

  // Color and dashes of a class, by its place among the model's actions.
  style(name) {
    const place = this.classes.indexOf(name);
    return [`--c${place % COLORS}`, DASHES[Math.floor(place / COLORS) % DASHES.length]];
  }

  shown() {
    const peak = new Map();
    for (const step of this.steps)
      for (const [name, score] of Object.entries(step.scores))
        peak.set(name, Math.max(peak.get(name) || 0, score));
    return [...peak.keys()].sort((a, b) => peak.get(b) - peak.get(a))
      .slice(0, MAX_CURVES);
  }

  draw() {
    this.names = this.shown();
    this.curves();
    this.classList();
    if (!this.steps.length) return;
    const last = this.steps.at(-1).time;
    setText(this.part('.clock'), clock(last));
    this.timeline.show(this.steps[0].time, last);
  }

  curves() {
    const box = this.canvas.getBoundingClientRect();
    if (!box.width) return;
    const scale = window.devicePixelRatio || 1, {names} = this;
    this.canvas.width = box.width * scale;
    this.canvas.height = box.height * scale;
    const g = this.canvas.getContext('2d');
    g.scale(scale, scale);
    const left = 30, top = 8, right = box.width - 8, bottom = box.height - 22;
    const last = this.steps.length ? this.steps.at(-1).time : 0;
    const first = this.steps.length ? this.steps[0].time : 0;
    const span = Math.min(Math.max(last - first, MIN_SPAN), this.history);
    const end = Math.max(last, first + span);
    const x = time => right - (end - time) / span * (right - left);
    const y = score => bottom - score * (bottom - top);
    const line = (from, to) => {
      g.beginPath(); g.moveTo(...from); g.lineTo(...to); g.stroke();
    };
    g.font = '11px system-ui, sans-serif';
    g.fillStyle = paint('--quiet');
    g.strokeStyle = paint('--line');
    g.lineWidth = 1;
    g.textBaseline = 'middle';
    g.textAlign = 'right';
    for (const score of [0, 0.25, 0.5, 0.75, 1]) {
      line([left, y(score)], [right, y(score)]);
      if (score * 2 % 1 === 0) g.fillText(score.toFixed(1), left - 6, y(score));
    }
    g.textAlign = 'center';
    g.textBaseline = 'top';
    const tick = span > 30 ? 10 : 5;
    for (let t = Math.ceil((end - span) / tick) * tick; t <= end; t += tick) {
      line([x(t), bottom], [x(t), bottom + 4]);
      g.fillText(clock(t).slice(0, -2), Math.min(x(t), right - 12), bottom + 7);
    }
    g.save();
    g.beginPath();
    g.rect(left, 0, right - left, box.height);
    g.clip();
    for (const event of this.events.values()) {
      if (!names.includes(event.class)) continue;
      const from = x(event.start);
      const to = x(event.end === undefined ? last : event.end);
      g.fillStyle = paint(this.style(event.class)[0]);
      g.globalAlpha = 0.14;
      g.fillRect(from, top, to - from, bottom - top);
      g.globalAlpha = 1;
      g.fillRect(from, bottom - 3, to - from, 3);
    }
    g.lineJoin = 'round';
    g.lineWidth = 2;
    for (const name of [...names].reverse()) {
      const [color, dash] = this.style(name);
      g.strokeStyle = paint(color);
      g.setLineDash(dash);
      g.beginPath();
      this.steps.forEach((step, i) => {
        const at = [x(step.time), y(step.scores[name] || 0)];
        const gap = i && step.time - this.steps[i - 1].time > 1;
        if (i && !gap) g.lineTo(...at); else g.moveTo(...at);
      });
      g.stroke();
    }
    // Thresholds of the class whose slider is in use.
    if (this.rows.has(this.inUse)) {
      g.strokeStyle = paint('--text');
      g.lineWidth = 1;
      this.threshold(this.inUse).forEach((score, i) => {
        g.setLineDash(i ? [2, 4] : [6, 3]);
        line([left, y(score)], [right, y(score)]);
      });
    }
    g.restore();
  }

  // List shown classes, classes with a changed threshold, and classes that
  // match the search. Rows stay in place, so that a slider can be dragged.
  classList() {
    const scores = this.steps.length ? this.steps.at(-1).scores : {};
    const query = this.part('.find').value.trim().toLowerCase();
    const found = query ? this.classes.filter(
      name => name.toLowerCase().includes(query)).slice(0, MAX_FOUND) : [];
    const {changed} = this.thresholds;
    const wanted = new Set([...this.names, ...Object.keys(changed), ...found]);
    const running = new Set(this.running().map(event => event.class));
    for (const [name, {row}] of this.rows)
      if (!wanted.has(name) && name !== this.inUse) {
        row.remove();
        this.rows.delete(name);
      }
    let before = null;
    for (const name of this.classes.filter(name => wanted.has(name)).reverse()) {
      if (!this.rows.has(name)) this.addRow(name, before);
      const row = this.rows.get(name), score = scores[name];
      const [on, off] = this.threshold(name);
      const [color, dash] = this.names.includes(name) ? this.style(name) : OTHER;
      row.line.style.stroke = row.fill.style.background = `var(${color})`;
      row.line.setAttribute('stroke-dasharray', dash.join(' '));
      row.fill.style.width = 100 * (score || 0) + '%';
      row.off.style.left = 100 * off + '%';
      setText(row.score, score === undefined ? '–' : score.toFixed(2));
      setText(row.on, on.toFixed(2));
      row.on.classList.toggle('changed', name in changed);
      row.row.classList.toggle('running', running.has(name));
      row.slider.disabled = this.fixed;
      if (row.slider.valueAsNumber !== on) row.slider.value = on;
      row.slider.ariaValueText = `${on.toFixed(2)}, ends below ${off.toFixed(2)}`;
      before = row.row;
    }
    this.part('.reset').hidden = this.fixed || !Object.keys(changed).length;
    this.canvas.ariaLabel = 'scores of the last minute; now ' + (this.names.map(
      name => `${name} ${(scores[name] || 0).toFixed(2)}`).join(', ') || 'none');
  }

  addRow(name, before) {
    const svg = 'http://www.w3.org/2000/svg';
    const sample = document.createElementNS(svg, 'svg');
    const line = document.createElementNS(svg, 'line');
    for (const [key, value] of Object.entries(
      {x1: 0, x2: 22, y1: 4, y2: 4, 'stroke-width': 3}))
      line.setAttribute(key, value);
    sample.append(line);
    const row = make('li'), label = make('span', name, 'name');
    label.title = name;
    const meter = make('div', undefined, 'meter'), bar = make('div');
    const fill = make('i'), off = make('b'), slider = make('input');
    bar.append(fill, off);
    Object.assign(slider, {type: 'range', min: 0, max: 1, step: 0.01});
    slider.ariaLabel = `threshold of ${name}`;
    slider.oninput = () => this.setThreshold(
      name, Math.max(slider.valueAsNumber, MIN_THRESHOLD));
    slider.onfocus = () => { this.inUse = name; this.curves(); };
    slider.onblur = () => { this.inUse = undefined; this.curves(); };
    meter.append(bar, slider);
    const score = make('span', '', 'number'), on = make('span', '', 'number');
    score.title = 'current score';
    on.title = 'score at which the action starts';
    row.append(sample, label, meter, score, on);
    this.part('.classes').insertBefore(row, before);
    this.rows.set(name, {row, line, fill, off, slider, score, on});
  }
}

// Viewer for the pictures of an event.
const viewer = {
  dialog: find('viewer'),
  part: kind => find('viewer').querySelector(kind),

  open(source, event) {
    Object.assign(this, {source, event, frames: [], times: []});
    this.stop();
    const [color] = source.style(event.class);
    this.part('.swatch').style.background = `var(${color})`;
    this.part('.picture').style.setProperty('--color', `var(${color})`);
    find('viewer-title').textContent = event.class;
    this.part('.about').textContent = `${source.name} · ${describe(event)}`;
    this.part('img').hidden = this.part('.player').hidden = true;
    const asked = send({type: 'clip', source: source.number,
      index: event.index, start: event.start});
    this.say(asked ? 'Loading the pictures ...' : 'Not connected.');
    this.part('.earlier').disabled = !this.beside(-1);
    this.part('.later').disabled = !this.beside(1);
    if (!this.dialog.open) this.dialog.showModal();
  },

  key(press) {
    const by = {n: 1, p: -1}[press.key.toLowerCase()];
    if (!by || press.ctrlKey || press.altKey || press.metaKey) return;
    press.preventDefault();
    this.go(by);
  },

  say(text) {
    this.part('.empty').textContent = text;
    this.part('.empty').hidden = !text;
  },

  beside(by) {
    const sorted = this.source.sorted();
    const at = sorted.findIndex(e => keyOf(e) === keyOf(this.event));
    return sorted[at + by];
  },

  go(by) {
    const event = this.beside(by);
    if (event) this.open(this.source, event);
  },

  answer(message) {
    if (!this.dialog.open || message.source !== this.source.number ||
        keyOf(message) !== keyOf(this.event)) return;
    this.times = message.times;
    this.frames = message.frames;
    this.say('');
    if (!this.frames.length)
      return this.say('The pictures of this event have been deleted.');
    this.part('img').hidden = this.part('.player').hidden = false;
    this.part('.player input').max = this.frames.length - 1;
    this.show(0);
    this.play(!matchMedia('(prefers-reduced-motion: reduce)').matches);
  },

  show(at) {
    const time = this.times[at], slider = this.part('.player input');
    this.at = at;
    this.part('img').src = jpeg(this.frames[at]);
    slider.value = at;
    slider.ariaValueText = clock(time);
    setText(this.part('.at'), clock(time));
    this.part('.picture').classList.toggle('during',
      time > this.event.start && time <= (this.event.end ?? Infinity));
  },

  play(on) {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.part('.play').textContent = on ? 'Pause' : 'Play';
    if (!on) return;
    const next = (this.at + 1) % this.frames.length;
    const wait = next ? this.times[next] - this.times[this.at] : 1;
    this.timer = setTimeout(() => { this.show(next); this.play(true); },
      Math.min(Math.max(wait, .05), 1) * 1000);
  },

  stop() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.part('.picture').classList.remove('during');
  },
};
viewer.part('.close').onclick = () => viewer.dialog.close();
viewer.part('.play').onclick = () => viewer.play(!viewer.timer);
viewer.part('.earlier').onclick = () => viewer.go(-1);
viewer.part('.later').onclick = () => viewer.go(1);
viewer.part('.player input').oninput = ({target}) => {
  viewer.play(false);
  viewer.show(target.valueAsNumber);
};
viewer.dialog.onkeydown = press => viewer.key(press);
viewer.dialog.onclose = () => viewer.stop();
// A click outside closes the viewer.
viewer.dialog.onclick = ({target}) => {
  if (target === viewer.dialog) viewer.dialog.close();
};

let sources = [], socket, wait = 1;

function send(message) {
  if (socket?.readyState !== WebSocket.OPEN) return false;
  socket.send(JSON.stringify(message));
  return true;
}

function connection(text, kind) {
  find('connection').textContent = text;
  find('connection').className = 'pill ' + kind;
  document.body.classList.toggle('offline', kind !== 'good');
}

function hello(message) {
  wait = 1;
  connection('connected', 'good');
  find('login').hidden = true;
  find('sources').replaceChildren();
  sources = message.sources.map(
    (one, i) => new Source(i, one, message));
  if (viewer.dialog.open) viewer.source = sources[viewer.source.number];
  find('layout').hidden = sources.length < 2;
  layout(localStorage.getItem('layout') ||
    (sources.length < MANY ? 'cards' : 'tiles'));
}

function connect() {
  const secure = location.protocol === 'https:' ? 's' : '';
  socket = new WebSocket(`ws${secure}://${location.host}/live`);
  socket.onopen = () => socket.send(sessionStorage.getItem('token') || '');
  socket.onmessage = ({data}) => {
    const message = JSON.parse(data);
    if (message.type === 'hello') hello(message);
    else if (message.type === 'clip') viewer.answer(message);
    else sources[message.source][message.type](message);
  };
  socket.onclose = ({code, reason}) => {
    if (code === WRONG_TOKEN) {
      const given = sessionStorage.getItem('token');
      connection(given ? reason : 'locked', 'bad');
      find('login-error').textContent = given ?
        'This token is wrong. After a restart the program may have a new token.' : '';
      sessionStorage.removeItem('token');
      find('sources').replaceChildren();
      find('layout').hidden = true;
      viewer.dialog.close();
      find('login').hidden = false;
      find('token').focus();
      return;
    }
    connection(code === TOO_MANY ? reason : 'not connected, reconnecting',
      'warn');
    setTimeout(connect, wait * 1000);
    wait = Math.min(wait * 2, 8);
  };
}

function layout(kind) {
  find('sources').classList.toggle('tiles', kind === 'tiles');
  find('layout').ariaPressed = kind === 'tiles';
}

function theme(kind) {
  if (kind === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = kind;
  find('theme').replaceChildren(make('span', 'Theme: ', 'wide'), kind);
  find('theme').ariaLabel = `Theme: ${kind}`;
  paints.clear();
  for (const source of sources) source.draw();
}

find('login').onsubmit = event => {
  event.preventDefault();
  sessionStorage.setItem('token', find('token').value);
  find('token').value = '';
  connect();
};
find('layout').onclick = ({target}) => {
  const kind = target.ariaPressed === 'true' ? 'cards' : 'tiles';
  localStorage.setItem('layout', kind);
  layout(kind);
};
find('theme').onclick = () => {
  const kinds = ['auto', 'light', 'dark'];
  const now = kinds.indexOf(document.documentElement.dataset.theme || 'auto');
  const next = kinds[(now + 1) % kinds.length];
  localStorage.setItem('theme', next);
  theme(next);
};
theme(localStorage.getItem('theme') || 'auto');
matchMedia('(prefers-color-scheme: light)').onchange =
  () => theme(localStorage.getItem('theme') || 'auto');

const token = new URLSearchParams(location.hash.slice(1)).get('token');
if (token) {
  sessionStorage.setItem('token', token);
  history.replaceState(null, '', location.pathname);
}
connect();

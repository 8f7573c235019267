// Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
'use strict';
// Marks of events: right, wrong, another class, missed. page.js has the rest.
const SIGNS = {right: '✓', wrong: '✗', class: '⇄', missed: '+'};
const KEYS = {r: 'right', w: 'wrong', u: 'none'};
// Seconds of a missed event before the user sets its start.
const MISSED_SECONDS = 3;
// Marked events without a detection on the page are shown if they started in
// these last seconds, the longest time on a timeline.
const PAST = 28800;

const wordsOf = mark => mark.mark === 'class' ? `marked as ${mark.label}` :
  mark.mark === 'missed' ? 'added as missed' : `marked ${mark.mark}`;
// Parse seconds, m:ss or h:mm:ss.
function secondsOf(text) {
  const parts = text.trim().split(':');
  if (parts.length > 3 || !parts.every(part => /^\d+(\.\d*)?$/.test(part)))
    return NaN;
  return parts.reduce((sum, part) => 60 * sum + Number(part), 0);
}

class Marks {
  constructor(source, state) {
    this.source = source;
    this.part = kind => source.root.querySelector(kind);
    // Null if the program keeps no marks.
    this.kept = state !== null;
    this.canMark = this.kept && !source.readOnly;
    this.marks = new Map();
    this.asked = [];
    this.form = this.part('.missing');
    this.form.querySelector('select').append(
      ...source.classes.map(name => new Option(name, name)));
    this.part('.miss').hidden = !this.canMark;
    this.part('.no-marks').hidden = this.kept;
    this.part('.miss').onclick = () => this.open();
    this.part('.undo').onclick = () => this.undo();
    this.form.querySelector('.cancel').onclick = () => this.close();
    this.form.onsubmit = event => { event.preventDefault(); this.add(); };
    for (const input of this.inputs()) {
      input.oninput = () => this.range();
      input.onkeydown = event => this.nudge(event);
      input.closest('span').querySelector('button').onclick = () => {
        input.value = clock(this.source.now());
        this.range();
      };
    }
    this.form.onkeydown = event => {
      if (event.key === 'Escape') this.close();
    };
    source.root.addEventListener('keydown', event => {
      if (event.key.toLowerCase() === 'm' && isCommand(event) && this.canMark) {
        event.preventDefault();
        this.open();
      }
    });
    if (this.kept) this.store(state);
  }

  inputs() { return [...this.form.querySelectorAll('input')]; }

  store({revision, marks}) {
    this.revision = revision;
    this.marks = new Map(marks.map(
      mark => [`${mark.detected || '+' + mark.label} ${mark.start}`, mark]));
  }

  of(event) {
    return this.marks.get(event.missed ? `+${event.class} ${event.start}` :
      `${event.class} ${event.start}`);
  }

  // Marked events that the page has no detection of.
  extra(events, now) {
    const known = new Set(events.map(event => `${event.class} ${event.start}`));
    const first = this.source.length ? 0 : now - PAST;
    return [...this.marks].filter(([key, mark]) => !known.has(key) &&
      mark.start <= now && mark.start >= first).map(([key, mark]) => ({
      class: mark.detected || mark.label, index: key, start: mark.start,
      end: mark.end, peak: mark.score ?? undefined,
      missed: mark.mark === 'missed', noClip: !this.source.length}));
  }

  receive(message) {
    this.store(message);
    // The answers come in the order of the requests.
    const asked = message.error === undefined ? undefined : this.asked.shift();
    if (message.error) this.fail(message.error);
    else if (asked) this.done(asked);
    this.source.listEvents();
    if (viewer.dialog.open && viewer.source === this.source) viewer.marked();
  }

  // Mark an event; 'none' removes the mark.
  set(event, mark, label) {
    if (event.end === undefined)
      return this.fail('The action is in progress. Mark it when it has ended.');
    const old = this.of(event);
    if (mark === 'none' && !old) return;
    if (event.missed && mark !== 'none')
      return this.fail('You added this event. Remove it and add it again.');
    this.ask({mark, class: event.missed ? '' : event.class, start: event.start,
      label: event.missed ? event.class : label ?? ''}, old);
  }

  ask(message, old) {
    const text = {type: 'mark', source: this.source.number, ...message};
    if (!send(text))
      return this.fail('Not connected: the mark was not saved.');
    this.asked.push({message, old});
  }

  done({message, old}) {
    this.removed = message.mark === 'none' ? old : undefined;
    const name = message.class || message.label;
    const what = this.removed ? 'mark removed' :
      wordsOf({mark: message.mark, label: message.label});
    this.say(`${name} at ${clock(message.start)}: ${what}.`);
    if (message.mark === 'missed') this.close();
  }

  undo() {
    const {mark, detected, start, end, label} = this.removed;
    this.ask({mark, class: detected, start, end, label});
  }

  say(text) {
    this.fail('');
    this.part('.marked').hidden = false;
    this.part('.marked span').textContent = text;
    this.part('.undo').hidden = !this.removed;
    viewer.part('.marked').textContent = text;
  }

  fail(text) {
    for (const node of [this.part('.mark-error'), viewer.part('.mark-error')]) {
      node.textContent = text;
      node.hidden = !text;
    }
  }

  // Open the form of a missed event, with the time that the user can change.
  open(draft) {
    if (draft?.lost)
      this.fail('The connection was lost. Check whether the mark was saved.');
    if (draft && !draft.entries) return;
    const now = this.source.cursor ?? this.source.now(), [from, to] = this.inputs();
    const select = this.form.querySelector('select');
    if (this.form.hidden) {
      from.value = clock(Math.max(0, now - MISSED_SECONDS));
      to.value = clock(now);
    }
    this.form.hidden = false;
    if (draft) {
      [from.value, to.value, select.value] = draft.entries;
    } else {
      this.fail('');
      select.focus();
    }
    // The timeline stays still, so that the user can click it.
    this.source.timeline.hold(true);
    this.setsEnd = false;
    this.range();
  }

  close() {
    if (this.form.hidden) return;
    const focused = this.form.contains(document.activeElement);
    this.form.hidden = true;
    this.range();
    this.source.timeline.hold(false);
    if (focused) this.part('.miss').focus();
  }

  // What to keep when the connection was lost: the entries of an open form,
  // and whether a request has no answer.
  draft() {
    return {lost: this.asked.length > 0, entries: this.form.hidden ? undefined : [
      ...this.inputs().map(input => input.value),
      this.form.querySelector('select').value]};
  }

  times() { return this.inputs().map(input => secondsOf(input.value)); }

  add() {
    const [start, end] = this.times();
    if (!(start < end) || Number.isNaN(start + end))
      return this.fail('The start must be before the end; write seconds, m:ss ' +
        'or h:mm:ss.');
    this.ask({mark: 'missed', class: '', start, end,
      label: this.form.querySelector('select').value});
  }

  nudge(event) {
    const by = {ArrowUp: .1, ArrowDown: -.1}[event.key];
    const now = secondsOf(event.target.value);
    if (!by || Number.isNaN(now)) return;
    event.preventDefault();
    event.target.value = clock(Math.max(0, now + by));
    this.range();
  }

  // A click on the timeline sets the start, the next one the end.
  clicked(time) {
    if (this.form.hidden) return false;
    const [from, to] = this.inputs();
    const first = this.setsEnd ? secondsOf(from.value) : time;
    from.value = clock(Math.max(0, Math.min(first, time)));
    to.value = clock(this.setsEnd ? Math.max(first, time) : Math.max(
      time + .1, secondsOf(to.value) || 0));
    this.setsEnd = !this.setsEnd;
    this.range();
    return true;
  }

  range() {
    const node = this.part('.range'), [start, end] = this.times();
    node.hidden = this.form.hidden || !(start < end);
    node.style.setProperty('--at', start - this.source.timeline.origin);
    node.style.setProperty('--for', end - start);
  }
}

// True for a key that is a command, not text for an input.
function isCommand(event) {
  return !event.ctrlKey && !event.altKey && !event.metaKey &&
    !event.target.closest?.('input:not([type=range]), select, dialog');
}

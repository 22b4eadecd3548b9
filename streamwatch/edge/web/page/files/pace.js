// Repeats a request after every report, within a limit of bytes a second that does not count the first answers.

import { spent } from "./api.js";

const BYTES_PER_SECOND = 1_000;
const SHORTEST_MS = 800;
const LONGEST_MS = 12_000;

export class Pace {
  // ask: function that fetches and draws; if it fails, it is called again after the next report
  constructor(ask) {
    this.ask = ask;
    this.free = 0;
    this.ended = false;
  }

  // Asks again, as there may be a new report.
  poke() {
    this.wanted = true;
    this.next();
  }

  // Asks again at once, as the user chose something else.
  hurry() {
    this.hurried = true;
    this.free = 0;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.poke();
  }

  end() {
    this.ended = true;
    clearTimeout(this.timer);
  }

  next() {
    if (this.busy || this.timer !== undefined || !this.wanted || this.ended) return;
    const wait = this.free - performance.now();
    if (wait > 0) {
      this.timer = setTimeout(() => {
        this.timer = undefined;
        this.next();
      }, wait);
      return;
    }
    this.turn();
  }

  async turn() {
    this.wanted = this.hurried = false;
    this.busy = true;
    const before = spent();
    try {
      await this.ask();
    } catch {
      // the stream of news reports a lost connection, and asks for the token
    } finally {
      this.busy = false;
      const worth = this.loaded ? (1_000 * (spent() - before)) / BYTES_PER_SECOND : 0;
      this.loaded = true;
      this.free = this.hurried ? 0 : performance.now() + Math.min(LONGEST_MS, Math.max(SHORTEST_MS, worth));
      this.next();
    }
  }
}

// Asks again after every report, and spends at most so many bytes a second on it, the first answers left out.

import { spent } from "./api.js";

const BYTES_PER_SECOND = 1_000;
const SHORTEST_MS = 800;
const LONGEST_MS = 12_000;

export class Pace {
  // ask: fetches and draws; what fails is tried again after the next report
  constructor(ask) {
    this.ask = ask;
    this.free = 0;
    this.ended = false;
  }

  // There may be news.
  poke() {
    this.wanted = true;
    this.next();
  }

  // Somebody chose something else to be shown.
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
      // the stream of news shows that the connection is lost, and asks for the token
    } finally {
      this.busy = false;
      const worth = this.loaded ? (1_000 * (spent() - before)) / BYTES_PER_SECOND : 0;
      this.loaded = true;
      this.free = this.hurried ? 0 : performance.now() + Math.min(LONGEST_MS, Math.max(SHORTEST_MS, worth));
      this.next();
    }
  }
}

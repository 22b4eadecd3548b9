// Repeats a request after every report, within a limit of bytes a second that does not count the first answers.

import { spent, Unauthorized } from "./api.js";

const BYTES_PER_SECOND = 1_000;
const SHORTEST_MS = 800;
const LONGEST_MS = 12_000;
const RETRY_MS = 5_000; // an idle daemon has no report that would ask again

export class Pace {
  // ask: function that fetches and draws; if it fails, it is called again after a while
  constructor(ask) {
    this.ask = ask;
    this.free = 0;
    this.ended = false;
    this.failures = 0; // since it last succeeded
  }

  // Time since when it fails, in seconds; null unless it failed repeatedly.
  get failing() {
    return this.failures > 1 ? this.failed : null;
  }

  // Asks again, as there may be a new report.
  poke() {
    this.wanted = true;
    this.next();
  }

  // Asks again at once, as the user chose something else.
  hurry() {
    this.hurried = true;
    this.failures = 0;
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
    let shortest = SHORTEST_MS;
    try {
      await this.ask();
      this.failures = 0;
    } catch (error) {
      // The stream of news asks for the token; what else fails is shown, and asked again unless in the background.
      if (!(error instanceof Unauthorized)) {
        this.failed = this.failures ? this.failed : Date.now() / 1000;
        this.failures += 1;
        this.wanted = !document.hidden;
        shortest = RETRY_MS;
      }
    } finally {
      this.busy = false;
      const worth = this.loaded ? (1_000 * (spent() - before)) / BYTES_PER_SECOND : 0;
      this.loaded = true;
      this.free = this.hurried ? 0 : performance.now() + Math.min(LONGEST_MS, Math.max(shortest, worth));
      this.next();
    }
  }
}

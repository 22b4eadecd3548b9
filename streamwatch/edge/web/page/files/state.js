// Shared state of the page: number of models, recent alarms and the daemon's health.

const ALARMS_KEPT = 50;

export const state = {
  published: null,
  counts: null, // of models, by verdict
  alarms: [],
  health: null,
  lost: null, // why there is no connection, for so long that it is shown
};

// Applies an event of the stream of news.
export function apply({ published_timestamp_seconds: published, alarms }) {
  state.published = published;
  state.alarms = [...alarms, ...state.alarms].slice(0, ALARMS_KEPT);
}

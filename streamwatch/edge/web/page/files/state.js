// What is known of all models and of the daemon, as the news and its own answers report it.

const ALARMS_KEPT = 50;

export const state = {
  published: null,
  counts: null, // of models, by verdict
  alarms: [],
  health: null,
  lost: false, // for so long that it is shown
};

// Applies an event of the stream.
export function apply({ published_timestamp_seconds: published, alarms }) {
  state.published = published;
  state.alarms = [...alarms, ...state.alarms].slice(0, ALARMS_KEPT);
}

// What is earlier of all models, as the stream tells it.

const ALARMS_KEPT = 50;

export const state = {
  forgetting: null,
  published: null,
  models: new Map(),
  membership: 0, // grows where a model comes or goes
  alarms: [],
  health: null,
  lost: false, // for so long that it is told
};

export const alarmKey = (alarm) => `${alarm.model}\n${alarm.detector}\n${alarm.ordinal}\n${alarm.timestamp_seconds}`;

// Applies an event of the stream; returns the alarms that are new to somebody who watches.
export function apply(event, data) {
  state.published = data.published_timestamp_seconds;
  state.forgetting = data.forgetting;
  if (event === "overview") {
    const earlier = new Set(state.alarms.map(alarmKey));
    const first = state.alarms.length === 0;
    state.models = new Map(Object.entries(data.models));
    state.membership += 1;
    state.alarms = data.alarms;
    return first ? [] : data.alarms.filter((alarm) => !earlier.has(alarmKey(alarm)));
  }
  const before = state.models.size;
  for (const [name, row] of Object.entries(data.models)) state.models.set(name, row);
  if (state.models.size !== before || data.gone.length) state.membership += 1;
  for (const name of data.gone) state.models.delete(name);
  state.alarms = [...data.alarms, ...state.alarms].slice(0, ALARMS_KEPT);
  return data.alarms;
}

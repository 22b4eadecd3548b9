// Requests with the token; the stream of events is read by fetch, as EventSource cannot send a header.

const TOKEN = "streamwatch-token";
const SILENCE_MS = 40_000; // the server says something every 15 s

export class Unauthorized extends Error {}

export const setToken = (token) => sessionStorage.setItem(TOKEN, token);

function headers() {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

const HEADERS = 1_000; // of a request and its answer, about
let bytes = 0;

// Bytes received so far, without those of the stream.
export const spent = () => bytes;

async function ask(path, signal) {
  const answer = await fetch(path, { headers: headers(), signal, cache: "no-store" });
  bytes += HEADERS + Number(answer.headers.get("Content-Length") ?? 0);
  if (answer.status === 401) throw new Unauthorized();
  if (!answer.ok) {
    const error = new Error(`${path}: ${answer.status}`);
    error.status = answer.status;
    throw error;
  }
  return answer;
}

// A model's name as a part of a path. Browsers remove "." and "..", also as "%2E", so these are escaped twice.
export const segment = (model) =>
  /^\.{1,2}$/.test(model) ? model.replaceAll(".", "%252E") : encodeURIComponent(model);

export const get = async (path, signal) => (await ask(path, signal)).json();

export async function* events(path) {
  const leave = new AbortController();
  let watch;
  const heard = () => {
    clearTimeout(watch);
    watch = setTimeout(() => leave.abort(), SILENCE_MS);
  };
  heard();
  try {
    const answer = await ask(path, leave.signal);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let pieces = [];
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      heard();
      pieces.push(value);
      if (!value.includes("\n\n") && !(value.startsWith("\n") && pieces.length > 1)) continue;
      const blocks = pieces.join("").split("\n\n");
      pieces = [blocks.pop()];
      for (const block of blocks) {
        const event = parsed(block);
        if (event) yield event;
      }
    }
  } finally {
    clearTimeout(watch);
    leave.abort();
  }
}

function parsed(block) {
  let event = "message";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) event = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  return data ? { event, data: JSON.parse(data) } : null;
}

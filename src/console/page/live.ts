// The live side of the page: one stream for all views. It is closed while the tab is hidden, so
// that a hidden tab costs the store nothing.
import { useEffect, useState } from "preact/hooks";
import type { Activity, Counters, Sample } from "./model.ts";

const historyMax = 90;
const activityMax = 500;

export interface LiveState {
  readonly state: "connecting" | "open" | "lost" | "hidden" | "strange";
  readonly sample?: Sample;
  readonly history: readonly Counters[];
  /** Newest first. */
  readonly activity: readonly Activity[];
}

let live: LiveState = { state: "connecting", history: [], activity: [] };
let source: EventSource | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<(live: LiveState) => void>();

function change(part: Partial<LiveState>): void {
  live = { ...live, ...part };
  for (const listener of listeners) listener(live);
}

function open(): void {
  if (source !== undefined || document.hidden) return;
  const stream = new EventSource("api/stream");
  source = stream;
  const on = <T>(name: string, handle: (data: T) => void): void =>
    stream.addEventListener(name, (event) => handle(JSON.parse((event as MessageEvent<string>).data) as T));
  on<{ history: Counters[]; activity: Activity[] }>("start", ({ history, activity }) =>
    change({ state: "open", history, activity: [...activity].reverse() }),
  );
  on<{ sample: Sample; point?: Counters }>("sample", ({ sample, point }) =>
    change({ state: "open", sample, history: [...live.history, ...(point ? [point] : [])].slice(-historyMax) }),
  );
  on<Activity[]>("activity", (activity) =>
    change({ activity: [...[...activity].reverse(), ...live.activity].slice(0, activityMax) }),
  );
  stream.addEventListener("error", () => {
    change({ state: "lost" });
    // Browsers never retry a refused stream. The console may have restarted.
    if (stream.readyState === EventSource.CLOSED) {
      close();
      retry = setTimeout(() => void again(), 2000);
    }
  });
}

/** Finds out why the stream was refused. */
async function again(): Promise<void> {
  const answer = await fetch("api/me").catch(() => undefined);
  if (answer?.status === 401) change({ state: "strange" });
  else open();
}

function close(): void {
  source?.close();
  source = undefined;
  clearTimeout(retry);
}

export function startLive(): void {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      close();
      change({ state: "hidden" });
    } else open();
  });
  open();
}

export function useLive(): LiveState {
  const [value, set] = useState(live);
  useEffect(() => {
    listeners.add(set);
    set(live);
    return () => void listeners.delete(set);
  }, []);
  return value;
}

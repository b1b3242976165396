// Formats numbers, sizes, durations and times for the page.

const numbers = new Intl.NumberFormat("en");

export function count(value: number | undefined): string {
  return value === undefined ? "–" : numbers.format(value);
}

export function plural(value: number, unit: string): string {
  return `${count(value)} ${unit}${value === 1 ? "" : unit.endsWith("s") ? "es" : "s"}`;
}

export function bytes(value: number | undefined): string {
  if (value === undefined) return "–";
  if (value < 1024) return `${value} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length, Math.floor(Math.log2(value) / 10));
  const scaled = value / 1024 ** power;
  return `${scaled < 10 ? scaled.toFixed(1) : Math.round(scaled)} ${units[power - 1] ?? ""}`;
}

export function duration(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

export function ago(iso: string): string {
  const ms = Date.now() - Date.parse(iso);
  return ms < 1000 ? "now" : `${duration(ms)} ago`;
}

export function rate(perSecond: number): string {
  if (perSecond === 0) return "0";
  return perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond));
}

/** Returns the local time, with the day if it is not today. */
export function clock(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const time = at.toLocaleTimeString("en-GB");
  return at.toDateString() === new Date().toDateString() ? time : `${at.toLocaleDateString("en-CA")} ${time}`;
}

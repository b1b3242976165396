// The text format of Prometheus, version 0.0.4, which scrapers and the node exporter read.

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** For a histogram: "_bucket", "_sum" or "_count". */
  readonly suffix?: string;
}

export const prometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

/** Ends with a line feed, as the format requires. Without samples, only the header lines. */
export function metricText(
  type: "counter" | "gauge" | "histogram",
  name: string,
  help: string,
  samples: readonly Sample[],
): string {
  const lines = samples.map(({ labels, value, suffix = "" }) => `${name}${suffix}${labelsText(labels)} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

/** Escapes backslash, quote and line feed in label values. */
function labelsText(labels: Readonly<Record<string, string>>): string {
  const texts = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replaceAll(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`,
  );
  return texts.length === 0 ? "" : `{${texts.join(",")}}`;
}
